"""Recordings: what a cell does with arguments of some kinds, as ops on values that stand for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn, cast

from dynamic.batching.batch import Batch
from dynamic.batching.deferred import Deferred, deferred
from dynamic.batching.nodes import DeferredNode, Elements, ValueKind, View
from dynamic.batching.switch import redirected
from dynamic.tensor import Tensor
from graphs import tree
from graphs.errors import ControlFlowError, located

Function = Callable[..., Any]


class RecordingBatch(Batch):
    """The ops of a cell, which never run as they are. What it knows of tensors serves one cell after another."""

    def __init__(self) -> None:
        super().__init__("depth")

    def settle(self, _value: Deferred) -> NoReturn:
        """Refuse to: there is no value."""
        raise ControlFlowError(
            located(
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
        args, options = tree.unflatten(structure, [self._given(batch, leaf) for leaf in leaves])
        with redirected(batch):
            returned, nesting = tree.flatten_as_inserted(f(*args, **options))
        self.build = _builder(nesting, len(returned))
        self.nodes = batch.taken()
        self._constants = batch.constants
        self.results = [self._result(leaf) if type(leaf) is Deferred else leaf for leaf in returned]

    def _given(self, batch: RecordingBatch, leaf: Any) -> Any:
        if not isinstance(leaf, ValueKind):
            return leaf
        self.inputs.append(DeferredNode(batch.nothing, None, ()))
        self.kinds.append(leaf)
        return deferred(self.inputs[-1], leaf, [])

    def constant_key(self, tensor: Tensor) -> Hashable:
        """Equal for constants that are the same: of two recordings, each has arrays of its own for Python numbers."""
        if tensor.ndim or id(tensor) in self._constants:  # which holds it: it is the user's own
            return id(tensor)
        return tensor.dtype, tensor._data.tobytes()

    def _result(self, value: Deferred) -> CellResult:
        node, offset = seen(value.run)
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


def seen(run: Elements) -> tuple[DeferredNode, int | None]:
    """The node that a run in a cell belongs to, and from where on it is seen when it is a view."""
    return (run.owner, run.offset) if isinstance(run, View) else (cast("DeferredNode", run), None)
