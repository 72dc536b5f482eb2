"""What a group consists of: arrays, and steps over them; and how parts of a reduction become one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

JOINED_BY = {"sum": "add", "mean": "add", "max": "max", "min": "min", "prod": "mul", "any": "or", "all": "and"}

Argument = tuple[Any, ...]


class ArrayLayout(NamedTuple):
    """An operand or result: its dtype, and how many elements lie between neighbours along each axis."""

    dtype: str
    strides: tuple[int, ...]


class GroupStep(NamedTuple):
    """One op: what it is computed in, where its arguments are, and when it runs.

    It `gives` another dtype where it compares. `args` are ("step", number), ("operand", number) or ("number", dtype,
    bytes). `row` tells whether it gives a number a row. Of a reduction, `over` is "row" or "memory", and `taken` of a
    mean how many numbers it is taken of.
    """

    name: str
    dtype: str
    gives: str
    args: tuple[Argument, ...]
    stage: int
    row: bool
    over: str = ""
    taken: int = 0

    @property
    def join(self) -> str:
        """How two parts of a reduction become one, by the names of `functions.JOINS`."""
        return JOINED_BY[self.name]


def identity(join: str, dtype: str) -> Any:
    """What a reduction starts with: joined with a number it leaves that as it is, but for -0.0 in a sum."""
    if join in ("max", "min"):
        low, high = (-math.inf, math.inf) if dtype[0] == "f" else _range(dtype)
        return low if join == "max" else high
    return {"add": 0, "mul": 1, "or": False, "and": True}[join]


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "b1":
        return 0, 1
    info = np.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)
