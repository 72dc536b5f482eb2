"""A fused group as a loop over blocks of its space, which are small enough for the cache.

def run(i0, i1, o3, o4, blocks=..., k2=..., ...):
    i0 = i0.reshape(s0)             # axes that all values vary along, or none, become one
    o3 = o3.reshape(s3)
    o4 = o4.reshape(s4)
    o4.fill(0)
    for rows, (b0, b1) in blocks:
        a0 = i0[rows]               # a view of these rows; what does not vary along them is taken whole
        a3 = o3[rows]
        k2(a0, i1, b0)
        k3(b0, a3)                  # a result is written where it belongs
        k4(a3, (0,), None, b1, True)
        add(o4, b1, o4)             # a sum over the rows

`lower` writes this code, `cut` chooses the rows of a block and lays out its buffers, and `bind` makes the function.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.ir import Graph, Node
from static import memory
from static.codegen import kernels
from static.codegen.kernels import resolve
from static.passes import fusion
from static.passes.fusion import CACHE_BYTES, Position


def lower(body: Graph, space: dims.Shape) -> Blocks:
    """Generate the code of a fused group."""
    writer = _GroupWriter(body, space)
    source = writer.write()
    code = next(c for c in compile(source, "<fused group>", "exec").co_consts if isinstance(c, CodeType))
    moved = tuple((writer.outer[n], n.spec.dtype.itemsize) for n in dict.fromkeys((*body.inputs, *body.outputs)))
    return Blocks(
        body, code, source, writer.slots, tuple(writer.lines), writer.axes, tuple(writer.buffers), moved
    )  # fmt: skip


class _GroupWriter:
    """Writes the code of a group, collecting slots, buffers and the node of each line on the way."""

    def __init__(self, body: Graph, space: dims.Shape) -> None:
        self.body = body
        places = fusion.positions(body, space)
        outer = {n: _outside(n, places[n], space) for n in (*body.inputs, *body.outputs)}
        runs = fusion.merge_axes([*places.values(), *outer.values()], space)
        self.axes = tuple(dims.product(space[axis] for axis in run) for run in runs)
        self.flat = len(runs) == len(space)
        self.places = {n: tuple(place[run[0]] for run in runs) for n, place in places.items()}
        self.outer = {n: tuple(place[run[0]] for run in runs) for n, place in outer.items()}
        self.number = {node: i for i, node in enumerate(body.nodes)}
        self.names: dict[Node, str] = {}
        self.slots: dict[str, Any] = {"blocks": None, "add": np.add, "divide": np.true_divide}
        self.lines: list[Node | None] = []
        self.text: list[str] = []
        self.buffers: list[Buffer] = []
        self.held: dict[Node, int] = {}  # the number of the buffer that a value lies in
        self.last = self._last_reads()

    def write(self) -> str:
        body = self.body
        arrays = {node: f"i{self.number[node]}" for node in body.inputs}
        arrays |= {node: f"o{self.number[node]}" for node in body.outputs}
        for node, name in arrays.items():
            self._reshape(node, name)
        start = len(self.text)
        for node, name in arrays.items():
            self._slice(node, name)
        for step, node in enumerate(body.nodes):
            if fusion.is_view(node):
                self.names[node] = self.names[node.inputs[0]]
            elif node.inputs:
                self._compute(node, step)
        held = "".join(f"b{i}, " for i in range(len(self.buffers)))
        self.text[start:] = [f"for rows, ({held}) in blocks:", *(f"    {line}" for line in self.text[start:])]
        self.lines.insert(start, None)
        self._divide_means()
        parameters = [*arrays.values(), *(f"{name}=None" for name in self.slots)]
        return f"def run({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in self.text)

    def _line(self, node: Node, text: str) -> None:
        self.text.append(text)
        self.lines.append(node)

    def _reshape(self, node: Node, name: str) -> None:
        scalar = not node.spec.ndim and not node.inputs  # broadcasts as it is
        if not scalar and not (self.flat and node.spec.ndim == len(self.axes)):
            pairs = zip(self.outer[node], self.axes, strict=True)
            self.slots[f"s{self.number[node]}"] = tuple(size if varies else 1 for varies, size in pairs)
            self._line(node, f"{name} = {name}.reshape(s{self.number[node]})")
        self.names[node] = name
        if self._is_sum(node):
            self._line(node, f"{name}.fill(0)")

    def _slice(self, node: Node, name: str) -> None:
        if self.outer[node][0]:
            self.names[node] = f"a{self.number[node]}"
            self._line(node, f"{self.names[node]} = {name}[rows]")

    def _is_sum(self, node: Node) -> bool:
        """Whether a node of the group is a sum over blocks, added up from one sum per block."""
        return bool(node.inputs) and not self.places[node][0]

    def _compute(self, node: Node, step: int) -> None:
        if self._is_sum(node):
            part = self._buffer(node, step)
            self._reduce(node, part)
            self._line(node, f"add({self.names[node]}, {part}, {self.names[node]})")
            return
        if node not in self.names:
            self.names[node] = self._buffer(node, step)
        if kernels.is_reducer(node):
            self._reduce(node, self.names[node])
            if kernels.is_divided(node):
                self._line(node, f"divide({self.names[node]}, {self._count(node)}, {self.names[node]})")
        else:
            self._call(node, self.names[node])

    def _call(self, node: Node, out: str) -> None:
        self.slots[f"k{self.number[node]}"] = kernels.kernel(node)
        for key, value in node.attrs.items():
            self.slots[f"c{self.number[node]}_{key}"] = value
        operands = [self.names[source] for source in node.inputs]
        text = kernels.call(node, f"k{self.number[node]}", operands, out, lambda key: f"c{self.number[node]}_{key}")
        self._line(node, text)

    def _reduce(self, node: Node, out: str) -> None:
        """Write the reduction of a block, which keeps the axes; of a mean it writes the sum."""
        source, number = node.inputs[0], self.number[node]
        before, after = self.places[source], self.places[node]
        axis = tuple(i for i, varies in enumerate(before) if varies and not after[i])
        self.slots[f"k{number}"] = kernels.kernel(node)
        self.slots[f"c{number}_dtype"] = node.attrs.get("dtype")
        self._line(node, f"k{number}({self.names[source]}, {axis}, c{number}_dtype, {out}, True)")

    def _count(self, node: Node) -> str:
        name = f"n{self.number[node]}"
        self.slots[name] = kernels.attribute(node, "count")
        return name

    def _divide_means(self) -> None:
        for node in dict.fromkeys(self.body.outputs):
            if kernels.is_divided(node) and self._is_sum(node):
                name = f"o{self.number[node]}"
                self._line(node, f"divide({name}, {self._count(node)}, {name})")

    # Buffers of a block -----------------------------------------------------------------------------------------

    def _last_reads(self) -> dict[Node, int]:
        """Return for each value the step of its last read, also through views."""
        root: dict[Node, Node] = {}
        last: dict[Node, int] = {}
        for step, node in enumerate(self.body.nodes):
            root[node] = root[node.inputs[0]] if fusion.is_view(node) else node
            for value in (node, *node.inputs):
                last[root[value]] = step
        return {node: last[root[node]] for node in self.body.nodes}

    def _buffer(self, node: Node, step: int) -> str:
        """Return the buffer for a value: an operand's buffer that nobody reads any more, or a new one."""
        index = next(self._dying(node, step), None)
        if index is None:
            index = len(self.buffers)
            self.buffers.append(Buffer(self.places[node], node.spec.dtype, step, step + 1))
        self.buffers[index].upper = max(self.buffers[index].upper, self.last[node] + 1)
        self.held[node] = index
        return f"b{index}"

    def _dying(self, node: Node, step: int) -> Iterator[int]:
        """Yield the operands' buffers that the kernel may overwrite: a ufunc reads an element before it writes it."""
        if not isinstance(node.op.kernel, np.ufunc):
            return
        for source in node.inputs:
            while fusion.is_view(source):
                source = source.inputs[0]
            same = self.places[source] == self.places[node] and source.spec.dtype == node.spec.dtype
            if source in self.held and same and self.last[source] == step:
                yield self.held[source]


