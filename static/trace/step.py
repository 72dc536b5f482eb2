"""Symbols that stand for tensors while a step is traced: they change as the tensors do, in place and by their parts.

A tensor that the step makes by itself, `torch.zeros(3)` and what follows from it, is a constant of the graph, whose
values Python may ask for. `x[i][j] = y` is the value of x from there on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import numpy as np

from graphs import capture, ops, tree
from graphs.blocks import Block, enter
from graphs.builder import Builder
from graphs.dims import Dim
from graphs.dispatch import execute
from graphs.errors import ControlFlowError, locate
from graphs.ir import Node
from static.trace.symbol import Symbol
from static.trace.tracing import current, of_kind

Array = np.ndarray[Any, Any]
Place = tuple[Any, Any, str]
"""What holds a tensor (attributes or globals, a dict or a list), its key there, and the name of the tensor."""


class StepTrace:
    """The trace of a function that holds tensors: what its symbols may be asked for, and what changes them.

    `values` are those of the tensors, by name; `args` are the arguments. Each of these has a symbol of its own, which
    gets another value where its tensor would be changed in place.
    """

    def __init__(self, builder: Builder, values: Mapping[str, Any], args: Sequence[Any] = ()) -> None:
        self.builder = builder
        self.symbols = {name: self.variable(value) for name, value in values.items()}
        self.args: tuple[Any, ...] = tree.tree_map(
            lambda leaf: self.variable(leaf) if isinstance(leaf, Symbol) else leaf, tuple(args)
        )
        self._names = {id(symbol): name for name, symbol in self.symbols.items()}
        self._owned = {id(symbol): symbol for symbol in (*self.symbols.values(), *tree.leaves(self.args))}
        self._constants = _Constants(builder)
        self._parts: dict[int, tuple[Symbol, Symbol, Any]] = {}
        self._changes: list[tuple[Symbol, Node, int]] = []

    @staticmethod
    def variable(value: Any) -> Symbol:
        """A symbol of its own for a value: what changes the one changes no other use of it."""
        return of_kind(value, is_tensor=True)

    def name(self, symbol: Symbol) -> str | None:
        """The tensor that a symbol stands for; None of a result."""
        return self._names.get(id(symbol))

    def holds(self, symbol: Symbol) -> bool:
        """Whether it stands for a tensor of the user's, and changes as that does."""
        return id(symbol) in self._owned

    def symbol_of(self, tensor: Any) -> Symbol | None:
        """What stands for a tensor itself where an op meets it: in a list of the user's, for one."""
        del tensor
        return None

    # What Python asks of a tensor ------------------------------------------------------------------------------------

    def value(self, symbol: Symbol) -> Array | None:
        """The value of a symbol that follows from constants alone; None where a run must tell it."""
        return self._constants.value(symbol)

    def requires_grad(self, symbol: Symbol) -> bool:
        """Whether gradients are taken in what it stands for: here anything may be differentiated inside."""
        del symbol
        return True

    def data(self, symbol: Symbol) -> Any:
        """`symbol.data`: without history; where the symbol stands for a tensor a change of it is one of that."""
        part = symbol.detach()
        if self.holds(symbol):
            self._parts[id(part)] = part, symbol, _WHOLE
        return part

    # Changes in place -------------------------------------------------------------------------------------------------

    def part(self, symbol: Symbol, key: Any) -> Any:
        """`symbol[key]`; where that is a view, a change of it changes the symbol."""
        key = self._plain(key)
        part = ops.index(symbol, key)
        if isinstance(part, Symbol) and part.node.op.view:
            self._parts[id(part)] = part, symbol, key
        return part

    def set_part(self, symbol: Symbol, key: Any, value: Any) -> None:
        """`symbol[key] = value`."""
        self.assign(symbol, ops.setitem(symbol, value, self._plain(key)))

    def assign(self, symbol: Symbol, result: Any) -> Any:
        """Let a symbol stand for another value, and what it is a part of for what holds that."""
        if id(symbol) in self._parts:
            _, whole, key = self._parts[id(symbol)]
            self.assign(whole, result if key is _WHOLE else ops.setitem(whole, result, key))
            symbol.node = _part_of(whole, key).node
        elif self.holds(symbol):
            self._change(symbol, _new_value(symbol, result).node)
        else:
            symbol._overwrite(result)
        return symbol

    def _change(self, symbol: Symbol, node: Node) -> None:
        """Let a symbol that stands for a tensor have the value of a node, and its parts be those of that value."""
        self._changes.append((symbol, symbol.node, len(self.builder.nodes)))
        symbol.node = node
        self._renew_parts(symbol)

    def check_views(self) -> None:
        """Raise ControlFlowError where a view of a tensor is used after that changed: the graph has its old value."""
        nodes = self.builder.nodes
        for symbol, before, count in self._changes:
            views = {before}
            for node in nodes[:count]:
                if not node.is_source and node.op.view and node.inputs[0] in views:
                    views.add(node)
            for node in nodes[count:]:
                if not views.isdisjoint(node.inputs):
                    raise ControlFlowError(
                        locate(
                            f"{node.op.name} takes a view of {self.name(symbol) or 'an argument'} from before that "
                            "changed in place; take the view anew behind the change, or a clone() before it",
                            node.source,
                        )
                    )

    def _renew_parts(self, whole: Symbol) -> None:
        """Let the parts of a symbol be those of its value now."""
        for part, other, key in list(self._parts.values()):
            if other is whole and part.builder is whole.builder:
                part.node = _part_of(whole, key).node
                self._renew_parts(part)

    def _plain(self, key: Any) -> Any:
        """A key with arrays for symbols whose values are known."""
        if isinstance(key, tuple):
            return tuple(map(self._plain, key))
        value = self.value(key) if isinstance(key, Symbol) else None
        return key if value is None else value

    # What the dynamic engine asks -------------------------------------------------------------------------------------

    def made(self, leaf: Any) -> Any:
        """A tensor that is made of none, as a constant of the graph in memory of its own."""
        return leaf if current() is None else self.variable(leaf.numpy(force=True))

    def stacked(self, data: Any, dtype: Any) -> Any:
        """`tensor(data)` of numbers some of which are symbols: their values without history; None where none is."""
        if not any(isinstance(leaf, Symbol) for leaf in tree.leaves(data)):
            return None
        values = ops.stop_gradient(_stack_rows(data))
        return self.variable(values if dtype is None else values.to(dtype))

    def checkpoint(self, call: Any) -> Any:
        """What a checkpoint gives: the graph keeps what it computes."""
        return call()

    def step(self, optimizer: Any, _: Any) -> Any:
        """`optimizer.step(closure)`. Raises ControlFlowError: only a training step has updates."""
        raise ControlFlowError(
            locate(f"{type(optimizer).__name__}.step is called in a function that is traced; use static.trace_step")
        )

    def zero_grad(self, optimizer: Any) -> None:
        """`optimizer.zero_grad()`: there are no gradients to forget."""


