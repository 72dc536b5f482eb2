"""Plans: how the calls of a cell in one group run together, worked out once for all batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, cast

from dynamic import grad_mode
from dynamic.batching.memory import reshaped
from dynamic.batching.moves import Segments, repeat, segment_sum
from dynamic.batching.outlines import Outline, OutlineStep, Read, Slot, StepKind
from dynamic.batching.rules import Form, Roles, Runner, Shape, full, plain
from dynamic.batching.signatures import How, OpSignature
from dynamic.tensor import Tensor
from graphs.ops.movement import reshape
from graphs.ops.slicing import getitem

RunStep = Callable[[Sequence[Tensor], Any], Tensor]


class Action(NamedTuple):
    """A step ready to run: on the values of these numbers, and with the rows of this number or the count of calls."""

    run: RunStep
    reads: list[int]
    rows: int | None


class CellPlan:
    """What runs a group of calls whose outlines are the same."""

    how = How.CELL
    roles = None

    def __init__(self, outline: Outline) -> None:
        self.joins, self.outputs, self.steps = outline.joins, outline.outputs, outline.steps
        self.ops = len(self.joins) + len(self.steps)
        self.shapes = {("single", i): kind.shape for i, kind in enumerate(outline.kinds)}
        self.constants = {("constant", i): tensor.shape for i, tensor in enumerate(outline.constants)}
        self._compiled: dict[Roles, _Compiler] = {}

    def run(
        self, singles: Sequence[Tensor], stacked: Roles, others: Sequence[Tensor], rows: Sequence[Segments], count: int
    ) -> list[Tensor]:
        """The outputs of all calls, on a first axis.

        `singles` are stacked, or shared by all; `others` are the joins and the constants.
        """
        compiled = self._compiled.get(stacked)
        if compiled is None:
            compiled = self._compiled[stacked] = _Compiler(self, stacked)
        values = [*singles, *others]
        for recording, actions in compiled.actions:
            with grad_mode.set_grad_enabled(recording):
                for run, reads, number in actions:
                    values.append(run([values[i] for i in reads], count if number is None else rows[number]))
        return [full(values[i], form, count) for i, form in compiled.outputs]


class _Compiler:
    """The steps of a plan as actions, by which of its singles are stacked.

    actions   those that are recorded, and those that are not, in the order in which they run
    outputs   the numbers of the values that they end with, and their forms
    """

    def __init__(self, plan: CellPlan, stacked: Roles) -> None:
        self._forms: list[Form | None] = []  # of all values, None for rows
        self._numbers: dict[Hashable, int] = {}
        for (slot, shape), each in zip(plan.shapes.items(), stacked, strict=True):
            self._value(slot, Form(shape, each))
        for i, join in enumerate(plan.joins):
            self._value(("join", i), Form(join.shape, stacked=True) if join.rows is None else None)
        for slot, shape in plan.constants.items():
            self._value(slot, Form(shape, stacked=False))
        self.actions: list[tuple[bool, list[Action]]] = []
        for i, step in enumerate(plan.steps):
            if not self.actions or self.actions[-1][0] is not step.recording:
                self.actions.append((step.recording, []))
            self._step(("step", i), step)
        output_numbers = [self._numbers[slot] for slot in plan.outputs]
        self.outputs = [(number, cast("Form", self._forms[number])) for number in output_numbers]

    def _value(self, key: Hashable, form: Form | None) -> int:
        self._numbers[key] = number = len(self._forms)
        self._forms.append(form)
        return number

    def _step(self, slot: Slot, step: OutlineStep) -> None:
        reads = [self._read(read, step.recording) for read in step.reads]
        forms = [self._forms[number] for number in reads]
        call = step.call
        if step.way is StepKind.STACKED:
            stacked = tuple([form is None or form.stacked for form in forms])
            self._act(Action(call.runner(stacked), reads, None))
            self._value(slot, Form(call.out.shape, any(stacked)))
        elif step.way is StepKind.SUM:
            self._act(Action(_summed, reads, step.rows))
            self._value(slot, Form(call.out.shape, stacked=True))
        else:
            self._act(Action(_on_rows(call, forms), reads, step.rows))
            self._value(slot, None)

    def _act(self, action: Action) -> None:
        self.actions[-1][1].append(action)

    def _read(self, read: Read, recording: bool) -> int:
        """The number of a value; of a part of it, or in another shape, which is made once."""
        number = self._numbers[read.slot]
        form = self._forms[number]
        if form is None or read.offset is None or (read.offset == 0 and read.shape == form.shape):
            return number
        slot = self._numbers.get((read, recording))
        if slot is None:
            self._act(Action(_view(form, read.offset, read.shape), [number], None))
            slot = self._value((read, recording), Form(read.shape, form.stacked))
        return slot


def _view(form: Form, offset: int, shape: Shape) -> Runner:
    """Elements of each value from an offset on, in a shape."""
    size = math.prod(shape)
    whole = size == math.prod(form.shape)

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        (x,), lead = tensors, (count,) * form.stacked
        if not whole:
            key = (slice(None),) * form.stacked + (slice(offset, offset + size),)
            x = getitem(reshape(x, (*lead, -1)), key)
        return reshaped(x, (*lead, *shape))

    return run


def _summed(tensors: Sequence[Tensor], rows: Segments) -> Tensor:
    result: Tensor = segment_sum.apply(tensors, {"segments": rows})
    return result


def _on_rows(call: OpSignature, forms: Sequence[Form | None]) -> RunStep:
    """An op as it is, where each row of a call meets what that has but once."""
    run, ndim = plain(call.op, call.attrs), len(call.out.shape) - 1
    shapes = [(1,) * (ndim - len(form.shape)) + form.shape if form and form.stacked else None for form in forms]
    if not any(shape is not None for shape in shapes):
        return run

    def repeated(tensors: Sequence[Tensor], rows: Segments) -> Tensor:
        pairs = zip(tensors, shapes, strict=True)
        return run([t if shape is None else _repeated(t, shape, rows) for t, shape in pairs], 0)

    return repeated


def _repeated(x: Tensor, shape: Shape, rows: Segments) -> Tensor:
    """A row for each: what its call has, in a shape."""
    return reshaped(repeat.apply((x,), {"segments": rows}), (len(rows.owner), *shape))


def plan_of(outline: Outline) -> CellPlan:
    """The plan of all outlines that are the same."""
    key = outline.key()
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _MOST:
            _plans.clear()
        plan = _plans[key] = CellPlan(outline)
    return plan


_plans: dict[Hashable, CellPlan] = {}
_MOST = 1024
