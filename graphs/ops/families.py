"""Op families: constructors with the common behaviour of elementwise ops, reductions and views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.dispatch import describe_operand
from graphs.errors import DTypeError, GraphError, ShapeError, add_context
from graphs.op import Kernel, Op, Prepare, Prepared, Vjp
from graphs.ops.shapes import Axis, as_operand, positive_axes, reduced_shape, shape_of
from graphs.spec import TensorSpec, broadcast_shapes, spec_of

F = TypeVar("F", bound=Callable[..., Any])
DTypeRule = Callable[..., np.dtype[Any]]


def composite(function: F) -> F:
    """Decorate a function made of ops: its own errors then name it, its operand and the user's line, like an op's."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except GraphError as error:
            raise add_context(error, function.__name__, describe_operand(args[0]) if args else "") from None

    return cast(F, call)


def check_specs(prepare: Prepare, infer: Callable[..., TensorSpec]) -> Prepare:
    """A `prepare` that also runs `infer`, for an op whose kernel accepts shapes that every engine must refuse."""

    @functools.wraps(prepare)
    def prepare_and_check(*args: Any, **attrs: Any) -> Prepared:
        inputs, attributes = prepare(*args, **attrs)
        infer(*map(spec_of, inputs), **attributes)
        return inputs, attributes

    return prepare_and_check


def elementwise(
    name: str,
    kernel: Kernel,
    *rules: Vjp,
    doc: str = "",
    dtype: DTypeRule | None = None,
    prepare: Prepare | None = None,
    arity: int = 0,
    flops: int = 1,
    **fields: Any,
) -> Op:
    """Make an op that works element by element, with broadcasting.

    `kernel` is a NumPy ufunc, or a function with an `out=`, in which case `dtype(*dtypes)` gives the result's dtype.
    `flops` are per element, and `fields` are further arguments of `Op`.
    """
    result_dtype = dtype or ufunc_dtype(kernel)

    def infer(*specs: TensorSpec) -> TensorSpec:
        shape = broadcast_shapes(*(s.shape for s in specs))
        return TensorSpec(shape, result_dtype(*(s.dtype for s in specs)))

    count = arity or getattr(kernel, "nin", len(rules))
    return Op(
        name, kernel, infer, rules=rules, prepare=prepare, cost=flops, family="elementwise",
        arity=count, broadcasts=count > 1, doc=doc, **fields,
    )  # fmt: skip


def ufunc_dtype(ufunc: Any) -> DTypeRule:
    """A function that gives the result dtype of a ufunc from input dtypes, without running it. It raises DTypeError."""

    def result(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
        try:
            return ufunc.resolve_dtypes((*dtypes, None))[-1]
        except TypeError:
            raise DTypeError("is not defined for these dtypes; convert with astype") from None

    return result


def over_axes(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Prepared:
    """The operand and options of a reduction, with its axes made positive."""
    x = as_operand(x)
    return (x,), {"axis": positive_axes(axis, len(shape_of(x))), "keepdims": bool(keepdims)}


def reduction(
    name: str,
    kernel: Kernel,
    rule: Vjp,
    *,
    doc: str = "",
    dtype: DTypeRule,
    prepare: Prepare = over_axes,
    identity: bool = True,
    divides: bool = False,
    flops: int = 1,
) -> Op:
    """Make an op that reduces over axes: `op(x, axis=None, keepdims=False)`.

    `dtype` gives the result's dtype from the input's and from the options that `prepare` adds. `identity` tells whether
    reducing over no elements has a value (the sum is 0, the maximum is an error).
    """

    def infer(x: TensorSpec, *, axis: tuple[int, ...], keepdims: bool, **options: Any) -> TensorSpec:
        if not identity:
            refuse_empty(x, axis)
        return TensorSpec(reduced_shape(x.shape, axis, keepdims), dtype(x.dtype, **options))

    def cost(x: TensorSpec, *, out: TensorSpec, **_: Any) -> Size:
        return x.size * flops

    return Op(
        name,
        kernel,
        infer,
        rules=(rule,) if rule else (),
        prepare=prepare,
        cost=cost,
        family="reduction",
        divides=divides,
        doc=doc,
    )


def refuse_empty(x: TensorSpec, axis: tuple[int, ...]) -> None:
    """Raise ShapeError if an axis of size 0 is reduced by a reduction that has no identity."""
    if any(dims.same(x.shape[a], 0) for a in axis):
        raise ShapeError("reducing over no elements has no value here; check the size first")


def movement(
    name: str,
    kernel: Kernel,
    infer: Callable[..., TensorSpec],
    *rules: Vjp,
    prepare: Callable[..., Prepared],
    doc: str = "",
    **fields: Any,
) -> Op:
    """Make an op that moves elements and computes nothing; `fields` are further arguments of `Op`."""
    return Op(name, kernel, infer, rules=rules, prepare=prepare, cost=0, family="movement", doc=doc, **fields)
