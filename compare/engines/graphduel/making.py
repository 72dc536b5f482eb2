"""Tensors that a traced function makes by itself, as PyTorch's programs do: `torch.zeros(3)`, and what follows from it.

They are constants of the graph, whose values Python may ask for. They may be changed in place, through views as well:
`x[i][j] = y` is the value of x from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

import dynamic
from dynamic import creation
from graphs import ops, tree
from graphs.builder import Builder
from graphs.dims import Dim
from graphs.dispatch import execute
from graphs.errors import count_as_ours
from graphs.ir import Node
from static.trace.symbol import Symbol
from static.trace.tracing import current, of_kind

count_as_ours(__file__)

Array = np.ndarray[Any, Any]


class ConstantValues:
    """The values in a graph that follow from constants alone."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._seen, self._nodes = 0, set[Node]()
        self._values: dict[Node, Array] = {}

    def value(self, symbol: Any) -> Array | None:
        """The value of a symbol; None where a run must tell it."""
        node = symbol.node
        for new in self._builder.nodes[self._seen :]:
            if not new.is_input and not new.subgraphs and all(source in self._nodes for source in new.inputs):
                self._nodes.add(new)
        self._seen = len(self._builder.nodes)
        return self._computed(node) if node in self._nodes else None

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

    def methods(self, plain: type[Symbol]) -> Mapping[str, Any]:
        """What Python asks a tensor for: answered where that is known, and otherwise as `plain` does."""
        return {
            "__bool__": self._asked(plain.__bool__, bool),
            "__int__": self._asked(plain.__int__, int),
            "__float__": self._asked(plain.__float__, float),
            "__index__": self._asked(plain.__index__, lambda value: value.__index__()),
            "__array__": self._asked(plain.__array__, lambda value, *_, **__: value),
            "numpy": self._asked(plain.numpy, lambda value, **_: value),
            "item": self._asked(lambda symbol: ops.reshape(symbol, ()), lambda value: value.item()),
            "tolist": self._asked(_elements, lambda value: value.tolist()),
        }

    def _asked(self, unknown: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
        def method(symbol: Symbol, *args: Any, **options: Any) -> Any:
            value = self.value(symbol)
            return unknown(symbol, *args, **options) if value is None else answer(value, *args, **options)

        return method


def _elements(symbol: Symbol) -> Any:
    """The elements in nested lists, each a symbol."""
    return [_elements(row) for row in symbol] if symbol.shape else symbol


class SymbolParts:
    """The symbols that are parts of others, by which these change as well. `assign` changes one that is no part."""

    def __init__(self, constants: ConstantValues, assign: Callable[[Symbol, Any], Any]) -> None:
        self._constants, self._root = constants, assign
        self._parts: dict[int, tuple[Symbol, Symbol, Any]] = {}

    @property
    def methods(self) -> Mapping[str, Any]:
        """What a symbol does that may be a part."""
        own: Mapping[str, Callable[..., Any]] = {
            "__getitem__": self._part,
            "__setitem__": self._set,
            "_assign": self._assigned,
        }
        return {name: _method(function) for name, function in own.items()}

    def _part(self, symbol: Symbol, key: Any) -> Any:
        key = self._plain(key)
        part = ops.index(symbol, key)
        if isinstance(part, Symbol) and part.node.op.view:
            self._parts[id(part)] = part, symbol, key
        return part

    def _plain(self, key: Any) -> Any:
        """A key with arrays for symbols whose values are known."""
        if isinstance(key, tuple):
            return tuple(map(self._plain, key))
        value = self._constants.value(key) if isinstance(key, Symbol) else None
        return key if value is None else value

    def _set(self, symbol: Symbol, key: Any, value: Any) -> None:
        self._assigned(symbol, ops.setitem(symbol, value, self._plain(key)))

    def _assigned(self, symbol: Symbol, result: Any) -> Any:
        """Let a symbol stand for another value, and what it is a part of for what holds that."""
        if id(symbol) not in self._parts:
            return self._root(symbol, result)
        _, whole, key = self._parts[id(symbol)]
        self._assigned(whole, ops.setitem(whole, result, key))
        symbol.node = ops.index(whole, key).node
        return symbol


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a class binds it: its first argument is the object."""

    def method(symbol: Symbol, *args: Any) -> Any:
        return function(symbol, *args)

    return method


_plain_made, _plain_tensor = creation.made, dynamic.tensor


@contextmanager
def making_symbols() -> Iterator[None]:
    """Inside, functions that make tensors of no others give symbols. Drawn numbers stay inputs of the graph."""
    vars(creation)["made"], vars(dynamic)["tensor"] = _made, _tensor
    try:
        yield
    finally:
        vars(creation)["made"], vars(dynamic)["tensor"] = _plain_made, _plain_tensor


def _made(array: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """A constant of the graph, in memory of its own."""
    leaf, builder = _plain_made(array, dtype, device, requires_grad), current()
    return leaf if builder is None else of_kind(leaf.numpy(force=True), is_tensor=True)


def _tensor(data: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Any:
    """A tensor of numbers, some of which may be symbols: of their values, without their history."""
    if not any(isinstance(leaf, Symbol) for leaf in tree.leaves(data)):
        return _plain_tensor(data, dtype, requires_grad, device)
    values = ops.stop_gradient(_stacked(data))
    return of_kind(values if dtype is None else values.to(dtype), is_tensor=True)


def _stacked(data: Any) -> Any:
    return ops.stack([_stacked(row) for row in data]) if isinstance(data, (list, tuple)) else ops.asarray(data)
