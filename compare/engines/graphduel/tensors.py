"""Symbols of a trace as the tensors of a program that differentiates inside, and makes tensors of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

import dynamic
from compare.engines.graphduel.making import ConstantValues, SymbolParts, making_symbols
from compare.engines.state import Piece
from graphs.errors import count_as_ours
from graphs.frontends.torch.methods import TorchMethods
from static.convert.stage.conversion import running
from static.trace.symbol import Symbol
from static.trace.tracing import current

count_as_ours(__file__)

_NONE: Mapping[str, Any] = MappingProxyType({})
_AUGMENTED = ("__iadd__", "__isub__", "__imul__", "__itruediv__")


_METHODS: Mapping[str, Any] = {
    "requires_grad": property(lambda _: True, lambda _, __: None),
    "requires_grad_": lambda symbol, *_: symbol,
    "is_leaf": property(lambda _: False),
}
"""What a symbol can say here, where what it stands for may be differentiated inside."""


def _augmented(name: str, holds: Callable[[Symbol], bool]) -> Callable[..., Any]:
    """`x += y`, under all names of x. Where code is converted that is the conversion's, but for what a step `holds`."""
    change = getattr(TorchMethods, name)

    def method(symbol: Symbol, other: Any) -> Any:
        return NotImplemented if running() and not holds(symbol) else change(symbol, other)

    return method


@contextmanager
def as_tensors(more: Mapping[str, Any] = _NONE, holds: Callable[[Symbol], bool] = lambda _: False) -> Iterator[None]:
    """Inside a trace, symbols have these methods, and `more` before them; outside of one nothing changes.

    `holds` tells of a symbol whether it stands for a parameter or a buffer.
    """
    builder = current()
    if builder is None:
        yield
        return
    constants = ConstantValues(builder)
    assign = more.get("_assign", vars(Symbol)["_assign"])
    augmented = {name: _augmented(name, holds) for name in _AUGMENTED}
    methods = {**_METHODS, **augmented, **constants.methods(Symbol), **more, **SymbolParts(constants, assign).methods}
    before: dict[str, Any] = {name: vars(Symbol).get(name) for name in methods}
    builder.saving += 1  # what is traced may be differentiated inside
    for name, method in methods.items():
        setattr(Symbol, name, method)
    try:
        with making_symbols():
            yield
    finally:
        builder.saving -= 1
        for name, method in before.items():
            if method is None:
                delattr(Symbol, name)
            else:
                setattr(Symbol, name, method)


def array_of(tensor: Any) -> np.ndarray:
    """The memory of a tensor."""
    array: np.ndarray = tensor.detach().numpy()
    return array


def as_array(leaf: Any) -> Any:
    """An array for a tensor."""
    return array_of(leaf) if isinstance(leaf, dynamic.Tensor) else leaf


def kept_tensor(tensor: Any) -> Piece:
    """What brings back a tensor with its gradient."""
    before, gradient = tensor.numpy(force=True).copy(), tensor.grad

    def same() -> bool:
        return tensor.grad is gradient and np.array_equal(tensor.numpy(force=True), before)

    def back() -> None:
        np.copyto(array_of(tensor), before)
        tensor.grad = gradient

    return Piece(same, back, [gradient])
