"""Cells: functions that are deferred a call at a time, and not an op at a time, which costs a tenth."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from dynamic import mode
from dynamic.batching.batch import Batch
from dynamic.batching.deferred import Deferred, deferred
from dynamic.batching.groups import RUNNERS, blame, column_of, stacked
from dynamic.batching.memory import reshaped
from dynamic.batching.nodes import Block, Kind, Node, Part, Run, Several, View
from dynamic.batching.rules import Column, Shape, full
from dynamic.batching.signatures import Bundle, How
from dynamic.batching.switch import redirected, state
from dynamic.tensor import Tensor
from graphs import tree
from graphs.errors import ControlFlowError, GraphError, located
from graphs.ops.movement import identity, reshape
from graphs.ops.slicing import getitem

Function = Callable[..., Any]


def cell(f: Function) -> Function:
    """Let batches take a call of `f` as one op: a decorator for the step of an RNN, or the node of a tree.

    Inside a `batched` block `f` runs once for each structure and each specs of its arguments; its later calls only
    repeat those ops on their own tensors. So it must be a function of its arguments, and what it does may hang on
    their structure, shapes and plain Python values, but not on what tensors hold. Elsewhere it is `f` itself.
    Raises ControlFlowError when it looks at a value.
    """

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        batch = state.batch
        if batch is None or isinstance(batch, _Recording):
            return f(*args, **options)
        return _defer(batch, f, args, options)

    return call


class _Recording(Batch):
    """The ops of a cell, which never run as they are."""

    def __init__(self) -> None:
        super().__init__("depth")

    def settle(self, _value: Deferred) -> NoReturn:
        raise ControlFlowError(
            located(
                "a cell needs the value of a tensor, but runs once for many; choose values with graphs.where, "
                "or leave the function undecorated"
            )
        )

    def nodes(self) -> list[Node]:
        """The ops, each after those it reads."""
        return [node for level in sorted(self._levels, key=lambda level: level.depth) for node in level.nodes]


class _Result(NamedTuple):
    """A leaf of what a cell returns: an input (its number) or an output (its number, or -1), and a view of that."""

    kind: Kind
    input: int
    output: int
    size: int
    offset: int | None


class _Call:
    """What a cell does with arguments of some kinds.

    inputs    what stands for the arguments that differ between calls
    nodes     its ops
    outputs   those of its nodes that make what it returns
    results   the leaves of that; a leaf that is no value to come is as it is
    """

    how = How.CELL
    roles = None

    def __init__(self, f: Function, leaves: Sequence[Any], structure: tree.Structure) -> None:
        recording = _Recording()
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        args, options = tree.unflatten(structure, [self._given(recording, leaf) for leaf in leaves])
        with redirected(recording):
            returned, self.structure = tree.flatten(f(*args, **options))
        self.nodes = recording.nodes()
        self.ops = len(self.nodes)
        self.results = [self._result(leaf) if type(leaf) is Deferred else leaf for leaf in returned]

    def _given(self, recording: _Recording, leaf: Any) -> Any:
        if not isinstance(leaf, Kind):
            return leaf
        self.inputs.append(Node(recording.nothing, None, ()))
        return deferred(self.inputs[-1], leaf, [])

    def _result(self, value: Deferred) -> _Result:
        node, offset = _seen(value.run)
        if node in self.inputs:
            return _Result(value.kind, self.inputs.index(node), -1, 0, offset)
        if node not in self.outputs:
            self.outputs.append(node)
        size = value.kind.size if offset is None else _size(node)
        return _Result(value.kind, -1, self.outputs.index(node), size, offset)


def _size(node: Node) -> int:
    return node.block.size if node.level.ran else node.signature.out.size  # only constants have run


def _seen(run: Run) -> tuple[Node, int | None]:
    """The node that a run in a cell belongs to, and from where on it is seen when it is a view."""
    return (run.owner, run.offset) if isinstance(run, View) else (cast("Node", run), None)


class _Signature:
    """The calls of a cell that one group may hold, in one batch."""

    def __init__(self, call: _Call, kinds: Sequence[Kind]) -> None:
        self.call, self.kinds = call, kinds
        self.bundle = Bundle(mode.is_grad_enabled())


# Deferring ----------------------------------------------------------------------------------------------------------


def _defer(batch: Batch, f: Function, args: Any, options: Any) -> Any:
    leaves, structure = tree.flatten((args, options))
    key: list[Any] = [f, structure, mode.is_grad_enabled()]
    inputs: list[Run] = []
    depth = 0
    for leaf in leaves:
        value = leaf if type(leaf) is Deferred else batch.known.get(id(leaf))
        if value is None:
            if not isinstance(leaf, (Tensor, np.ndarray)):
                key.append((type(leaf), repr(leaf) if type(leaf) is float else leaf))
                continue
            value = batch.constant(identity, leaf, (leaf,))
        kind = value.kind
        key.append(kind)
        if not kind.parameter:  # a parameter is the same in all calls of one signature
            inputs.append(value.run)
            if value.run.level.depth > depth:
                depth = value.run.level.depth
    signature = batch.cells.get(tuple(key)) or _signature(batch, key, leaves)
    level = signature.bundle.levels.get(depth) or batch.level(signature.bundle, depth)
    node = Several(level, signature, inputs)
    level.nodes.append(node)
    results = [_result(batch, node, r) if type(r) is _Result else r for r in signature.call.results]
    return tree.unflatten(signature.call.structure, results)


def _signature(batch: Batch, key: list[Any], leaves: Sequence[Any]) -> _Signature:
    f, structure, _, *parts = key
    given = [p if type(p) is Kind and not p.parameter else leaf for p, leaf in zip(parts, leaves, strict=True)]
    signature = _Signature(_Call(f, given, structure), [g for g in given if type(g) is Kind])
    batch.cells[tuple(key)] = signature
    return signature


def _result(batch: Batch, node: Several, result: _Result) -> Deferred:
    run = node.inputs[result.input] if result.output < 0 else Part(node, result.output, result.size)
    return deferred(run if result.offset is None else View(run, result.offset), result.kind, batch.values)


# Running ------------------------------------------------------------------------------------------------------------


def _run(group: Sequence[Node]) -> None:
    call: Any = group[0].signature.call
    columns: dict[Node, Column] = {}
    for j, (source, kind) in enumerate(zip(call.inputs, group[0].signature.kinds, strict=True)):
        columns[source] = column_of([node.inputs[j] for node in group], kind)
    for node in call.nodes:
        with mode.set_grad_enabled(node.signature.bundle.recording):
            columns[node] = _op(node, columns, len(group))
    made = [columns[node] if node in columns else Column(node.block.tensor, stacked=False) for node in call.outputs]
    blocks = [Block(full(column, len(group))) for column in made]
    for i, node in enumerate(group):
        cast("Several", node).blocks, node.start = blocks, i


def _op(node: Node, columns: dict[Node, Column], count: int) -> Column:
    """One op of the cell, for all calls in a group."""
    signature = node.signature
    inputs = [_column(run, kind.shape, columns) for run, kind in zip(node.inputs, signature.kinds, strict=True)]
    try:
        return stacked(signature.call, inputs, count)
    except GraphError:
        for i in range(count):
            blame(signature.call, [column.row(i) for column in inputs], getattr(node, "line", ""))
        raise


def _column(run: Run, shape: Shape, columns: dict[Node, Column]) -> Column:
    """What an op of the cell reads."""
    node, offset = _seen(run)
    column = columns.get(node) or Column(node.block.tensor, stacked=False)
    if offset is None:
        return column
    tensor, size = column.tensor, math.prod(shape)
    lead = tensor.shape[:1] if column.stacked else ()
    if size != math.prod(column.shape):
        every = (slice(None),) * len(lead)
        tensor = getitem(reshape(tensor, (*lead, -1)), (*every, slice(offset, offset + size)))
    return Column(reshaped(tensor, (*lead, *shape)), column.stacked)


RUNNERS[How.CELL] = _run