def _outside(node: Node, place: Position, space: dims.Shape) -> Position:
    """Return along which axes an operand or a result varies as an array; it may be broadcast after it is computed."""
    covered = dims.product(size for size, varies in zip(space, place, strict=True) if varies)
    whole = fusion.align_shape(node.spec.shape, space)
    return place if whole is None or dims.same(covered, node.spec.size) else whole


GLOBALS = {"__builtins__": builtins}
"""The globals of every generated function; since Python 3.13 NumPy's warnings look up builtins there."""
BLOCK_BYTES = 1 << 20  # of the values that a block reads, holds and writes: about the second-level cache of a core
BLOCK_ELEMENTS = 1 << 15  # elements of one value: more of them only cost cache, since calls are long by then


@dataclass
class Buffer:
    """Memory for one value of a block at a time: the axes it varies along, its dtype, and the steps of its lifetime."""

    place: Position
    dtype: np.dtype[Any]
    lower: int
    upper: int


class Blocks(NamedTuple):
    """A lowered group: its code, the value of each parameter with a default, and the node of each line.

    `axes` are the sizes of the axes after merging axes that all values treat alike; blocks go along the first. `moved`
    has the position and the bytes per element of each value that a block reads or writes.
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
        """Yield this group alone: a group holds no other graph."""
        yield self


class BlockCut(NamedTuple):
    """A group cut into blocks of `rows` rows: the sizes of its axes, and the memory plan of a block's buffers."""

    axes: tuple[int, ...]
    rows: int
    plan: memory.Plan


