"""A trap: a small program in which one thing of Python is easily converted wrongly, and how it has to end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from tests.helpers.programs import function, text_of

Ending = Literal["right", "refused"]
IMPORTS = """
import array, bisect, collections, contextlib, copy, ctypes, dataclasses, decimal, enum, fractions, functools, heapq
import inspect, io, itertools, json, logging, math, operator, os, pickle, queue, random, re, statistics, string, struct
import sys, threading, time, types, weakref
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np

import graphs as g
"""


class Trap(NamedTuple):
    """A function f64[4] -> f64[], and whether a conversion must be right or a refusal is what there can be."""

    function: Callable[[Any], Any]
    ends: Ending
    name: str


TRAPS: list[Trap] = []


def right(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """This trap is converted, and right."""
    TRAPS.append(Trap(function, "right", f"{function.__module__}.{function.__name__}"))
    return function


def refused(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """No graph of a fixed structure says the same, or nothing tells that it is safe: this one is refused."""
    TRAPS.append(Trap(function, "refused", f"{function.__module__}.{function.__name__}"))
    return function


def rows(module: str, **texts: str) -> None:
    """Add short traps of a module, by how they end: a line of text each, with ` | ` between the lines of `f(x)`.

    The last is what it returns. The names of `IMPORTS` and of the module are there.
    """
    names = vars(sys.modules[module])
    for ends, text in texts.items():
        made = [(function(text_of(row), {**_IMPORTED, **names}), row) for row in text.strip().splitlines()]
        TRAPS.extend(Trap(f, ends, row) for f, row in made)  # type: ignore[arg-type]


_IMPORTED: dict[str, Any] = {}
exec(IMPORTS, _IMPORTED)
