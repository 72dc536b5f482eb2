"""Symbols that stand for tensors while a step is traced: they change as the tensors do, in place and by their parts.

A tensor that the step itself makes, like `torch.zeros(3)`, is a constant of the graph, and Python may ask for its
values. After `x[i][j] = y` the symbol of x stands for the changed value. Read `StepTrace` first; the rest helps it.
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
from graphs.errors import ControlFlowError, locate
from graphs.ir import Node
from static.trace.symbol import Symbol
from static.trace.tracing import current, of_kind
from static.trace.views import known_value, picks_one

Array = np.ndarray[Any, Any]
Place = tuple[Any, Any, str]
"""The holder of a tensor (attributes or globals, a dict or a list), the tensor's key in it, and the tensor's name."""


class StepTrace:
    """The trace of a function that holds tensors: it answers questions about symbols and changes them in place.

    `values` are the values of the tensors, by name; `args` are the arguments. Each tensor and argument has a symbol of
    its own, which gets another value where its tensor would be changed in place.
    """

    def __init__(self, builder: Builder, values: Mapping[str, Any], args: Sequence[Any] = ()) -> None:
        self.builder = builder
        self.symbols = {name: self.variable(value) for name, value in values.items()}
        self.args: tuple[Any, ...] = tree.tree_map(
            lambda leaf: self.variable(leaf) if isinstance(leaf, Symbol) else leaf, tuple(args)
        )
        self._names = {id(symbol): name for name, symbol in self.symbols.items()}
        self._owned = {id(symbol): symbol for symbol in (*self.symbols.values(), *tree.leaves(self.args))}
        self._parts: dict[int, tuple[Symbol, Symbol, Any]] = {}
        self._start_of_args = [getattr(leaf, "node", None) for leaf in tree.leaves(self.args)]
        self._changes: list[tuple[Symbol, Node, Node, int]] = []
        self._values = {symbol.node for symbol in self.symbols.values()}  # of tensors, before and after each change

    @staticmethod
    def variable(value: Any) -> Symbol:
        """Return a symbol of its own for a value, so that a change of this symbol changes no other use of the value."""
        return of_kind(value, is_tensor=True)

    def name(self, symbol: Symbol) -> str | None:
        """Return the name of the tensor that a symbol stands for, None for a computed result."""
        return self._names.get(id(symbol))

    def holds(self, symbol: Symbol) -> bool:
        """Whether a symbol stands for a tensor of the user, and so changes as the tensor does."""
        return id(symbol) in self._owned

    def own(self, symbol: Symbol) -> Symbol:
        """Return the symbol, which stands for a tensor of the user from now on."""
        self._owned[id(symbol)] = symbol
        return symbol

    def is_shared(self, symbol: Any) -> bool:
        """Whether a symbol is a tensor that the step trains or changes, or a view of one."""
        return self.name(symbol) is not None or id(symbol) in self._parts

    def follows(self, symbol: Symbol) -> bool:
        """Whether a change of a symbol changes a tensor of the user: it stands for one, or for a part of one."""
        return self.holds(symbol) or id(symbol) in self._parts

    def changed_args(self) -> dict[int, Symbol]:
        """Return the present values of arguments that the function has changed in place, by the number of the leaf."""
        leaves = enumerate(zip(tree.leaves(self.args), self._start_of_args, strict=True))
        return {i: leaf for i, (leaf, start) in leaves if isinstance(leaf, Symbol) and leaf.node is not start}

    def symbol_of(self, tensor: Any) -> Symbol | None:
        """Return the symbol of a tensor that an op meets directly, as in a list of the user; here always None."""
        del tensor
        return None

    # What Python asks of a tensor ------------------------------------------------------------------------------------

    def value(self, symbol: Symbol) -> Array | None:
        """Return the value of a symbol that follows from constants alone, None where only a run can tell it."""
        return known_value(symbol)

    def requires_grad(self, symbol: Symbol) -> bool:
        """Whether gradients are taken in a symbol's tensor: here any tensor may be differentiated inside."""
        del symbol
        return True

    def is_gradient(self, symbol: Symbol) -> bool:
        """Whether a symbol is the gradient that a tensor has; here none has one."""
        del symbol
        return False

    def data(self, symbol: Symbol) -> Any:
        """Return `symbol.detach()`, or its `data`; a change of it changes a symbol for a tensor or for its gradient."""
        part = ops.stop_gradient(symbol)
        if self.holds(symbol) or self.is_gradient(symbol):
            self._parts[id(part)] = part, symbol, _WHOLE
        return part

    # Changes in place -------------------------------------------------------------------------------------------------

    def part(self, symbol: Symbol, key: Any) -> Any:
        """Return `symbol[key]`; where that is a view, a change of it changes the symbol."""
        key = self._plain(key)
        part = symbol._part(key)
        if isinstance(part, Symbol) and (part.node.op.view or picks_one(part.node)):
            self._parts[id(part)] = part, symbol, key
        return part

    def set_part(self, symbol: Symbol, key: Any, value: Any) -> None:
        """Do `symbol[key] = value`."""
        self.assign(symbol, symbol._with_part(value, self._plain(key)))

    def assign(self, symbol: Symbol, result: Any) -> Any:
        """Let a symbol stand for another value; where it is a part of another symbol, change that symbol too."""
        if id(symbol) in self._parts:
            _, whole, key = entry = self._parts[id(symbol)]
            if key is _WHOLE:  # the memory of both changes, and the history is that of this one alone
                new = _new_value(symbol, result)
                del self._parts[id(symbol)]
                self.assign(whole, ops.stop_gradient(new))
                symbol.node, self._parts[id(symbol)] = new.node, entry
                self._renew_parts(symbol)
            else:
                self.assign(whole, whole._with_part(result, key))
                symbol.node = _part_of(whole, key).node
        elif self.holds(symbol):
            self._change(symbol, _new_value(symbol, result).node)
        else:
            symbol._overwrite(result)
        return symbol

    def _change(self, symbol: Symbol, node: Node) -> None:
        """Let a tensor's symbol stand for another node, and update the symbols of its parts."""
        self._changes.append((symbol, symbol.node, node, len(self.builder.nodes)))
        symbol.node = node
        self._values.add(node)
        self._renew_parts(symbol)

    def check_views(self) -> None:
        """Raise ControlFlowError where a view of a tensor is used after that changed: the graph has its old value."""
        changes = {before: (symbol, count) for symbol, before, _, count in self._changes}
        values = {after for _, _, after, _ in self._changes}  # a tensor that was given a view has a copy of it
        origins = {before: before for before in changes}  # of each view: the value of a tensor that it shows
        for number, node in enumerate(self.builder.nodes):
            for source in node.inputs:
                if source not in origins:
                    continue
                symbol, count = changes[origins[source]]
                if number >= count:
                    raise ControlFlowError(
                        locate(
                            f"{node.op.name} takes a view of {self.name(symbol) or 'an argument'} from before that "
                            "changed in place; take the view anew behind the change, or a clone() before it",
                            node.source,
                        )
                    )
            if not node.is_source and node.op.view and node.inputs[0] in origins and node not in values:
                origins[node] = origins[node.inputs[0]]

    def _renew_parts(self, whole: Symbol) -> None:
        """Recompute the parts of a symbol from its present value."""
        for part, other, key in list(self._parts.values()):
            if other is whole and part.builder is whole.builder:
                if key is _WHOLE and self._has_history(part.node):
                    rule = "what detach() gave was changed and has a history, and the tensor of the same memory changes"
                    raise ControlFlowError(locate(f"{rule}; take a clone() of it, or detach() again"))
                part.node = _part_of(whole, key).node
                self._renew_parts(part)

    def _has_history(self, node: Node) -> bool:
        """Whether the gradient of a node goes back to a tensor of the step."""
        ahead, met = [] if node in self._values else [node], {node}
        while ahead:
            node = ahead.pop()
            if node in self._values:
                return True
            rules = enumerate(() if node.is_source else node.inputs)
            new = [source for i, source in rules if node.op.rule(i) is not None or node.subgraphs]
            ahead += [source for source in new if source not in met]
            met.update(new)
        return False

    def _plain(self, key: Any) -> Any:
        """Return a key with arrays for the symbols whose values are known."""
        if isinstance(key, tuple):
            return tuple(map(self._plain, key))
        value = self.value(key) if isinstance(key, Symbol) else None
        return key if value is None else value

    # What the dynamic engine asks -------------------------------------------------------------------------------------

    def stacked(self, data: Any, dtype: Any) -> Any:
        """Return `tensor(data)` of numbers and symbols, without history; None where no number is a symbol."""
        if not any(isinstance(leaf, Symbol) for leaf in tree.leaves(data)):
            return None
        values = ops.stop_gradient(_stack_rows(data))
        return self.variable(values if dtype is None else values.to(dtype))

    def checkpoint(self, call: Any) -> Any:
        """Return the result of a checkpointed call: the graph decides itself what it keeps."""
        return call()

    def step(self, optimizer: Any, _: Any) -> Any:
        """Raise ControlFlowError for `optimizer.step(closure)`: only a training step has updates."""
        raise ControlFlowError(
            locate(f"{type(optimizer).__name__}.step is called in a function that is traced; use static.trace_step")
        )

    def zero_grad(self, optimizer: Any) -> None:
        """Do `optimizer.zero_grad()`, which does nothing: there are no gradients to clear."""


