"""Outlines: recordings of a cell as steps that those with other numbers of rows may share, such as a node's children.

What joins arguments has as many rows as there are. An op that treats each row alike runs on the rows of all calls, and
a sum of the rows adds up those of each: calls with two children and with three then run together. Where a recording
does anything else with such rows, its outline is its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import NamedTuple

from dynamic.batching.nodes import DeferredNode, Elements, ValueKind
from dynamic.batching.recording import Recording, seen
from dynamic.batching.rules import Shape
from dynamic.batching.signatures import How, OpSignature, frozen
from dynamic.tensor import Tensor
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


class Read(NamedTuple):
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
    reads: tuple[Read, ...]
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
        if signature.call.how is How.JOINED and all(seen(run)[0] in self._inputs for run, _ in reads):
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
        node, offset = seen(run)
        return Member(self._inputs[node], offset or 0, kind.size)

    def _number(self, length: int) -> int:
        """The number for so many rows: joins that have as many share it."""
        if length not in self.lengths:
            self.lengths.append(length)
        return self.lengths.index(length)

    def _read(self, run: Elements, kind: ValueKind) -> Read:
        node, offset = seen(run)
        return Read(self._slot(node), offset, kind.shape)

    def _step(self, node: DeferredNode, reads: Sequence[Read]) -> None:
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
        does = (call.op, frozen(call.attrs), *[kind.dtype for kind in node.signature.kinds])
        self.steps.append(OutlineStep(way, does, tuple(row_reads), recording, rows, call))


def _way(call: OpSignature, reads: Sequence[Read], ragged: Sequence[bool]) -> StepKind:
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
