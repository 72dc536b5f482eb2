"""PyTorch's functions that reshape, reorder, cut and repeat tensors."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from typing import cast as cast_type

import numpy as np

from graphs import capture, ops
from graphs.dims import product, same
from graphs.dispatch import describe_operand
from graphs.errors import ArgumentError, OptionError, OutOfRangeError, ShapeError, locate
from graphs.frontends.torch.names import name, name_each
from graphs.frontends.torch.words import as_row, axis_and_size, ndim_of, place, refuse, shape_of, sizes
from graphs.ops.shapes import as_shape, axes_order, completed_shape, dtype_of
from graphs.spec import broadcast_shapes as common_shape

F = TypeVar("F", bound=Callable[..., Any])

# ---- memory --------------------------------------------------------------------------------------


def apart(result: Any, *operands: Any, order: str = "C") -> Any:
    """Copy a result that shares memory with an operand, for functions that promise memory of their own.

    `order` is NumPy's: by default the copy lies row by row; "K" keeps the order of the axes in memory.

    In a trace, where no tensor has memory, the copy says what a change in place does not reach.
    """
    memory = memory_of(result)
    if memory is None and capture.is_traced():
        return ops.identity(result, order=order)
    if memory is None or not any(_lies_in(memory, memory_of(operand)) for operand in operands):
        return result
    return ops.identity(result, order=order)


def laid_in_rows(function: F) -> F:
    """Wrap a function made of ops whose result lies row by row in PyTorch. A trace does not know how a value lies."""

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        return like_images(function(*args, **options))

    return cast_type(F, wrapper)


def has_channels_last(memory: Any) -> bool:
    """Whether PyTorch takes the channels of an array f[N, C, ...] of four or five axes for the inner ones in memory."""
    if memory is None or memory.ndim not in (4, 5) or not memory.size or not memory.strides[1]:
        return False
    least = 0
    for axis in (1, *range(memory.ndim - 1, 1, -1), 0):
        step = memory.strides[axis]
        if step < least or (axis == 0 and least == memory.strides[1]):
            return False
        least = step * memory.shape[axis]
    return True


def laid_as_images(function: F, count: int = 1) -> F:
    """Wrap a function whose results have their channels last where one of its first `count` arguments has."""

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        results = function(*args, **options)
        images = [*args, *options.values()][:count]
        if isinstance(results, tuple):
            return type(results)([like_images(result, *images) for result in results])
        return like_images(results, *images)

    return cast_type(F, wrapper)


def like_images(result: Any, *operands: Any) -> Any:
    """The result with its channels last in memory where an operand has them so, else row by row."""
    memory = layout_of(result)
    if memory is None:
        return _in_any_order(result)
    is_last = memory.ndim in (4, 5) and any(has_channels_last(layout_of(operand)) for operand in operands)
    return in_order(result, channels_last(memory.ndim) if is_last else "C")


def laid_like(result: Any, *sources: Any) -> Any:
    """The result with its axes in memory in the order in which an op of one element each of these tensors has them."""
    memories = [memory for memory in map(layout_of, sources) if memory is not None]
    is_known = memories and layout_of(result) is not None
    return in_order(result, axes_order(*memories)) if is_known else _in_any_order(result)


def _in_any_order(result: Any) -> Any:
    """The result; a trace notes that it may lie otherwise than the ops say that it is made of."""
    if hasattr(result, "_lie_anyhow"):
        result._lie_anyhow()
    return result


def in_order(x: Any, order: str | tuple[int, ...]) -> Any:
    """The tensor itself where its axes lie in this order of `identity` without gaps, else a copy that does."""
    memory = memory_of(x)
    turned = memory.transpose(order) if memory is not None and isinstance(order, tuple) else memory
    return x if turned is not None and turned.flags.c_contiguous else ops.identity(x, order=order)


def channels_last(ndim: int) -> tuple[int, ...]:
    """The order of the axes of f[N, C, ...] in memory where the channels are the inner ones."""
    return (0, *range(2, ndim), 1)


def order_of(memory_format: Any, ndim: int, usual: str = "K") -> Any:
    """What `identity` takes for one of PyTorch's orders of memory. Raises ShapeError for other axes than it has."""
    named = str(memory_format).removeprefix("torch.")
    if named not in _IMAGES:
        return {"contiguous_format": "C", "preserve_format": "K"}.get(named, usual)
    if ndim != _IMAGES[named]:
        raise ShapeError(f"{named} is an order of {_IMAGES[named]} axes, not of {ndim}; leave memory_format out")
    return channels_last(ndim)


