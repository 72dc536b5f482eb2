"""Cells: functions that are deferred call by call, not op by op, at a tenth of the cost.

First `cell` and the deferring of calls, then plans: how the calls of a cell in one group run together. A plan is made
once and serves all batches.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from dynamic import grad_mode
from dynamic.batching.batch import Batch
from dynamic.batching.deferred import DeferredTensor, defer_value
from dynamic.batching.groups import RUNNERS, blame, column_of
from dynamic.batching.moves import (
    IntArray,
    Segments,
    gather_runs,
    locate_runs,
    part,
    repeat,
    reshape_if_needed,
    segment_sum,
)
from dynamic.batching.nodes import (
    Bundle,
    DeferredNode,
    Elements,
    GroupValues,
    How,
    OpSignature,
    ResultPart,
    Several,
    View,
)
from dynamic.batching.outlines import (
    CellResult,
    Function,
    Join,
    Outline,
    OutlineStep,
    Recording,
    RecordingBatch,
    Slot,
    StepKind,
    StepRead,
    node_of_run,
    outline,
)
from dynamic.batching.rules import Form, Roles, Runner, Shape, full, plain
from dynamic.tensor import Tensor
from graphs import tree
from graphs.errors import GraphError
from graphs.ops.movement import reshape
from graphs.ops.slicing import getitem


def cell(f: Function) -> Function:
    """Let batches take a call of `f` as one op: a decorator for the step of an RNN, or the node of a tree.

    Inside a `batched` block `f` runs once for each structure and specs of its arguments. Later calls only repeat the
    recorded ops on their own tensors. So `f` must be a function of its arguments, and its ops may depend on their
    structure, shapes and plain Python values, but not on the values of tensors. Outside of a block the result is `f`
    itself. Raises ControlFlowError when `f` reads a value.
    """

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        batch = grad_mode.now().batch
        if batch is None or isinstance(batch, RecordingBatch):
            return f(*args, **options)
        key: list[Any] = [f, grad_mode.now().recording]
        inputs: list[Elements] = []
        _look_at((args, options), batch, key, inputs)
        cell_key = tuple(key)
        signature = batch.cells.get(cell_key) or batch.cells.setdefault(cell_key, _sign(batch, f, args, options))
        depth = max([run.level.depth for run in inputs], default=0)
        level = signature.bundle.levels.get(depth) or batch.level(signature.bundle, depth)
        node = Several(level, signature, [inputs[i] for i in signature.order])
        level.nodes.append(node)
        return signature.build(
            [_value(batch, node, inputs, r) if type(r) is CellResult else r for r in signature.results]
        )

    return call


class CellSignature:
    """The signature of all calls of a cell with arguments of the same kinds, in one batch.

    call     the plan, which other signatures may share
    kinds    the kinds of the first inputs of a node, the singles; the members of joins follow these
    order    for each input of a node the number of the recording's input
    """

    __slots__ = ("build", "bundle", "call", "constants", "joins", "kinds", "lengths", "order", "recording", "results")

    def __init__(self, recording: Recording, outline_: Outline, plan: CellPlan, bundle: Bundle) -> None:
        self.call, self.bundle, self.recording = plan, bundle, recording
        self.kinds, self.constants, self.lengths = outline_.kinds, outline_.constants, outline_.lengths
        self.results, self.build = recording.results, recording.build
        members = [member for join in outline_.members for member in join]
        self.order = (*outline_.singles, *[member.input for member in members])
        self.joins: list[_JoinSource] = []
        position = len(outline_.singles)
        for join in outline_.members:
            self.joins.append(_JoinSource(slice(position, position + len(join)), join))
            position += len(join)


class _JoinSource:
    """The slice of a node's inputs that a join takes, and the offset and size of the elements it reads of each."""

    def __init__(self, inputs: slice, members: Sequence[Any]) -> None:
        self.inputs = inputs
        self.offsets = [member.offset for member in members]
        self.sizes = [member.size for member in members]


# Deferring ----------------------------------------------------------------------------------------------------------