def cut(blocks: Blocks, sizes: Mapping[str, int]) -> BlockCut:
    """Choose the rows of a block for these sizes, and lay out its buffers."""
    axes = tuple(resolve(blocks.axes, sizes))
    inner = math.prod(axes[1:])
    steps = [(b.lower, b.upper, _elements(b.place, axes, 1) * b.dtype.itemsize) for b in blocks.buffers]
    moved = sum(_elements(place, axes, 1) * itemsize for place, itemsize in blocks.moved if place[0])
    row = max(memory.max_live(steps) + moved, 1)
    most = min(BLOCK_BYTES // row, BLOCK_ELEMENTS // max(inner, 1))
    rows = axes[0] if axes[0] * row <= CACHE_BYTES else _balanced_rows(axes[0], max(most, 1))
    plan = memory.plan(_lifetimes(blocks.buffers, axes, rows), memory.ALIGNMENT)
    return BlockCut(axes, rows, plan)


def _balanced_rows(total: int, most: int) -> int:
    """Return the rows of a block for as few blocks as possible of nearly equal length."""
    count = max(1, round(total / most))
    rows = -(-total // count)
    return rows if rows < 64 else -(-rows // 16) * 16  # whole cache lines


def _elements(place: Sequence[bool], axes: Sequence[int], rows: int) -> int:
    shape = [rows, *axes[1:]]
    return math.prod(size for size, varies in zip(shape, place, strict=True) if varies)


def _lifetimes(buffers: Sequence[Buffer], axes: Sequence[int], rows: int) -> list[memory.Buffer]:
    return [(b.lower, b.upper, _elements(b.place, axes, rows) * b.dtype.itemsize) for b in buffers]


def bind(blocks: Blocks, made: BlockCut, sizes: Mapping[str, int], workspace: np.ndarray[Any, Any]) -> FunctionType:
    """Return the function to call with operands and then arrays for results; a block's buffers lie in the workspace."""
    total = made.axes[0]
    full = _views(blocks, made, made.rows, workspace)
    pieces = [(slice(start, start + made.rows), full) for start in range(0, total - made.rows + 1, made.rows or 1)]
    done = len(pieces) * made.rows
    if done < total:
        pieces.append((slice(done, total), _views(blocks, made, total - done, workspace)))
    values = {name: resolve(value, sizes) for name, value in blocks.slots.items()} | {"blocks": pieces}
    return FunctionType(blocks.code, GLOBALS, "run", tuple(values.values()))


def _views(
    blocks: Blocks, made: BlockCut, rows: int, workspace: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], ...]:
    views = []
    for buffer, offset in zip(blocks.buffers, made.plan.offsets, strict=True):
        sizes = zip((rows, *made.axes[1:]), buffer.place, strict=True)
        shape = tuple(size if varies else 1 for size, varies in sizes)
        views.append(np.ndarray(shape, buffer.dtype, workspace, offset))
    return tuple(views)
