"""`torch.autograd.functional`: derivatives of functions at given inputs, one tensor or a tuple of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dynamic import functional
from dynamic.grad_mode import enable_grad
from dynamic.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vjp"]

Function = Callable[..., Any]
Derivative = TypeVar("Derivative", bound=Callable[..., Any])


def _recording(derivative: Derivative) -> Derivative:
    """Decorate a derivative so that it also works inside `no_grad`."""
    recording: Derivative = enable_grad()(derivative)
    return recording


def _as_tuple(inputs: Any) -> tuple[tuple[Any, ...], bool]:
    return ((inputs,), True) if isinstance(inputs, Tensor) else (tuple(inputs), False)


def _ones(v: Any, like: Any) -> Any:
    return like.new_ones(like.shape) if v is None else v


@_recording
def jacobian(func: Function, inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
    """The derivatives of the outputs in each input."""
    del strict
    args, single = _as_tuple(inputs)
    return _plain(functional.jacobian(func, 0 if single else tuple(range(len(args))))(*args), create_graph)


@_recording
def hessian(func: Function, inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
    """The second derivatives of a scalar function in each two inputs."""
    del strict
    args, single = _as_tuple(inputs)
    return _plain(functional.hessian(func, 0 if single else tuple(range(len(args))))(*args), create_graph)


@_recording
def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs, and a vector times the jacobian."""
    del strict
    args, single = _as_tuple(inputs)
    outputs, pull = functional.vjp(func, *args)
    gradients = pull(_ones(v, outputs))
    return _plain(outputs, create_graph), _plain(gradients[0] if single else gradients, create_graph)


@_recording
def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs, and the jacobian times a vector."""
    del strict
    args = _as_tuple(inputs)[0]
    tangents = [_ones(None, args[0])] if v is None else list(_as_tuple(v)[0])
    outputs, pushed = functional.jvp(func, args, tangents)
    return _plain(outputs, create_graph), _plain(pushed, create_graph)


@_recording
def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of a scalar function, and its hessian times a vector."""
    del strict
    args, single = _as_tuple(inputs)
    tangents = [_ones(None, args[0])] if v is None else list(_as_tuple(v)[0])
    products = functional.hvp(func, args, tangents)
    return _plain(func(*args), create_graph), _plain(products[0] if single else products, create_graph)


def _plain(value: Any, create_graph: bool) -> Any:
    """Results without a history, unless `create_graph`."""
    if isinstance(value, (tuple, list)):
        return tuple([_plain(part, create_graph) for part in value])
    return value if create_graph or not issubclass(type(value), Tensor) else value.detach()