def _look_at(values: Iterable[Any], batch: Batch, key: list[Any], inputs: list[Elements]) -> None:
    """Extend a cell's key by what all calls of one signature share, and `inputs` by the tensors that may differ.

    The commonest containers are taken apart here, in a third of the time of optree, which gets all others.
    """
    constants = batch.constants
    for value in values:
        kind = type(value)
        if kind is DeferredTensor:
            key.append(value.kind)
            inputs.append(value.run)
        elif kind is Tensor or isinstance(value, _ARRAYS):
            constant = constants.get(id(value))
            if constant is None:
                constant = batch.value_of(value)
            key.append(constant.kind)
            if not constant.kind.parameter:  # a parameter is the same in all calls of one signature
                inputs.append(constant.run)
        elif kind is dict:
            key += (dict, len(value), *value)
            _look_at(value.values(), batch, key, inputs)
        elif kind is list or kind is tuple:
            key += (kind, len(value))
            _look_at(value, batch, key, inputs)
        else:
            leaves, structure = tree.flatten_as_inserted(value)
            if leaves and leaves[0] is value:
                key += (kind, repr(value) if kind is float else value)
            else:
                key += (type(structure), structure)
                _look_at(leaves, batch, key, inputs)


def _sign(batch: Batch, f: Function, args: tuple[Any, ...], options: dict[str, Any]) -> CellSignature:
    """The signature of a call, for which `f` runs once. Calls of equal plans run together, also of different cells."""
    leaves, structure = tree.flatten_as_inserted((args, options))
    recorder = batch.cells.get(RecordingBatch) or batch.cells.setdefault(RecordingBatch, RecordingBatch())
    recording = Recording(recorder, f, [_stand_in(batch, leaf) for leaf in leaves], structure)
    cell_outline = outline(recording)
    plan = plan_of(cell_outline)
    where = (plan, grad_mode.is_grad_enabled(), tuple(map(recording.constant_key, cell_outline.constants)))
    bundle = batch.cells.get(where) or batch.cells.setdefault(where, Bundle(grad_mode.is_grad_enabled()))
    return CellSignature(recording, cell_outline, plan, bundle)


_ARRAYS = Tensor, np.ndarray


def _stand_in(batch: Batch, leaf: Any) -> Any:
    """The kind of a tensor argument that may differ between calls of one signature; other arguments unchanged."""
    if not isinstance(leaf, _ARRAYS):
        return leaf
    kind = (leaf if type(leaf) is DeferredTensor else batch.value_of(leaf)).kind
    return leaf if kind.parameter else kind


def _value(batch: Batch, node: Several, inputs: Sequence[Elements], result: CellResult) -> DeferredTensor:
    run = inputs[result.input] if result.output < 0 else ResultPart(node, result.output, result.size)
    return defer_value(run if result.offset is None else View(run, result.offset), result.kind, batch.values)


# Running ------------------------------------------------------------------------------------------------------------


def _run(group: list[DeferredNode]) -> None:
    signature: Any = group[0].signature
    plan: CellPlan = signature.call
    columns = [column_of([node.inputs[j] for node in group], kind) for j, kind in enumerate(signature.kinds)]
    joins = [_join(group, number, join) for number, join in enumerate(plan.joins)]
    lengths = zip(*[cast("Any", node.signature).lengths for node in group], strict=True)
    rows = [_segments(np.array(each)) for each in lengths]
    stacked = tuple([column.stacked for column in columns])
    singles = [column.tensor for column in columns]
    try:
        outputs = plan.run(singles, stacked, [*joins, *signature.constants], rows, len(group))
    except GraphError:
        for node in group:
            _blame(node)
        raise
    blocks = [GroupValues(output) for output in outputs]
    for i, node in enumerate(group):
        cast("Several", node).blocks, node.start = blocks, i


def _segments(lengths: IntArray) -> Segments:
    return Segments(np.repeat(np.arange(len(lengths)), lengths), np.cumsum(lengths) - lengths)


def _join(group: Sequence[DeferredNode], number: int, join: Join) -> Tensor:
    """Gather the members of one join from all calls in a group, one after the other."""
    runs: list[Elements] = []
    offsets: list[int] = []
    sizes: list[int] = []
    for node in group:
        joined = cast("Any", node.signature).joins[number]
        runs += node.inputs[joined.inputs]
        offsets += joined.offsets
        sizes += joined.sizes
    shape = (len(group), *join.shape)
    if join.rows is not None:
        shape = (sum([cast("Any", node.signature).lengths[join.rows] for node in group]), *join.shape)
    each = sizes[0] if sizes.count(sizes[0]) == len(sizes) else sizes
    with grad_mode.recording(join.recording):
        return gather_runs(locate_runs(runs, each, offsets if any(offsets) else ()), shape)


