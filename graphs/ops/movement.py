"""Ops that move elements: reshape, permute_dims, broadcast_to, flip, concat, stack, pad, astype; then functions."""

from __future__ import annotations

import builtins
import functools
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.dims import Shape
from graphs.errors import ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.families import composite, movement
from graphs.ops.shapes import (
    HALF,
    SINGLE,
    Axis,
    as_operand,
    as_shape,
    completed_shape,
    dtype_of,
    holds_half,
    last_two,
    lay,
    one_operand,
    positive_axes,
    positive_axis,
    shape_of,
    store,
    swapped_axes,
)
from graphs.ops.slicing import cut, getitem
from graphs.spec import TensorSpec, broadcast_shapes

__all__ = [
    "broadcast_to", "concat", "expand_dims", "flip", "identity", "matrix_transpose", "moveaxis", "permute_dims",
    "reshape", "roll", "squeeze", "stack", "stop_gradient", "unstack",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


# reshape --------------------------------------------------------------------------------------------------------


def _prepare_reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Prepared:
    x = as_operand(x)
    sizes = completed_shape(as_shape(shape), dims.product(shape_of(x)))
    if copy is False and isinstance(x, np.ndarray) and x.size and not np.may_share_memory(np.reshape(x, sizes), x):
        raise ShapeError("the memory's layout does not allow this shape without a copy; allow one")
    return (identity(x) if copy else x,), {"shape": sizes}


def _infer_reshape(x: TensorSpec, *, shape: Shape) -> TensorSpec:
    if not dims.same(x.size, dims.product(shape)):
        raise ShapeError(f"{x.size} elements do not fill a shape of {shape}; let one size be -1")
    return TensorSpec(shape, x.dtype)


def _reshape(x: Array, *, shape: Shape, out: Array = None) -> Array:
    """The same elements, in row-major order, in another shape; one size may be -1. `copy=True` never shares memory."""
    if out is None:
        return x.reshape(shape)
    np.copyto(out.reshape(x.shape), x)  # the planned buffer is contiguous, so that this copies once
    return out


reshape: Op = movement(
    "reshape", _reshape, _infer_reshape, lambda g, x_shape: reshape(g, x_shape), prepare=_prepare_reshape, view=True
)

# permute_dims ---------------------------------------------------------------------------------------------------


def _prepare_permute(x: Array, /, axes: Sequence[int] | None = None) -> Prepared:
    x = as_operand(x)
    ndim = len(shape_of(x))
    order = tuple(positive_axis(a, ndim) for a in (range(ndim)[::-1] if axes is None else axes))
    if sorted(order) != list(range(ndim)):
        raise ShapeError(f"axes {order} are no permutation of {ndim} axes; name each once")
    return (x,), {"axes": order}


permute_dims: Op = movement(
    "permute_dims",
    lambda x, *, axes, out=None: x.transpose(axes) if out is None else store(x.transpose(axes), out),
    lambda x, *, axes: TensorSpec([x.shape[a] for a in axes], x.dtype),
    lambda g, axes: permute_dims(g, [axes.index(i) for i in range(len(axes))]),
    prepare=_prepare_permute,
    view=True,
    doc="The axes in another order; reversed by default.",
)

# broadcast_to ---------------------------------------------------------------------------------------------------


def _prepare_broadcast(x: Array, /, shape: Any) -> Prepared:
    return (as_operand(x),), {"shape": as_shape(shape)}


def _infer_broadcast(x: TensorSpec, *, shape: Shape) -> TensorSpec:
    if not dims.same_shape(broadcast_shapes(x.shape, shape), shape):
        raise ShapeError(f"does not broadcast to {shape}; reshape it first")
    return TensorSpec(shape, x.dtype)


def _broadcast(x: Array, *, shape: tuple[int, ...], out: Array = None) -> Array:
    """The array broadcast to a larger shape, without copying."""
    if out is not None:
        np.copyto(out, x)
        return out
    x = np.asarray(x)  # kernels of 0-d arrays give scalars
    if not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    # np.broadcast_to gives the same view but takes five times as long; backward spreads every sum and mean so.
    view: Array = np.ndarray(shape, x.dtype, x, 0, _strides(x.shape, x.strides, shape))
    view.flags.writeable = False
    return view


@functools.lru_cache(maxsize=4096)
def _strides(have: tuple[int, ...], strides: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a broadcast view. Raises ValueError for shapes that do not broadcast."""
    added = np.broadcast_to(np.empty(()), shape).ndim - len(have)
    # np.broadcast_shapes takes no more than 32 axes.
    if added < 0 or any(size not in (1, wide) for size, wide in zip(have, shape[added:], strict=True)):
        np.broadcast_to(np.empty(have), shape)
    return (0,) * added + tuple(0 if size == 1 else stride for size, stride in zip(have, strides, strict=True))


broadcast_to: Op = movement(
    "broadcast_to",
    _broadcast,
    _infer_broadcast,
    lambda g: g,  # summed back to the input's shape where every broadcasting op is: in reverse.py
    prepare=_prepare_broadcast,
    view=True,
    broadcasts=True,
)

# flip, roll, concat, stack, pad ---------------------------------------------------------------------------------------


def _prepare_flip(x: Array, /, axis: Axis = None) -> Prepared:
    x = as_operand(x)
    return (x,), {"axis": positive_axes(axis, len(shape_of(x)))}


def _flip(x: Array, *, axis: tuple[int, ...], out: Array = None) -> Array:
    """The elements in reverse order, as a view; also for a 0-d array, where np.flip returns a scalar."""
    return store(np.flip(x, axis) if axis else np.asarray(x)[...], out)


flip: Op = movement(
    "flip",
    _flip,
    lambda x, *, axis: x,
    lambda g, axis: flip(g, axis),
    prepare=_prepare_flip,
    view=True,
    doc="The elements in reverse order along `axis` (all axes by default).",
)


def _prepare_roll(x: Array, /, shift: int | Sequence[int], axis: Axis = None) -> Prepared:
    x = as_operand(x)
    if axis is None:
        if not isinstance(shift, (int, np.integer)):
            raise ShapeError("several shifts need as many axes; pass axis=")
        return (x,), {"shift": int(shift), "axis": None}
    axes = [positive_axis(a, len(shape_of(x))) for a in (axis if isinstance(axis, Sequence) else (axis,))]
    shifts = list(shift) if isinstance(shift, Sequence) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"{len(shifts)} shifts for {len(axes)} axes; give one for each, or one for all")
    return (x,), {"shift": tuple(map(int, shifts)), "axis": tuple(axes)}


def _negate_shift(shift: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple(-s for s in shift) if isinstance(shift, tuple) else -shift


roll: Op = movement(
    "roll",
    lambda x, *, shift, axis, out=None: store(np.roll(x, shift, axis), out),
    lambda x, *, shift, axis: x,
    lambda g, shift, axis: roll(g, _negate_shift(shift), axis),
    prepare=_prepare_roll,
    doc="The elements moved by `shift` places along `axis`, those pushed out entering again; flat without an axis.",
)


def _prepare_concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Prepared:
    if not len(arrays):
        raise ShapeError("needs at least one array; pass a list")
    values = [as_operand(a) for a in arrays]
    if axis is None:
        values, axis = [reshape(v, (-1,)) for v in values], 0
    return tuple(values), {"axis": positive_axis(axis, len(shape_of(values[0])))}


def _infer_concat(*specs: TensorSpec, axis: int) -> TensorSpec:
    first = specs[0].shape
    for spec in specs:
        if not dims.same_shape(_without(first, axis), _without(spec.shape, axis)) or spec.ndim != len(first):
            raise ShapeError(f"shapes may differ along axis {axis} only; pad or slice the other axes")
    total = builtins.sum((s.shape[axis] for s in specs[1:]), specs[0].shape[axis])
    return TensorSpec([*first[:axis], total, *first[axis + 1 :]], np.result_type(*(s.dtype for s in specs)))


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _concat_rule(g: Array, index: int, shapes: tuple[Shape, ...], axis: int) -> Array:
    start = builtins.sum((s[axis] for s in shapes[:index]), 0)
    return cut(g, axis, start, start + shapes[index][axis])


concat: Op = movement(
    "concat",
    lambda *arrays, axis, out=None: _join(arrays, axis, out),
    _infer_concat,
    _concat_rule,
    prepare=_prepare_concat,
    again=lambda *arrays, axis: _prepare_concat(arrays, axis),
    broadcasts=True,  # each cotangent is cast back to the dtype of its array
    doc="Arrays joined along an axis they all have; flattened first when axis is None.",
)


def _prepare_stack(arrays: Sequence[Array], /, axis: int = 0) -> Prepared:
    if not len(arrays):
        raise ShapeError("needs at least one array; pass a list")
    values = tuple([as_operand(a) for a in arrays])
    return values, {"axis": positive_axis(axis, len(shape_of(values[0])) + 1)}


def _infer_stack(*specs: TensorSpec, axis: int) -> TensorSpec:
    shape = specs[0].shape
    if not builtins.all(dims.same_shape(spec.shape, shape) for spec in specs):
        raise ShapeError("stacked arrays have one shape; broadcast or pad them, or join them with concat")
    return TensorSpec([*shape[:axis], len(specs), *shape[axis:]], np.result_type(*{s.dtype for s in specs}))


def _stack(*arrays: Array, axis: int, out: Array = None) -> Array:
    """Arrays of one shape joined along a new axis."""
    key = (*[slice(None)] * axis, None)
    return _join([a[key] for a in arrays], axis, out)  # np.stack takes twice as long


def _join(arrays: Sequence[Any], axis: int, out: Array) -> Array:
    if out is None and not builtins.all(a.flags.c_contiguous for a in arrays):  # row by row, which NumPy leaves open
        sizes = list(arrays[0].shape)
        sizes[axis] = builtins.sum(a.shape[axis] for a in arrays)
        out = np.empty(sizes, np.result_type(*arrays))
    return np.concatenate(arrays, axis=axis, out=out)


stack: Op = movement(
    "stack",
    _stack,
    _infer_stack,
    lambda g, index, axis: getitem(g, (slice(None),) * axis + (index,)),
    prepare=_prepare_stack,
    again=lambda *arrays, axis: _prepare_stack(arrays, axis),
    broadcasts=True,  # each cotangent is cast back to the dtype of its array
    parts=lambda *arrays, axis: concat([expand_dims(a, axis) for a in arrays], axis),
)


def prepare_pad(x: Array, /, pad_width: Any, value: float = 0) -> Prepared:
    """The operand and options of `pad`, with a pair for each axis. Raises ShapeError for other pad widths."""
    x = as_operand(x)
    widths = [tuple(w) if np.iterable(w) else (w, w) for w in (pad_width if np.iterable(pad_width) else ())]
    ndim = len(shape_of(x))
    if not np.iterable(pad_width):
        widths = [(pad_width, pad_width)] * ndim
    if len(widths) != ndim or builtins.any(len(w) != 2 or w[0] < 0 or w[1] < 0 for w in widths):
        raise ShapeError("pad widths are 0 or more, a pair for each axis; write ((before, after), ...)")
    return (x,), {"pad_width": tuple(widths), "value": value}


def _pad_rule(g: Array, x_shape: Shape, pad_width: Any) -> Array:
    return getitem(g, tuple(slice(before, before + s) for (before, _), s in zip(pad_width, x_shape, strict=True)))


def _pad(x: Array, *, pad_width: Any, value: float, out: Array = None) -> Array:
    """The array with a constant border: one (before, after) pair per axis, or one number for all."""
    if out is None:
        out = np.empty([b + s + a for s, (b, a) in zip(x.shape, pad_width, strict=True)], x.dtype)
    out[...] = value
    out[tuple(slice(b, b + s) for s, (b, _) in zip(x.shape, pad_width, strict=True))] = x
    return out


pad: Op = movement(
    "pad",
    _pad,
    lambda x, *, pad_width, value: TensorSpec(
        [b + s + a for s, (b, a) in zip(x.shape, pad_width, strict=True)], x.dtype
    ),
    _pad_rule,
    prepare=prepare_pad,
)

# astype, stop_gradient ------------------------------------------------------------------------------------------


def _prepare_astype(x: Array, /, dtype: npt.DTypeLike) -> Prepared:
    return (as_operand(x),), {"dtype": TensorSpec((), dtype).dtype}  # refuses dtypes that no tensor has


def _astype(x: Array, *, dtype: np.dtype[Any], out: Array = None) -> Array:
    """The values converted to another dtype."""
    if out is None:
        return np.asarray(x).astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


astype: Op = movement(
    "astype",
    _astype,
    lambda x, *, dtype: TensorSpec(x.shape, dtype),
    lambda g: g,  # cast back to the input's dtype in reverse.py, with every other mixed-dtype op
    prepare=_prepare_astype,
    broadcasts=True,
    layout="inputs",
)


def cast(g: Array, dtype: Any) -> Array:
    """Cast a cotangent to the dtype of its input, where the forward op converted the dtype."""
    return g if dtype_of(g) == dtype else astype(g, dtype)


def in_single(function: F) -> F:
    """Wrap a function whose first operand is float16 to compute in float32 and to round once.

    Squares, exponentials and sums reach beyond float16, and each step would round to three digits. Beside an operand of
    a wider float nothing is rounded to float16.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        x = args[0] if args else next(iter(options.values()), None)
        if not holds_half(x):
            return function(*args, **options)
        result = function(*map(wider, args), **{word: wider(value) for word, value in options.items()})
        return result if any(map(_is_wide, (*args, *options.values()))) else astype(result, dtype_of(x))

    return typing.cast(F, wrapper)


def _is_wide(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind == "f" and dtype.num != HALF


def wider(value: Any) -> Any:
    """A float16 operand in float32; anything else unchanged."""
    return astype(value, SINGLE) if holds_half(value) else value


def _prepare_identity(x: Any, /, *, order: str | tuple[int, ...] = "K") -> Prepared:
    if type(x) is int:  # as NumPy's function of that name takes it
        raise ShapeError(f"copies an array, and {x} is none; use eye({x}) for a matrix with ones on its diagonal")
    return (as_operand(x),), {} if order == "K" else {"order": order}


def _identity(x: Array, *, order: Any = "K", out: Array = None) -> Array:
    if out is None:
        if isinstance(order, tuple):
            return np.array(x.transpose(order), order="C").transpose(sorted(range(x.ndim), key=order.__getitem__))
        out = np.array(x, order=order)
        return lay(out, [x]) if order == "K" and 0 in x.strides else out
    return store(x, out)


identity: Op = movement(
    "identity",
    _identity,
    lambda x, *, order="K": x,
    lambda g: g,
    prepare=_prepare_identity,
    marks=True,
    layout="any",
    doc='A copy of the values, with the axes in the same order in memory, row by row with `order="C"`, or with the '
    "axes in this order, the outer one first. Graphs leave it out: it only marks what is differentiated, or owned, "
    "apart.",
)
stop_gradient: Op = movement(
    "stop_gradient",
    lambda x, *, out=None: store(x.view(), out),
    lambda x: x,
    prepare=one_operand,
    view=True,
    doc="The same values, treated as a constant by differentiation.",
)


# Functions made of the ops above -----------------------------------------------------------------------------


@composite
def expand_dims(x: Array, /, axis: Axis = 0) -> Array:
    """A view with axes of size 1 inserted at `axis`, which counts the axes of the result."""
    shape = list(shape_of(x))
    count = 1 if axis is None or isinstance(axis, int) else len(list(axis))
    for a in positive_axes(axis, len(shape) + count):
        shape.insert(a, 1)
    return reshape(x, tuple(shape))  # which an engine may remember, as it may no list


@composite
def squeeze(x: Array, /, axis: Axis = None) -> Array:
    """A view without the axes of size 1 named by `axis` (all of them by default)."""
    shape = shape_of(x)
    axes = positive_axes(axis, len(shape)) if axis is not None else [i for i, s in enumerate(shape) if dims.same(s, 1)]
    if not builtins.all(dims.same(shape[a], 1) for a in axes):
        raise ShapeError(f"axis {axis} has a size other than 1; reduce it, or reshape")
    return reshape(x, tuple([s for i, s in enumerate(shape) if i not in axes]))


@composite
def unstack(x: Array, /, axis: int = 0) -> tuple[Array, ...]:
    """The slices along one axis, whose size must be a number."""
    at = positive_axis(axis, len(shape_of(x)))
    return tuple(getitem(x, (slice(None),) * at + (i,)) for i in range(shape_of(x)[at]))


@composite
def matrix_transpose(x: Array, /) -> Array:
    """The last two axes swapped."""
    last_two(shape_of(x))
    return permute_dims(x, swapped_axes(len(shape_of(x))))


@composite
def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int], /) -> Array:
    """Axes moved from `source` to `destination`; the others keep their order."""
    ndim = len(shape_of(x))
    sources = [positive_axis(a, ndim) for a in ([source] if isinstance(source, int) else source)]
    targets = [positive_axis(a, ndim) for a in ([destination] if isinstance(destination, int) else destination)]
    if not len(sources) == len(targets) == len(set(sources)) == len(set(targets)):
        raise ShapeError(f"axes {source} do not move to {destination} one by one; name each once, on both sides")
    order = [a for a in range(ndim) if a not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute_dims(x, tuple(order))