_IMAGES = {"channels_last": 4, "channels_last_3d": 5}


def as_view(result: Any, source: Any) -> Any:
    """The result, which is a view of its source in any layout. A trace cannot tell that from the ops between."""
    share = getattr(source, "_share", None)
    return result if share is None else share(result)


def memory_of(value: Any) -> Any:
    """The array of a tensor; None for a symbol."""
    read = getattr(value, "captured_array", None)
    return None if read is None else read()


def layout_of(value: Any) -> Any:
    """The array of a tensor that has one by now; None for a symbol, and for what will be computed later."""
    return None if hasattr(value, "_look") else memory_of(value)


def _lies_in(memory: Any, other: Any) -> bool:
    return other is not None and np.may_share_memory(memory, other)


# ---- the order of axes ---------------------------------------------------------------------------


@name(in_place="shape", pairs=True)
def transpose(input: Any, *dims: Any, dim0: Any = None, dim1: Any = None) -> Any:
    """Swap two axes. Any other number of axes is as in NumPy: the axes in another order, reversed by default."""
    named = dims if dim0 is None else (dim0, *dims) if dim1 is None else (dim0, dim1)
    if dim1 is not None and dim0 is None:
        named = (*dims, dim1)
    if len(named) != 2 or not all(isinstance(d, int) for d in named):
        order = named[0] if len(named) == 1 and not isinstance(named[0], int) else named
        return ops.permute_dims(input, order or None)
    axes = list(range(ndim_of(input)))
    first, second = [place(d, ndim_of(input)) for d in named]
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return ops.permute_dims(input, axes)


@name(in_place="shape", pairs=True)
def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Two axes swapped."""
    return transpose(input, axis0, axis1)


@name(in_place="shape", pairs=True)
def t(input: Any) -> Any:
    """A matrix with its axes swapped. Raises ShapeError for more than two axes."""
    if ndim_of(input) > 2:
        raise ShapeError(
            locate(f"t: a tensor of {ndim_of(input)} axes has no single transpose; use transpose or permute")
        )
    return ops.permute_dims(input)


@name()
def adjoint(input: Any) -> Any:
    """The last two axes swapped."""
    return ops.matrix_transpose(input)


@name(pairs=True)
def permute(input: Any, *dims: Any) -> Any:
    """Put the axes in another order."""
    return ops.permute_dims(input, sizes(dims))


@name("movedim", pairs=True)
def moveaxis(input: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places."""
    if not ndim_of(input):
        return ops.reshape(ops.moveaxis(ops.reshape(input, (1,)), source, destination), ())
    return ops.moveaxis(input, source, destination)


# ---- the shape -----------------------------------------------------------------------------------


@name(pairs=True)
def reshape(input: Any, *shape: Any) -> Any:
    """The same elements in another shape."""
    return ops.reshape(input, sizes(shape) if shape else ())


@name(pairs=True)
def view(input: Any, *size: Any) -> Any:
    """The same elements in another shape. Raises DTypeError for a dtype that is not the tensor's own."""
    if len(size) == 1 and not isinstance(size[0], (int, tuple, list)) and not hasattr(size[0], "__index__"):
        dtype = size[0]
        if np.dtype(dtype) != dtype_of(input):
            by_numpy = f"torch.from_numpy(x.detach().numpy().view('{np.dtype(dtype)}'))"
            raise refuse("memory is not read as another dtype", f"write {by_numpy}, or convert by .to(dtype)")
        return _view(input, shape_of(input))
    return _view(input, sizes(size) if size else ())


def _view(input: Any, shape: Any) -> Any:
    """The same elements in another shape, which is a view. Raises ShapeError where the memory does not allow one."""
    result = ops.reshape(input, shape)
    if hasattr(input, "_look"):  # whose layout is not known, or has no part in it
        return input._look(result)
    memory = memory_of(input)
    if memory is not None:
        check_view(memory, memory_of(result))
    return result


