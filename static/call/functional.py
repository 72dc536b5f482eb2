"""Transforms of functions: gradients, vector products and matrices of derivatives, over nested containers.

Inside a trace each transform adds to the graph. Called with arrays, outside a trace, it compiles itself for the specs
of the arguments first, and keeps the compiled function as long as the same function is given.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import promotion, transforms, tree
from graphs.ops.shapes import dtype_of
from graphs.transforms import Argnums, Function, VjpFunction
from static.call.jit import jit
from static.trace.differentiate import check_floating, record_trace
from static.trace.tracing import current

_step = transforms.step_of(record_trace)
KEPT = 64  # functions whose compiled vjp, jvp and hvp are kept


@transforms.with_argnum
def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns the gradient of `f`, a scalar function, in the arguments `argnums`.

    With `has_aux`, f returns `(value, anything else)`, and the function returns `(gradient, anything else)`.
    """
    return _self_compiling(transforms.grad(_step, f, argnums, has_aux))


@transforms.with_argnum
def elementwise_grad(f: Function, argnums: Argnums = 0) -> Function:
    """The function that returns the derivative of each element of `f`, which works element by element.

    It is the gradient of the sum: where an element of the result depends on several of the argument, these add up.
    """
    return grad(transforms.total(f), argnums)


@transforms.with_argnum
def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that returns `(f(...), gradient)`, to be traced: the backward pass is in the graph.

    The gradient has the structure of the argument, or is a tuple of these when `argnums` is a sequence.
    With `has_aux`, f returns `(value, anything else)`, and only the value is differentiated.
    Raises NotDifferentiableError when f does not return one floating point number, or an argument holds ints.
    """
    return _self_compiling(transforms.value_and_grad(_step, f, argnums, has_aux))


def vjp(f: Function, *primals: Any) -> tuple[Any, VjpFunction]:
    """Return `f(*primals)` and a function from cotangents, laid out like the result, to a tuple of gradients.

    Outside a trace nothing is kept between the two: the function computes f again, in one graph with its gradient.
    Raises NotDifferentiableError for primals of ints, ShapeError for cotangents of another structure or shape.
    """
    if current() is not None:
        return transforms.vjp(record_trace, f, primals)
    for leaf in tree.leaves(primals):
        check_floating(dtype_of(leaf))
    return _run(_apply, f, primals), functools.partial(_run, _pull, f, primals)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return `f(*primals)` and its derivative along the tangents, by two reverse passes (Townsend, 2017).

    Raises NotDifferentiableError for primals of ints, ShapeError for tangents of another structure or shape.
    """
    return _run(_jvp, f, tuple(primals), tuple(tangents))


@transforms.with_argnum
def jacobian(f: Function, argnums: Argnums = 0) -> Function:
    """Return a function that computes the derivatives of every output in every argument of `argnums`.

    Each leaf of the output becomes a container like the argument (a tuple of these when `argnums` is a sequence), of
    arrays of shape `output.shape + input.shape`. The graph holds one backward pass for each leaf of the output, in a
    scan that runs it once for every element; sizes may be symbolic.
    """
    return _self_compiling(transforms.jacobian(record_trace, f, argnums))


@transforms.with_argnum
def hessian(f: Function, argnums: Argnums = 0) -> Function:
    """Return a function that computes the second derivatives: the jacobian of the jacobian.

    For a scalar function these are arrays of shape `input.shape + input.shape`, from one backward pass, in a scan, for
    every element of the input.
    """
    return _self_compiling(transforms.hessian(record_trace, f, argnums))


@transforms.with_argnum
def hessian_vector_product(f: Function, argnums: int = 0) -> Function:
    """Return a function of the arguments of `f` and a vector: the Hessian in one argument times the vector.

    This is autograd's form of `hvp`; the vector is laid out like the argument.
    """
    return _self_compiling(transforms.hessian_vector_product(record_trace, f, argnums))


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Return the Hessian of the scalar function `f(*primals)` times the tangents, a tuple laid out like the primals.

    It costs about twice a gradient, and never makes the Hessian.
    """
    return _run(_hvp, f, tuple(primals), tuple(tangents))


def _self_compiling(traced: Function) -> Function:
    """Return a function that calls `traced` inside a trace, and its compiled form outside."""

    @functools.cache
    def compile_once() -> Function:
        return jit(traced)

    @functools.wraps(traced)
    def call(*args: Any, **named: Any) -> Any:
        return compile_once()(*args, **named) if current() is None else traced(*args, **named)

    return call


def _apply(f: Function, primals: Sequence[Any]) -> Any:
    return f(*primals)


def _pull(f: Function, primals: Sequence[Any], cotangents: Any) -> tuple[Any, ...]:
    return transforms.vjp(record_trace, f, primals)[1](cotangents)


def _jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    return transforms.jvp(record_trace, f, primals, tangents)


def _hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    return transforms.hvp(record_trace, f, primals, tangents)


def _run(transform: Function, f: Function, *args: Any) -> Any:
    """Return `transform(f, *args)`: traced inside a trace, compiled outside."""
    if current() is not None:
        return transform(f, *args)
    return _compile_transform(transform, f)(*[tree.tree_map(_as_array, arg) for arg in args])


@functools.lru_cache(maxsize=KEPT)
def _compile_transform(transform: Function, f: Function) -> Function:
    def transform_arguments(*args: Any) -> Any:
        return transform(f, *args)

    transform_arguments.__name__ = getattr(f, "__name__", "f")
    return jit(transform_arguments)


def _as_array(leaf: Any) -> Any:
    return np.asarray(leaf) if promotion.is_scalar(leaf) else leaf
