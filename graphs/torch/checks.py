"""What several of PyTorch's functions ask of their operands, where the ops below them take more."""

from __future__ import annotations

from typing import Any

from graphs.dims import same_shape
from graphs.errors import DTypeError, OutOfRangeError, ShapeError
from graphs.ops.shapes import dtype_of
from graphs.promotion import is_scalar
from graphs.torch.words import as_row, ndim_of, shape_of


def check_index(x: Any, axis: int, index: Any, source: Any = None) -> None:
    """Raise unless an index of ints has the axes of x, and lies in it but along one axis, and in a source."""
    if dtype_of(index).kind not in "iu":
        raise DTypeError(f"an index of {dtype_of(index)} names no places; convert with .long()")
    is_one = source is None or is_scalar(source) or not ndim_of(source)
    tensors = [x] if is_one else [x, source]
    wanted = shape_of(as_row(index))
    if 0 in wanted:
        return
    for tensor, free in zip(tensors, (axis, None), strict=False):
        sizes = shape_of(as_row(tensor))
        if len(sizes) != len(wanted):
            raise ShapeError(f"an index of {len(wanted)} axes for a tensor of {len(sizes)}; give them as many")
        pairs = [pair for i, pair in enumerate(zip(wanted, sizes, strict=True)) if i != free]
        if any(isinstance(size, int) and isinstance(most, int) and size > most for size, most in pairs):
            raise ShapeError(
                f"an index of shape {wanted} does not lie in a tensor of shape {sizes}; give a smaller one"
            )


def check_source(x: Any, axis: int, index: Any, source: Any) -> None:
    """Raise unless a source has the dtype of x, its shape but along one axis, and there a place for each index."""
    if dtype_of(source) != dtype_of(x):
        raise DTypeError(f"a source of {dtype_of(source)} does not go into {dtype_of(x)}; convert one of them")
    if ndim_of(index) > 1 or dtype_of(index).kind not in "iu":
        raise OutOfRangeError("the index is a vector of ints; use flatten() and long()")
    wanted = list(shape_of(as_row(x)))
    wanted[axis] = shape_of(as_row(index))[0]
    if not same_shape(shape_of(as_row(source)), wanted):
        raise OutOfRangeError(f"the source has the shape {tuple(wanted)}, a place for each index; expand or reshape it")