class stepping(Block):  # noqa: N801
    """Inside, symbols of this trace are what a step takes for its tensors."""

    def __init__(self, trace: StepTrace) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        enter(capture.step_traces, self.hold(), (get_ident(), self._trace))
        self._trace.builder.saving += 1  # what is traced may be differentiated inside

    def finish(self, _kind: Any, _error: Any, _trace: Any, /) -> None:  # type: ignore[override]
        """See the base."""
        self._trace.builder.saving -= 1


@contextmanager
def place_values(places: Sequence[Place], values: Mapping[str, Any]) -> Iterator[None]:
    """Inside, other values stand where some tensors do."""
    chosen = [(space, key, values[name]) for space, key, name in places if name in values]
    before = [(space, key, at(space, key)) for space, key, _ in chosen]
    try:
        for space, key, value in chosen:
            space[key] = value
        yield
    finally:
        for space, key, tensor in before:
            space[key] = tensor


def at(space: Any, key: Any) -> Any:
    """What stands in a place; None where a dict has nothing there."""
    return space.get(key) if isinstance(space, dict) else space[key]


def _new_value(symbol: Symbol, value: Any) -> Any:
    """A value in the dtype and shape of a tensor. Raises ControlFlowError in a branch or a loop of the graph."""
    if current() is not symbol.builder:
        raise ControlFlowError(
            locate(
                "a parameter changes where only the run knows whether that is reached; change it in any case, by "
                "torch.where(condition, new, parameter)"
            )
        )
    value = ops.astype(value, symbol.dtype) if value.dtype != symbol.dtype else value
    return ops.broadcast_to(value, symbol.shape) if value.shape != symbol.shape else value


_WHOLE = object()
"""The key of a part that is all of a symbol, without its history."""


def _part_of(whole: Symbol, key: Any) -> Symbol:
    part: Symbol = whole.detach() if key is _WHOLE else ops.index(whole, key)
    return part


def _stack_rows(data: Any) -> Any:
    return ops.stack([_stack_rows(row) for row in data]) if isinstance(data, (list, tuple)) else ops.asarray(data)


class _Constants:
    """The values in a graph that follow from constants alone."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._count, self._nodes = 0, set[Node]()
        self._values: dict[Node, Array] = {}

    def value(self, symbol: Any) -> Array | None:
        """The value of a symbol; None where a run must tell it."""
        for new in self._builder.nodes[self._count :]:
            if not new.is_input and not new.subgraphs and all(source in self._nodes for source in new.inputs):
                self._nodes.add(new)
        self._count = len(self._builder.nodes)
        return self._computed(symbol.node) if symbol.node in self._nodes else None

    def _computed(self, node: Node) -> Array | None:
        if node not in self._values:
            if node.is_constant:
                if isinstance(node.attrs["value"], Dim):
                    return None
                self._values[node] = np.asarray(node.attrs["value"], node.attrs["dtype"])
            else:
                sources = [self._computed(source) for source in node.inputs]
                if any(source is None for source in sources):
                    return None
                self._values[node] = execute(node.op, sources, dict(node.attrs))
        return self._values[node]
