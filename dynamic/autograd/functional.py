"""`torch.autograd.functional`: derivatives of functions at given inputs, one tensor or a tuple of them.

Then `torch.autograd.forward_ad`, where a tangent is two reverse passes, and `gradcheck` by finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dynamic import functional
from dynamic.grad_mode import enable_grad
from dynamic.gradients import grad_of
from dynamic.tensor import Tensor, wrap
from graphs.errors import GraphError, locate
from graphs.ops.movement import identity

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

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
def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of the outputs in each input; `vectorize` and `strategy` say how PyTorch computes them."""
    del strict, vectorize, strategy
    args, single = _as_tuple(inputs)
    return _plain(functional.jacobian(func, 0 if single else tuple(range(len(args))))(*args), create_graph)


@_recording
def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a scalar function in each two inputs."""
    del strict, vectorize, outer_jacobian_strategy
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


vhp = hvp  # a hessian is symmetric


def _plain(value: Any, create_graph: bool) -> Any:
    """Results without a history, unless `create_graph`."""
    if isinstance(value, (tuple, list)):
        return tuple([_plain(part, create_graph) for part in value])
    return value if create_graph or not issubclass(type(value), Tensor) else value.detach()


# Forward mode ---------------------------------------------------------------------------------------------------------


class UnpackedDualTensor(NamedTuple):
    """A value, and its derivative along the tangents of the level; None where it depends on none."""

    primal: Tensor
    tangent: Tensor | None


_level: ContextVar[list[UnpackedDualTensor] | None] = ContextVar("level", default=None)


@contextmanager
def dual_level() -> Iterator[None]:
    """A block in which tensors have tangents. Raises GraphError inside another."""
    if _level.get() is not None:
        raise GraphError(locate("dual_level: levels do not nest; use func.jvp of a function that calls func.jvp"))
    before = _level.set([])
    try:
        with enable_grad():
            yield
    finally:
        _level.reset(before)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor of the same values with a tangent, which what is computed from it has, too. Raises GraphError."""
    del level
    duals = _duals("make_dual")
    tensor._check_gradient(tangent)
    dual = identity(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    duals.append(UnpackedDualTensor(dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor. Raises GraphError outside of a level."""
    del level
    duals = _duals("unpack_dual")
    if not duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    cotangent = wrap(np.zeros(tensor.shape, tensor.dtype)).requires_grad_()
    sources, tangents = zip(*duals, strict=True)
    pulled = grad_of(tensor, sources, cotangent, retain_graph=True, create_graph=True, allow_unused=True)
    pairs = [(g, t) for g, t in zip(pulled, tangents, strict=True) if g is not None]
    if not pairs:
        return UnpackedDualTensor(tensor, None)
    linear = [(g, t) for g, t in pairs if g.requires_grad]
    if not linear:  # no gradient depends on the cotangent: all are 0
        return UnpackedDualTensor(tensor, wrap(np.zeros(tensor.shape, tensor.dtype)))
    gradients, along = zip(*linear, strict=True)
    return UnpackedDualTensor(tensor, grad_of(gradients, cotangent, along, materialize_grads=True)[0])


def _duals(name: str) -> list[UnpackedDualTensor]:
    duals = _level.get()
    if duals is None:
        raise GraphError(locate(f"{name}: no tensor has a tangent outside of `with forward_ad.dual_level()`"))
    return duals


# Checks ---------------------------------------------------------------------------------------------------------------


class GradcheckError(GraphError):
    """A gradient differs from finite differences."""


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **_: Any,
) -> bool:
    """Whether the gradients of `func` in the inputs that require one agree with central differences in float64.

    They are compared along a random direction in each input, by `graphs.testing.check_grads`, which chooses the step.
    Raises GradcheckError where they differ, unless `raise_exception` is False.
    """
    del eps
    return _agree(func, inputs, 1, atol, rtol, raise_exception)


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **_: Any,
) -> bool:
    """Whether the second gradients agree, as `gradcheck` tells of the first."""
    del eps, grad_outputs
    return _agree(func, inputs, 2, atol, rtol, raise_exception)


def _agree(func: Function, inputs: Any, order: int, atol: float, rtol: float, raises: bool) -> bool:
    from graphs.testing import check_grads

    args = _as_tuple(inputs)[0]
    chosen = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
    if not chosen:
        raise GradcheckError(locate("gradcheck: no input requires a gradient; create one with requires_grad=True"))
    plain = [arg.detach() if isinstance(arg, Tensor) else arg for arg in args]

    def on_tensors(*values: Any) -> Any:
        return func(*[wrap(value) if isinstance(value, np.ndarray) else value for value in values])

    try:
        check_grads(on_tensors, plain, order, engine=functional, argnums=chosen, rtol=rtol, atol=atol)
    except AssertionError as error:
        if raises:
            raise GradcheckError(str(error)) from None
        return False
    return True
