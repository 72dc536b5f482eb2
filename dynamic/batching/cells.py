"""Cells: functions that are deferred a call at a time, and not an op at a time, which costs a tenth."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from dynamic import grad_mode
from dynamic.batching.batch import Batch
from dynamic.batching.deferred import Deferred, deferred
from dynamic.batching.groups import RUNNERS, blame, column_of
from dynamic.batching.memory import Indices, gathered, located, part
from dynamic.batching.moves import Segments
from dynamic.batching.nodes import DeferredNode, Elements, GroupValues, ResultPart, Several, View
from dynamic.batching.outlines import Join, Outline, outline
from dynamic.batching.plans import CellPlan, plan_of
from dynamic.batching.recording import CellResult, Function, Recording, RecordingBatch, seen
from dynamic.batching.signatures import Bundle, How
from dynamic.tensor import Tensor
from graphs import tree
from graphs.errors import GraphError


def cell(f: Function) -> Function:
    """Let batches take a call of `f` as one op: a decorator for the step of an RNN, or the node of a tree.

    Inside a `batched` block `f` runs once for each structure and each specs of its arguments; its later calls only
    repeat those ops on their own tensors. So it must be a function of its arguments, and what it does may depend on
    their structure, shapes and plain Python values, but not on what tensors hold. Elsewhere it is `f` itself.
    Raises ControlFlowError when it looks at a value.
    """

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        batch = grad_mode.now().batch
        if batch is None or isinstance(batch, RecordingBatch):
            return f(*args, **options)
        return _defer(batch, f, args, options)

    return call


class CellSignature:
    """The calls of a cell with arguments of the same kinds, in one batch.

    call     the plan, which those of other signatures may share
    kinds    of the inputs that a node has first: the singles. Those that it joins follow
    order    which input of the recording each input of a node is
    """

    __slots__ = ("build", "bundle", "call", "constants", "joins", "kinds", "lengths", "order", "recording", "results")

    def __init__(self, recording: Recording, outline_: Outline, plan: CellPlan, bundle: Bundle) -> None:
        self.call, self.bundle, self.recording = plan, bundle, recording
        self.kinds, self.constants, self.lengths = outline_.kinds, outline_.constants, outline_.lengths
        self.results, self.build = recording.results, recording.build
        members = [member for join in outline_.members for member in join]
        self.order = (*outline_.singles, *[member.input for member in members])
        self.joins: list[_Joined] = []
        position = len(outline_.singles)
        for join in outline_.members:
            self.joins.append(_Joined(slice(position, position + len(join)), join))
            position += len(join)


class _Joined:
    """Where in the inputs of a node those of a join are, and which of their elements it takes."""

    def __init__(self, inputs: slice, members: Sequence[Any]) -> None:
        self.inputs = inputs
        self.offsets = [member.offset for member in members]
        self.sizes = [member.size for member in members]


# Deferring ----------------------------------------------------------------------------------------------------------


def _defer(batch: Batch, f: Function, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    key: list[Any] = [f, grad_mode.now().recording]
    inputs: list[Elements] = []
    _look_at((args, options), batch, key, inputs)
    cell_key = tuple(key)
    signature = batch.cells.get(cell_key) or batch.cells.setdefault(cell_key, _sign(batch, f, args, options))
    depth = max([run.level.depth for run in inputs], default=0)
    level = signature.bundle.levels.get(depth) or batch.level(signature.bundle, depth)
    node = Several(level, signature, [inputs[i] for i in signature.order])
    level.nodes.append(node)
    return signature.build([_value(batch, node, inputs, r) if type(r) is CellResult else r for r in signature.results])


def _look_at(values: Iterable[Any], batch: Batch, key: list[Any], inputs: list[Elements]) -> None:
    """Add to a key what the calls of one signature have in common, and to the inputs what may differ.

    This takes the commonest containers apart itself, in a third of the time of optree, and leaves it the others.
    """
    constants = batch.constants
    for value in values:
        kind = type(value)
        if kind is Deferred:
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
    """The signature of a call, for which `f` is run once. What it does may run with other calls, of whatever cell."""
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
    """The kind of an argument that differs between calls of one signature; any other as it is."""
    if not isinstance(leaf, _ARRAYS):
        return leaf
    kind = (leaf if type(leaf) is Deferred else batch.value_of(leaf)).kind
    return leaf if kind.parameter else kind


def _value(batch: Batch, node: Several, inputs: Sequence[Elements], result: CellResult) -> Deferred:
    run = inputs[result.input] if result.output < 0 else ResultPart(node, result.output, result.size)
    return deferred(run if result.offset is None else View(run, result.offset), result.kind, batch.values)


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


def _segments(lengths: Indices) -> Segments:
    return Segments(np.repeat(np.arange(len(lengths)), lengths), np.cumsum(lengths) - lengths)


def _join(group: Sequence[DeferredNode], number: int, join: Join) -> Tensor:
    """Inputs of all calls in a group, one after the other."""
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
    with grad_mode.set_grad_enabled(join.recording):
        return gathered(located(runs, each, offsets if any(offsets) else ()), shape)


def _blame(node: DeferredNode) -> None:
    """Run one call op by op, and raise what is wrong with it, if it is this one."""
    signature: Any = node.signature
    recording: Recording = signature.recording
    values: dict[DeferredNode, GroupValues] = {}
    for number, run in zip(signature.order, node.inputs, strict=True):
        values[recording.inputs[number]] = GroupValues(part(run.block, run.start, recording.kinds[number].shape))
    for op in recording.nodes:
        inputs = []
        for run, kind in zip(op.inputs, op.signature.kinds, strict=True):
            source, offset = seen(run)
            inputs.append(part(values.get(source) or source.block, offset or 0, kind.shape))
        blame(op.signature.call, inputs, getattr(op, "line", ""))
        values[op] = GroupValues(op.signature.call.op.apply(inputs, op.signature.call.attrs))


RUNNERS[How.CELL] = _run
