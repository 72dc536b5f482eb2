"""Symbols of a trace as PyTorch's tensors: their methods where NumPy's have the same names, and gradients inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

import dynamic
from compare.engines.graphduel.making import ConstantValues, SymbolParts, making_symbols
from compare.engines.state import Piece
from dynamic.changing import Changing
from graphs import ops
from graphs.errors import NotDifferentiableError, count_as_ours
from graphs.torch.function_methods import FunctionMethods
from graphs.torch.methods import Conversions, TorchNames
from static.convert.stage.conversion import running
from static.trace.differentiate import pull_back
from static.trace.symbol import Symbol
from static.trace.tracing import current, node_of, reading_all

count_as_ours(__file__)

_NONE: Mapping[str, Any] = MappingProxyType({})
_NEW = ("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor")
_AUGMENTED = ("__iadd__", "__isub__", "__imul__", "__itruediv__")
_DRAWN = ("bernoulli", "multinomial", "uniform_", "normal_", "bernoulli_", "exponential_", "random_")


def _methods() -> dict[str, Any]:
    """What a tensor of PyTorch's has, where a symbol has none or another: by name."""
    named = {
        name: value
        for kind in (Conversions, FunctionMethods, TorchNames)
        for name, value in vars(kind).items()
        if not name.startswith("_")
    }
    changing = {
        name: value for name, value in vars(Changing).items() if name.endswith("_") and not name.startswith("_")
    }
    return {
        **named,
        **changing,
        **{name: getattr(dynamic.Tensor, name) for name in _NEW + _DRAWN},
        "numel": lambda symbol: int(symbol.size),
        "nelement": lambda symbol: int(symbol.size),
        "clone": lambda symbol, **_: ops.identity(symbol),
        "requires_grad": property(lambda _: True, lambda _, __: None),
        "requires_grad_": lambda symbol, *_: symbol,
        "is_leaf": property(lambda _: False),
        "gradients": gradients,
    }


def _augmented(name: str, holds: Callable[[Symbol], bool]) -> Callable[..., Any]:
    """`x += y`, under all names of x. Where code is converted that is the conversion's, but for what a step `holds`."""
    change = vars(Changing)[name]

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
    methods = {**_methods(), **augmented, **constants.methods(Symbol), **more, **SymbolParts(constants, assign).methods}
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


def gradients(_: Symbol, outputs: Sequence[Any], inputs: Sequence[Any], seeds: Any, *, may_be_none: bool) -> Any:
    """What `torch.autograd.grad` gives: the gradient of the outputs, summed, in each input, as symbols.

    Raises NotDifferentiableError where the outputs do not depend on one, unless that `may_be_none`.
    """
    cotangents: list[Any] = (
        [None] * len(outputs) if seeds is None else list(seeds) if isinstance(seeds, (list, tuple)) else [seeds]
    )
    reaching = pulled(outputs, cotangents, inputs)
    if not may_be_none and any(gradient is None for gradient in reaching):
        raise NotDifferentiableError("an input of grad has no part in the outputs; give allow_unused=True")
    return tuple(reaching)


def pulled(outputs: Sequence[Any], seeds: Sequence[Any], inputs: Sequence[Any], start: int = 0) -> list[Any]:
    """What reaches each input from the outputs, through the nodes from number `start` on; None for nothing."""
    builder = current()
    assert builder is not None  # noqa: S101  (symbols are of a trace)
    values = [np.ones(out.shape, out.dtype) if seed is None else seed for out, seed in zip(outputs, seeds, strict=True)]
    with reading_all():
        cotangents = [Symbol(builder, node_of(builder, value, ())) for value in values]
        reaching = pull_back(builder, start, inputs, outputs, cotangents)
    return [cotangent for cotangent, _ in reaching]


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