class stepping(Block):  # noqa: N801
    """Inside the block a step uses the symbols of this trace for its tensors."""

    def __init__(self, trace: StepTrace) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        enter(capture.step_traces, self.hold(), (get_ident(), self._trace))
        self._trace.builder.saving += 1  # the traced function may be differentiated inside

    def finish(self, _kind: Any, _error: Any, _trace: Any, /) -> None:  # type: ignore[override]
        """End the block: the builder saves no more values for gradients on its behalf."""
        self._trace.builder.saving -= 1


@contextmanager
def place_values(places: Sequence[Place], values: Mapping[str, Any]) -> Iterator[None]:
    """Put other values in the places of some tensors for the length of the block."""
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
    """Return the object at a place, None where a dict has no such key."""
    return space.get(key) if isinstance(space, dict) else space[key]


def _new_value(symbol: Symbol, value: Any) -> Any:
    """Return a value in the dtype and shape of a tensor. Raises ControlFlowError in a branch or a loop of the graph."""
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
"""The key of a part that is the whole symbol, without its history."""


def _part_of(whole: Symbol, key: Any) -> Symbol:
    part: Symbol = ops.stop_gradient(whole) if key is _WHOLE else whole._part(key)
    return part


def _stack_rows(data: Any) -> Any:
    return ops.stack([_stack_rows(row) for row in data]) if isinstance(data, (list, tuple)) else ops.asarray(data)
