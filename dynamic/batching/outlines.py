"""Outlines: recordings of a cell as steps that serve any number of rows, such as the children of a tree node.

A join of arguments has one row for each argument. An op that treats all rows alike runs on the rows of all calls, and
a sum over the rows adds up those of each call: calls with two and with three children then run together. A recording
that does anything else with such rows has an outline for its number of rows alone.

Recordings, at the end: the ops of a cell on values that stand for its arguments.
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
    """One member of a join: `size` elements of an input from `offset` on; `input` is the input's number."""

    input: int
    offset: int
    size: int


class Join(NamedTuple):
    """Inputs joined one after the other.

    shape   of the result; of one of its rows, if the number of rows may differ between calls
    rows    the index in `lengths` of the number of rows, or None
    """

    recording: bool
    shape: Shape
    rows: int | None


class StepRead(NamedTuple):
    """A value that a step reads; `offset` is set where it reads a part, or another shape, of the value."""

    slot: Slot
    offset: int | None
    shape: Shape


class StepKind(Enum):
    """The ways to run the ops of a step."""

    STACKED = "by the rule of the op"
    ROWS = "the op as it is, on all rows together"
    SUM = "the sum of the rows of each call"


class OutlineStep(NamedTuple):
    """One op of an outline. Equal outlines agree in all fields but `call`."""

    way: StepKind
    does: Hashable
    reads: tuple[StepRead, ...]
    recording: bool
    rows: int | None
    call: OpSignature


class _FixedError(Exception):
    """The ops on rows depend on the number of rows."""


class Outline:
    """The steps of a recording.

    singles    the numbers of the inputs that are read on their own
    kinds      the kinds of the singles
    joins      the joins of inputs, which come before all steps
    members    the members of each join
    lengths    the numbers of rows; joins and steps refer to them by index
    constants  the values that are neither inputs nor made by a step
    outputs    the slots of the values that are returned
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
        """A key that is equal for outlines that one plan can run."""
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
        """The index of a number of rows in `lengths`; joins of equal length share it."""
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
        # Calls may differ in the number of rows alone.
        row_reads = [r if n is None else r._replace(shape=r.shape[1:]) for r, n in zip(reads, ragged, strict=True)]
        does = (call.op, freeze(call.attrs), *[kind.dtype for kind in node.signature.kinds])
        self.steps.append(OutlineStep(way, does, tuple(row_reads), recording, rows, call))


def _way(call: OpSignature, reads: Sequence[StepRead], ragged: Sequence[bool]) -> StepKind:
    """How an op runs on inputs of which some are rows, for any number of rows. Raises _FixedError if it cannot."""
    ndim = len(call.out.shape)
    if any(rows and read.offset is not None for read, rows in zip(reads, ragged, strict=True)):
        raise _FixedError
    attrs = call.attrs
    if call.op is sum_ and attrs["axis"] in (0, (0,)) and not attrs["keepdims"] and call.out.dtype.kind == "f":
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


def outline(recording: Recording) -> Outline:
    """The outline of a recording: for any number of rows if possible, else for its own number."""
    try:
        return Outline(recording, ragged=True)
    except _FixedError:
        return Outline(recording, ragged=False)


Function = Callable[..., Any]


class RecordingBatch(Batch):
    """The batch that records the ops of cells, which it never runs. Its caches serve one cell after another."""

    def __init__(self) -> None:
        super().__init__("depth")

    def settle(self, _value: DeferredTensor) -> NoReturn:
        """Raise ControlFlowError: while a cell is recorded its values do not exist."""
        raise ControlFlowError(
            locate(
                "a cell needs the value of a tensor, but runs once for many; choose values with graphs.where, "
                "or leave the function undecorated"
            )
        )

    def taken(self) -> list[DeferredNode]:
        """Return and forget the recorded ops, each after the ops it reads."""
        self.values = []
        return [node for level in self._taken() for node in level.nodes]


class CellResult(NamedTuple):
    """A leaf that a cell returns: input number `input` or output number `output` (-1 for an input), or its view."""

    kind: ValueKind
    input: int
    output: int
    size: int
    offset: int | None


class Recording:
    """The ops of a cell on arguments of some kinds.

    inputs    the nodes that stand for arguments that differ between calls
    nodes     the ops
    outputs   the nodes whose values are returned
    results   the returned leaves; a leaf that is no deferred value is kept as it is
    build     makes the returned container of a list of leaves
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
        """A key that is equal for equal constants: each recording has its own arrays for Python numbers."""
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
        # A returned parameter, constant or view of one is copied with the other outputs, so it counts as computed.
        return CellResult(value.kind.shared, -1, self.outputs.index(node), size, offset)


def _builder(structure: tree.Structure, count: int) -> Callable[[list[Any]], Any]:
    """A function like `tree.unflatten` of this structure; without optree for a single value or a tuple of values."""
    if structure == tree.flatten_as_inserted(0)[1]:
        return itemgetter(0)
    if structure == tree.flatten_as_inserted((0,) * count)[1]:
        return tuple
    return functools.partial(tree.unflatten, structure)


def _size(node: DeferredNode) -> int:
    return node.block.size if node.level.ran else node.signature.out.size  # only constants have run


def node_of_run(run: Elements) -> tuple[DeferredNode, int | None]:
    """The node that a run in a cell belongs to, and the offset of a view; None for a run that is no view."""
    return (run.owner, run.offset) if isinstance(run, View) else (cast("DeferredNode", run), None)