def check_view(memory: Any, reshaped: Any) -> None:
    """Raise ShapeError where an array is no view of another that was reshaped to it."""
    if not memory.flags.c_contiguous and not _lies_in(reshaped, memory):
        steps = tuple([step // memory.itemsize for step in memory.strides])
        rule = f"elements that lie in memory in steps of {steps} have no view of shape {reshaped.shape}"
        raise ShapeError(f"{rule}; use reshape(), which copies them, or contiguous() first")


@name(pairs=True)
def view_as(input: Any, other: Any) -> Any:
    """The same elements in the shape of another tensor."""
    return _view(input, shape_of(other))


@name()
def reshape_as(input: Any, other: Any) -> Any:
    """The same elements in the shape of another tensor."""
    return ops.reshape(input, shape_of(other))


@name(pairs=True)
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge the axes from `start_dim` to `end_dim` into one."""
    shape, ndim = shape_of(input), ndim_of(input)
    first, last = place(start_dim, ndim), place(end_dim, ndim)
    if first > last:
        raise ShapeError(locate(f"flatten: axis {start_dim} is behind axis {end_dim}; swap them"))
    if not ndim:
        return ops.reshape(input, (1,))
    return ops.reshape(input, (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :]))


@name(pairs=True)
def ravel(input: Any) -> Any:
    """All elements in one axis; a copy unless they are contiguous."""
    return flatten(input.contiguous() if hasattr(input, "contiguous") else input)


@name(pairs=True)
def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Split one axis into several."""
    x = as_row(input)
    axis, size = axis_and_size(x, dim)
    parts, shape = completed_shape(as_shape(sizes), size), shape_of(x)
    if not same(product(parts), size):
        raise ShapeError(f"sizes {parts} do not multiply to {size}; let one be -1")
    return ops.reshape(x, (*shape[:axis], *parts, *shape[axis + 1 :]))


@name(in_place="shape", pairs=True)
def squeeze(input: Any, dim: Any = None) -> Any:
    """Remove axes of size 1, all or those named; other axes stay."""
    ndim, shape = ndim_of(input), shape_of(input)
    named = range(ndim) if dim is None else [place(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)]
    ones = [d for d in named if ndim and isinstance(shape[d], int) and shape[d] == 1]
    return ops.reshape(input, [size for i, size in enumerate(shape) if i not in ones])


@name(in_place="shape", pairs=True)
def unsqueeze(input: Any, dim: int) -> Any:
    """Insert an axis of size 1 at `dim`."""
    return ops.expand_dims(input, dim)


@name(pairs=True)
def expand(input: Any, *size: Any) -> Any:
    """Expand to larger sizes without copying; -1 keeps a size."""
    wanted, have = sizes(size), shape_of(input)
    missing = len(wanted) - len(have)
    if missing < 0:
        raise ShapeError(
            locate(f"expand: {len(have)} axes do not fit into {len(wanted)} sizes; give one for each axis")
        )
    kept = [have[i - missing] if i >= missing and isinstance(w, int) and w == -1 else w for i, w in enumerate(wanted)]
    return _broadcast(input, kept)


def _broadcast(input: Any, shape: Sequence[Any]) -> Any:
    """Broadcast to a shape. Where no element repeats, the result is a writable view."""
    is_whole = same(product(shape_of(input)), product(shape)) and len(shape) >= ndim_of(input)
    return ops.reshape(input, shape) if is_whole and all(shape_of(input)) else ops.broadcast_to(input, shape)


@name(pairs=True)
def expand_as(input: Any, other: Any) -> Any:
    """Expand to the shape of another tensor without copying."""
    return expand(input, *shape_of(other))


@name(pairs=True)
def broadcast_to(input: Any, size: Any) -> Any:
    """Expand to a shape without copying; -1 keeps a size."""
    return expand(input, *size)


@name()
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors broadcast to their common shape."""
    listed = sizes(tensors)
    shape = common_shape(*map(shape_of, listed))
    return tuple([_broadcast(x, shape) for x in listed])


@name()
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that the given shapes broadcast to."""
    return np.broadcast_shapes(*shapes)


# ---- parts ---------------------------------------------------------------------------------------


def cut(x: Any, axis: int, start: Any, stop: Any) -> Any:
    """The slices of an axis from one place to another."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


@name(pairs=True)
def narrow(input: Any, dim: int, start: Any, length: Any) -> Any:
    """`length` elements along an axis from `start`."""
    axis, size = axis_and_size(input, dim)
    first = operator.index(start)
    if not -size <= first <= size:
        raise OutOfRangeError(f"an axis of {size} has no place {first}; start from {-size} to {size}")
    first += size if first < 0 else 0
    if not first <= first + operator.index(length) <= size:
        raise ShapeError(f"{length} elements from {start} do not lie in an axis of {size}; take fewer")
    return cut(input, axis, first, first + operator.index(length))


@name(pairs=True)
def select(input: Any, dim: int, index: Any) -> Any:
    """One slice of an axis, without that axis."""
    axis, _ = axis_and_size(input, dim)
    return input[(slice(None),) * axis + (operator.index(index),)]


@name("split_with_sizes", pairs=True)
def split(input: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split along an axis into parts of one size, the last maybe smaller, or of the sizes in a list."""
    axis, size = axis_and_size(input, dim)
    if isinstance(split_size, int):
        if split_size < 0 or (split_size == 0 and size):
            raise OptionError(f"parts of {split_size} do not make up an axis of {size}; give 1 or more")
        split_size = [min(split_size, size - start) for start in range(0, size, split_size or 1)] or [0]
    if sum(split_size) != size or min(split_size, default=0) < 0:
        raise ShapeError(f"sizes {list(split_size)} do not add up to {size}; change one")
    ends = list(itertools.accumulate(split_size))
    return tuple([cut(input, axis, end - length, end) for end, length in zip(ends, split_size, strict=True)])


@name(pairs=True)
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Split along an axis into `chunks` parts or fewer, of one size but for the last."""
    _, size = axis_and_size(input, dim)
    if chunks < 1:
        raise OptionError(f"{chunks} parts hold nothing; ask for 1 or more")
    return split(input, -(-size // chunks), dim) if size else split(input, [0] * chunks, dim)


@name(pairs=True)
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split into parts of nearly one size, or at indices."""
    axis, size = axis_and_size(input, dim)
    sections, indices = _sections(indices_or_sections)
    if sections is not None:
        small, larger = divmod(size, sections)
        indices = list(itertools.accumulate([small + (i < larger) for i in range(sections - 1)]))
    bounds = [0, *indices, None]
    return tuple([cut(input, axis, bounds[i] if i else None, bounds[i + 1]) for i in range(len(bounds) - 1)])


def _sections(sections_or_size: Any) -> tuple[int | None, Sequence[int]]:
    """A number of parts, or else the indices where they end; an int tensor may be either."""
    if isinstance(sections_or_size, (list, tuple)) or (
        not isinstance(sections_or_size, int) and ndim_of(sections_or_size) == 1
    ):
        return None, [operator.index(place_) for place_ in sections_or_size]
    if isinstance(sections_or_size, str) or ndim_of(sections_or_size):
        raise ArgumentError(
            f"parts are given as a number or as a list of places, not as {describe_operand(sections_or_size)}; give one"
        )
    if (sections := operator.index(sections_or_size)) < 1:
        raise OptionError(f"{sections} parts hold nothing; ask for 1 or more")
    return sections, ()


@name(pairs=True)
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """The slices of an axis, as a tuple."""
    axis, _ = axis_and_size(input, dim)
    return tuple(ops.unstack(input, axis=axis))


# ---- order along axes ----------------------------------------------------------------------------


@name(pairs=True)
def flip(input: Any, *dims: Any) -> Any:
    """Reverse the axes."""
    return apart(ops.flip(input, axis=sizes(dims)), input, order="K")


def _reversing(reverse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def wrapper(input: Any) -> Any:
        return apart(reverse(input), input, order="K")

    return wrapper


fliplr, flipud = name_each(_reversing, fliplr=ops.fliplr, flipud=ops.flipud)


@name(pairs=True)
def roll(input: Any, shifts: Any, dims: Any = None, *, dim: Any = None) -> Any:
    """Roll along axes, or through all elements in row-major order."""
    dims = dims if dim is None else dim
    along = None if dims is None or (isinstance(dims, Sequence) and not len(dims)) else dims
    if along is not None and not ndim_of(input):
        raise OutOfRangeError(f"a tensor without axes has no axis {along}; leave dims out")
    counts = [len(part) if isinstance(part, Sequence) else 1 for part in (shifts, 0 if along is None else along)]
    if counts[0] != counts[1]:
        raise ShapeError(f"{counts[0]} shifts for {counts[1]} axes; give one for each")
    shift = shifts[0] if along is None and isinstance(shifts, Sequence) else shifts
    return like_images(ops.roll(input, shift, axis=along), input if along is not None else None)


@name()
def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Rotate by quarter turns in the plane of two axes."""
    if len(dims) != 2:
        raise ShapeError(f"turns in the plane of two axes, not {len(dims)}; name both")
    return apart(ops.rot90(input, k, dims), input, order="K" if k % 4 else "C")
