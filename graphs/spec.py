"""TensorSpec: the type of a value in a graph, its shape and dtype, without its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.dims import Dim, Shape, Size
from graphs.errors import ShapeError
from graphs.promotion import check_dtype

_SHORT_NAMES = {"float": "f", "int": "i", "uint": "u", "complex": "c"}


class TensorSpec:
    """The shape and dtype of a tensor; prints as `f32[B,784]`.

    A shape holds ints, and strings or `Dim`s for symbolic sizes: `TensorSpec(("B", 784), "float32")`.
    Raises ShapeError for a negative size and DTypeError for a dtype that is no number or bool.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int | str | Dim], dtype: npt.DTypeLike = "float32") -> None:
        self.shape: Shape = tuple(_size(s) for s in shape)
        self.dtype: np.dtype[Any] = check_dtype(np.dtype(dtype))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements; symbolic when a dimension is."""
        return dims.product(self.shape)

    @property
    def nbytes(self) -> Size:
        """The bytes of the data; symbolic when a dimension is."""
        return self.size * self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether the values are floating point, and so may have a gradient."""
        return self.dtype.kind == "f"

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbolic sizes in the shape."""
        return frozenset().union(*(dims.symbols(s) for s in self.shape))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self.dtype == other.dtype and dims.same_shape(self.shape, other.shape)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return describe(self.shape, self.dtype)


class OfTensor(TensorSpec):
    """The spec of an argument that a traced function is given as a dynamic tensor, not as an array."""

    __slots__ = ()


class TupleSpec(TensorSpec):
    """The spec of several tensors at once: what a control-flow op computes, before `part` picks one."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[TensorSpec]) -> None:
        self.items = tuple(items)
        self.shape = ()
        self.dtype = np.dtype(object)

    @property
    def nbytes(self) -> Size:
        """The bytes of all tensors of the tuple."""
        total: Size = 0
        for item in self.items:
            total = total + item.nbytes
        return total

    @property
    def is_float(self) -> bool:
        """Whether any tensor of the tuple is floating point."""
        return any(item.is_float for item in self.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleSpec) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.items))})"


def _size(value: int | str | Dim) -> Size:
    if isinstance(value, str):
        return dims.dim(value)
    if isinstance(value, Dim):
        return value
    size = int(value)
    if size < 0:
        raise ShapeError(f"sizes are 0 or more, got {size}")
    return size


def describe(shape: Shape, dtype: np.dtype[Any]) -> str:
    """The text of a spec, such as `f32[B,784]`; also for dtypes that no tensor has."""
    return f"{short_dtype(dtype)}[{','.join(map(str, shape))}]"


def short_dtype(dtype: np.dtype[Any]) -> str:
    """The short name of a dtype: `f32` for float32, `i64`, `u8`, `bool`."""
    kind = dtype.name.rstrip("0123456789")
    return _SHORT_NAMES[kind] + dtype.name[len(kind) :] if kind in _SHORT_NAMES else dtype.name


def spec_of(value: Any) -> TensorSpec:
    """The spec of an array, a tensor, a symbol or a NumPy scalar (anything with shape and dtype)."""
    if isinstance(value, TensorSpec):
        return value
    if not hasattr(value, "dtype"):
        value = np.asarray(value)
    return TensorSpec(value.shape, value.dtype)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape NumPy's broadcasting gives; a symbolic size broadcasts only with itself and 1.

    Raises ShapeError naming the two sizes that differ.
    """
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_broadcast_axis(sizes) for sizes in zip(*padded, strict=True))


def _broadcast_axis(sizes: tuple[Size, ...]) -> Size:
    result: Size = 1
    for size in sizes:
        if dims.same(result, 1):
            result = size
        elif not dims.same(size, 1) and not dims.same(size, result):
            raise ShapeError(f"sizes {result} and {size} do not broadcast; make them equal, or one of them 1")
    return result
