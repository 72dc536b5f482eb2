"""Blocks of a fused group: how many rows each has, where its buffers lie, and the function that goes through them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from graphs.dims import Size
from graphs.ir import Graph, Node
from static import memory
from static.codegen.sizes import resolve
from static.passes.iteration_space import CACHE_BYTES, Position

GLOBALS = {"__builtins__": builtins}
"""Of every generated function: since Python 3.13 a warning that a kernel gives looks for builtins there."""
BLOCK_BYTES = 1 << 20  # what a block reads, holds and writes: about the second-level cache of a core
BLOCK_ELEMENTS = 1 << 15  # of one value: more of them only cost cache, since calls are long by then


@dataclass
class Buffer:
    """Memory for one value of a block at a time: where it varies, its dtype, and the steps of its lifetime."""

    place: Position
    dtype: np.dtype[Any]
    lower: int
    upper: int


class Blocks(NamedTuple):
    """A lowered group: its code, what each parameter with a default holds, and the node of each line.

    `axes` are the sizes of the axes that are left when those which all values treat alike are one; blocks go along
    the first. `moved` are the place and the bytes per element of what a block reads and writes.
    """

    graph: Graph
    code: CodeType
    source: str
    slots: Mapping[str, Any]
    lines: tuple[Node | None, ...]
    axes: tuple[Size, ...]
    buffers: tuple[Buffer, ...]
    moved: tuple[tuple[Position, int], ...]

    def nested(self) -> Iterator[Blocks]:
        """This alone: a group holds no other graph."""
        yield self


class Cut(NamedTuple):
    """A group cut into blocks of so many rows: the sizes of its axes, and where the buffers of a block lie."""

    axes: tuple[int, ...]
    rows: int
    plan: memory.Plan


def cut(blocks: Blocks, sizes: Mapping[str, int]) -> Cut:
    """Choose the rows of a block for these sizes, and lay out its buffers."""
    axes = tuple(resolve(blocks.axes, sizes))
    inner = math.prod(axes[1:])
    steps = [(b.lower, b.upper, _elements(b.place, axes, 1) * b.dtype.itemsize) for b in blocks.buffers]
    moved = sum(_elements(place, axes, 1) * itemsize for place, itemsize in blocks.moved if place[0])
    row = max(memory.max_live(steps) + moved, 1)
    most = min(BLOCK_BYTES // row, BLOCK_ELEMENTS // max(inner, 1))
    rows = axes[0] if axes[0] * row <= CACHE_BYTES else _balanced(axes[0], max(most, 1))
    plan = memory.plan(_lifetimes(blocks.buffers, axes, rows), memory.ALIGNMENT)
    return Cut(axes, rows, plan)


def _balanced(total: int, most: int) -> int:
    """The rows of a block when as few blocks as possible are nearly equal."""
    count = max(1, round(total / most))
    rows = -(-total // count)
    return rows if rows < 64 else -(-rows // 16) * 16  # whole cache lines


def _elements(place: Sequence[bool], axes: Sequence[int], rows: int) -> int:
    shape = [rows, *axes[1:]]
    return math.prod(size for size, varies in zip(shape, place, strict=True) if varies)


def _lifetimes(buffers: Sequence[Buffer], axes: Sequence[int], rows: int) -> list[memory.Buffer]:
    return [(b.lower, b.upper, _elements(b.place, axes, rows) * b.dtype.itemsize) for b in buffers]


def bind(blocks: Blocks, made: Cut, sizes: Mapping[str, int], workspace: np.ndarray[Any, Any]) -> FunctionType:
    """The function to call with operands, then arrays for the results; buffers of a block lie in the workspace."""
    total = made.axes[0]
    full = _views(blocks, made, made.rows, workspace)
    pieces = [(slice(start, start + made.rows), full) for start in range(0, total - made.rows + 1, made.rows or 1)]
    done = len(pieces) * made.rows
    if done < total:
        pieces.append((slice(done, total), _views(blocks, made, total - done, workspace)))
    values = {name: resolve(value, sizes) for name, value in blocks.slots.items()} | {"blocks": pieces}
    return FunctionType(blocks.code, GLOBALS, "run", tuple(values.values()))


def _views(blocks: Blocks, made: Cut, rows: int, workspace: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    views = []
    for buffer, offset in zip(blocks.buffers, made.plan.offsets, strict=True):
        sizes = zip((rows, *made.axes[1:]), buffer.place, strict=True)
        shape = tuple(size if varies else 1 for size, varies in sizes)
        views.append(np.ndarray(shape, buffer.dtype, workspace, offset))
    return tuple(views)