def _blame(node: DeferredNode) -> None:
    """Run one call op by op, and raise the error of the op that fails; no error if this call is not to blame."""
    signature: Any = node.signature
    recording: Recording = signature.recording
    values: dict[DeferredNode, GroupValues] = {}
    for number, run in zip(signature.order, node.inputs, strict=True):
        values[recording.inputs[number]] = GroupValues(part(run.block, run.start, recording.kinds[number].shape))
    for op in recording.nodes:
        inputs = []
        for run, kind in zip(op.inputs, op.signature.kinds, strict=True):
            source, offset = node_of_run(run)
            inputs.append(part(values.get(source) or source.block, offset or 0, kind.shape))
        blame(op.signature.call, inputs, getattr(op, "line", ""))
        values[op] = GroupValues(op.signature.call.op.apply(inputs, op.signature.call.attrs))


RUNNERS[How.CELL] = _run


RunStep = Callable[[Sequence[Tensor], Any], Tensor]


class Action(NamedTuple):
    """A step ready to run: it reads the values `reads`, and takes segments number `rows`, or the count of calls."""

    run: RunStep
    reads: list[int]
    rows: int | None


class CellPlan:
    """The plan of a group of calls with equal outlines."""

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
        """Run the plan: the outputs of all calls, stacked on a first axis.

        `singles` are stacked, or shared by all calls; `others` are the joins and the constants.
        """
        compiled = self._compiled.get(stacked)
        if compiled is None:
            compiled = self._compiled[stacked] = _Compiler(self, stacked)
        values = [*singles, *others]
        for recording, actions in compiled.actions:
            with grad_mode.recording(recording):
                for run, reads, number in actions:
                    values.append(run([values[i] for i in reads], count if number is None else rows[number]))
        return [full(values[i], form, count) for i, form in compiled.outputs]


class _Compiler:
    """Compiles the steps of a plan to actions, for a choice of stacked singles.

    actions   lists of actions in the order of running, each with whether it is recorded
    outputs   the numbers of the output values, and their forms
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
            self._act(Action(_sum_segments, reads, step.rows))
            self._value(slot, Form(call.out.shape, stacked=True))
        else:
            self._act(Action(_on_rows(call, forms), reads, step.rows))
            self._value(slot, None)

    def _act(self, action: Action) -> None:
        self.actions[-1][1].append(action)

    def _read(self, read: StepRead, recording: bool) -> int:
        """The number of the value that a step reads; a part or another shape of a value is made once."""
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
    """Make the runner that takes elements of each value from `offset` on, in `shape`."""
    size = math.prod(shape)
    whole = size == math.prod(form.shape)

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        (x,), lead = tensors, (count,) * form.stacked
        if not whole:
            key = (slice(None),) * form.stacked + (slice(offset, offset + size),)
            x = getitem(reshape(x, (*lead, -1)), key)
        return reshape_if_needed(x, (*lead, *shape))

    return run


def _sum_segments(tensors: Sequence[Tensor], rows: Segments) -> Tensor:
    result: Tensor = segment_sum.apply(tensors, {"segments": rows})
    return result


def _on_rows(call: OpSignature, forms: Sequence[Form | None]) -> RunStep:
    """Make a step that runs an op on the rows of all calls; inputs that a call has once are repeated for its rows."""
    run, ndim = plain(call.op, call.attrs), len(call.out.shape) - 1
    shapes = [(1,) * (ndim - len(form.shape)) + form.shape if form and form.stacked else None for form in forms]
    if not any(shape is not None for shape in shapes):
        return run

    def repeat(tensors: Sequence[Tensor], rows: Segments) -> Tensor:
        pairs = zip(tensors, shapes, strict=True)
        return run([t if shape is None else _repeat_rows(t, shape, rows) for t, shape in pairs], 0)

    return repeat


def _repeat_rows(x: Tensor, shape: Shape, rows: Segments) -> Tensor:
    """Repeat the value of each call, reshaped to `shape`, for each of its rows."""
    return reshape_if_needed(repeat.apply((x,), {"segments": rows}), (len(rows.owner), *shape))


def plan_of(outline: Outline) -> CellPlan:
    """The cached plan for all equal outlines."""
    key = outline.key()
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _MOST:
            _plans.clear()
        plan = _plans[key] = CellPlan(outline)
    return plan


_plans: dict[Hashable, CellPlan] = {}
_MOST = 1024
