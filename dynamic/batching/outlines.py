"""Outlines: recordings of a cell as steps that those with other numbers of rows may share, such as a node's children.

What joins arguments has as many rows as there are. An op that treats each row alike runs on the rows of all calls, and
a sum of the rows adds up those of each: calls with two children and with three then run together. Where a recording
does anything else with such rows, its outline is its own.

Recordings: what a cell does with arguments of some kinds, as ops on values that stand for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn, cast

from dynamic.batching.batch import Batch
from dynamic.batching.deferred import DeferredTensor, defer_value, redirect
from dynamic.batching.nodes import DeferredNode, Elements, How, OpSignature, ValueKind, View, freeze
from dynamic.batching.rules import Shape
from dynamic.tensor import Tensor
from graphs import tree
from graphs.errors import ControlFlowError, locate
from graphs.ops.reductions import sum as sum_

Slot = tuple[str, int]
"""Where a value is found: the number of a "single" input, a "join" of inputs, a "constant" or a "step"."""


class Member(NamedTuple):
    """What a join reads: elements of an input, by its number."""

    input: int
    offset: int
    size: int


class Join(NamedTuple):
    """Inputs one after the other.

    shape   of the result, or of one of its rows where each call has as many as it likes
    rows    the number of what says how many
    """

    recording: bool
    shape: Shape
    rows: int | None


class StepRead(NamedTuple):
    """What a step reads; from an offset on, where it reads a part of the value or in another shape."""

    slot: Slot
    offset: int | None
    shape: Shape


class StepKind(Enum):
    """How the ops of a step run."""

    STACKED = "by the rule of the op"
    ROWS = "the op as it is, on all rows together"
    SUM = "the sum of the rows of each call"


class OutlineStep(NamedTuple):
    """An op. Of two outlines that are the same, all but the calls are equal."""

    way: StepKind
    does: Hashable
    reads: tuple[StepRead, ...]
    recording: bool
    rows: int | None
    call: OpSignature


class _FixedError(Exception):
    """What is done with rows depends on how many there are."""


class Outline:
    """What a recording does, by steps.

    singles    the inputs that are read as they are, by their numbers
    kinds      those of the singles
    joins      what is made of inputs, before all steps
    members    of each join
    lengths    how many rows there are, by the numbers that joins and steps have for it
    constants  the values that are neither inputs nor made by a step
    outputs    where what it returns is found
    """

    def __init__(self, recording: Recording, ragged: bool) -> None:
        self._ragged = ragged
        self._recording = recording
        self._inputs = {node: number for number, node in enumerate(recording.inputs)}
        self._slots: dict[DeferredNode, Slot] = {}
        self._rows: dict[Slot, int | None] = {}
        self.singles: list[int] = []
        self.kinds: list[ValueKind] = []
        self.joins: list[Join] = []
        self.members: list[list[Member]] = []
        self.lengths: list[int] = []
        self.constants: list[Tensor] = []
        self.steps: list[OutlineStep] = []
        for node in recording.nodes:
            self._add(node)
        self.outputs = [self._slot(node) for node in recording.outputs]
        if any(self._rows.get(slot) is not None for slot in self.outputs):
            raise _FixedError

    def key(self) -> Hashable:
        """Equal for outlines that are the same: one plan runs both."""
        steps = tuple([step[:-1] for step in self.steps])
        kinds = tuple([(kind.shared, kind.shared is kind) for kind in self.kinds])
        constants = tuple([tensor.shape for tensor in self.constants])  # which may be returned as they are
        return tuple(self.joins), steps, tuple(self.outputs), kinds, constants

    def _slot(self, node: DeferredNode) -> Slot:
        slot = self._slots.get(node)
        if slot is None:
            slot = self._slots[node] = self._single(node) if node in self._inputs else self._constant(node)
        return slot

    def _single(self, node: DeferredNode) -> Slot:
        number = self._inputs[node]
        self.singles.append(number)
        self.kinds.append(self._recording.kinds[number])
        return "single", len(self.singles) - 1

    def _constant(self, node: DeferredNode) -> Slot:
        self.constants.append(node.block.tensor)
        return "constant", len(self.constants) - 1

    def _add(self, node: DeferredNode) -> None:
        signature = node.signature
        reads = list(zip(node.inputs, signature.kinds, strict=True))
        if signature.call.how is How.JOINED and all(node_of_run(run)[0] in self._inputs for run, _ in reads):
            self._join(node, reads)
        else:
            self._step(node, [self._read(run, kind) for run, kind in reads])

    def _join(self, node: DeferredNode, reads: Sequence[tuple[Elements, ValueKind]]) -> None:
        shape = node.signature.call.out.shape
        rows = self._number(shape[0]) if self._ragged and 0 not in shape else None
        self._slots[node] = slot = ("join", len(self.joins))
        self._rows[slot] = rows
        self.joins.append(Join(node.signature.bundle.recording, shape if rows is None else shape[1:], rows))
        self.members.append([self._member(run, kind) for run, kind in reads])

    def _member(self, run: Elements, kind: ValueKind) -> Member:
        node, offset = node_of_run(run)
        return Member(self._inputs[node], offset or 0, kind.size)

    def _number(self, length: int) -> int:
        """The number for so many rows: joins that have as many share it."""
        if length not in self.lengths:
            self.lengths.append(length)
        return self.lengths.index(length)

    def _read(self, run: Elements, kind: ValueKind) -> StepRead:
        node, offset = node_of_run(run)
        return StepRead(self._slot(node), offset, kind.shape)

    def _step(self, node: DeferredNode, reads: Sequence[StepRead]) -> None:
        call, recording = node.signature.call, node.signature.bundle.recording
        ragged = [self._rows.get(read.slot) for read in reads]
        numbers = set(ragged) - {None}
        slot = self._slots[node] = ("step", len(self.steps))
        if not numbers:
            self.steps.append(OutlineStep(StepKind.STACKED, call, tuple(reads), recording, None, call))
            return
        if len(numbers) > 1:
            raise _FixedError
        (rows,) = numbers
        way = _way(call, reads, [number is not None for number in ragged])
        self._rows[slot] = None if way is StepKind.SUM else rows
        # What may differ between calls is only how many rows there are.
        row_reads = [r if n is None else r._replace(shape=r.shape[1:]) for r, n in zip(reads, ragged, strict=True)]
        does = (call.op, freeze(call.attrs), *[kind.dtype for kind in node.signature.kinds])
        self.steps.append(OutlineStep(way, does, tuple(row_reads), recording, rows, call))


def _way(call: OpSignature, reads: Sequence[StepRead], ragged: Sequence[bool]) -> StepKind:
    """How an op runs on inputs of which some are rows, for any number of rows."""
    ndim = len(call.out.shape)
    if any(rows and read.offset is not None for read, rows in zip(reads, ragged, strict=True)):
        raise _FixedError
    if _is_sum_of_rows(call):
        return StepKind.SUM
    if call.op.family == "elementwise":
        right = [(len(read.shape) == ndim) == rows for read, rows in zip(reads, ragged, strict=True)]
    else:  # what is no row is the same in all calls
        right = [
            rows == role and (role or read.slot[0] == "constant")
            for read, rows, role in zip(reads, ragged, call.roles or [None] * len(reads), strict=True)
        ]
    if not all(right):
        raise _FixedError
    return StepKind.ROWS


def _is_sum_of_rows(call: OpSignature) -> bool:
    attrs = call.attrs
    return call.op is sum_ and attrs["axis"] in (0, (0,)) and not attrs["keepdims"] and call.out.dtype.kind == "f"


def outline(recording: Recording) -> Outline:
    """What a recording does, with any number of rows if that can be."""
    try:
        return Outline(recording, ragged=True)
    except _FixedError:
        return Outline(recording, ragged=False)


Function = Callable[..., Any]


class RecordingBatch(Batch):
    """The ops of a cell, which never run as they are. What it knows of tensors serves one cell after another."""

    def __init__(self) -> None:
        super().__init__("depth")

    def settle(self, _value: DeferredTensor) -> NoReturn:
        """Refuse to: there is no value."""
        raise ControlFlowError(
            locate(
                "a cell needs the value of a tensor, but runs once for many; choose values with graphs.where, "
                "or leave the function undecorated"
            )
        )

    def taken(self) -> list[DeferredNode]:
        """The ops, each after those it reads, with which it then has no more to do."""
        self.values = []
        return [node for level in self._taken() for node in level.nodes]


class CellResult(NamedTuple):
    """A leaf of what a cell returns: an input (its number) or an output (its number, or -1), and a view of that."""

    kind: ValueKind
    input: int
    output: int
    size: int
    offset: int | None


class Recording:
    """What a cell does with arguments of some kinds.

    inputs    what stands for the arguments that differ between calls
    nodes     its ops
    outputs   those of its nodes that make what it returns
    results   the leaves of that; a leaf that is no value to come is as it is
    build     what makes what it returns of these
    """

    def __init__(self, batch: RecordingBatch, f: Function, leaves: Sequence[Any], structure: tree.Structure) -> None:
        batch.taken()  # of a function that has failed
        self.inputs: list[DeferredNode] = []
        self.kinds: list[ValueKind] = []
        self.outputs: list[DeferredNode] = []
        args, options = tree.unflatten(structure, [self._add_input(batch, leaf) for leaf in leaves])
        with redirect(batch):
            returned, nesting = tree.flatten_as_inserted(f(*args, **options))
        self.build = _builder(nesting, len(returned))
        self.nodes = batch.taken()
        self._constants = batch.constants
        self.results = [self._result(leaf) if type(leaf) is DeferredTensor else leaf for leaf in returned]

    def _add_input(self, batch: RecordingBatch, leaf: Any) -> Any:
        if not isinstance(leaf, ValueKind):
            return leaf
        self.inputs.append(DeferredNode(batch.nothing, None, ()))
        self.kinds.append(leaf)
        return defer_value(self.inputs[-1], leaf, [])

    def constant_key(self, tensor: Tensor) -> Hashable:
        """Equal for constants that are the same: of two recordings, each has arrays of its own for Python numbers."""
        if tensor.ndim or id(tensor) in self._constants:  # which holds it: it is the user's own
            return id(tensor)
        return tensor.dtype, tensor._data.tobytes()

    def _result(self, value: DeferredTensor) -> CellResult:
        node, offset = node_of_run(value.run)
        if node in self.inputs:
            return CellResult(value.kind, self.inputs.index(node), -1, 0, offset)
        if node not in self.outputs:
            self.outputs.append(node)
        size = value.kind.size if offset is None else _size(node)
        # A parameter, a constant or a view of one is copied with the others, so what is returned is computed.
        return CellResult(value.kind.shared, -1, self.outputs.index(node), size, offset)


def _builder(structure: tree.Structure, count: int) -> Callable[[list[Any]], Any]:
    """`tree.unflatten` of that structure; a value or a tuple of values takes no optree."""
    if structure == tree.flatten_as_inserted(0)[1]:
        return itemgetter(0)
    if structure == tree.flatten_as_inserted((0,) * count)[1]:
        return tuple
    return functools.partial(tree.unflatten, structure)


def _size(node: DeferredNode) -> int:
    return node.block.size if node.level.ran else node.signature.out.size  # only constants have run


def node_of_run(run: Elements) -> tuple[DeferredNode, int | None]:
    """The node that a run in a cell belongs to, and from where on it is seen when it is a view."""
    return (run.owner, run.offset) if isinstance(run, View) else (cast("DeferredNode", run), None)
