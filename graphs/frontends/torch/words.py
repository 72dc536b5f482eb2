"""Conventions of PyTorch's calls: NumPy's words beside PyTorch's, dtypes, and sizes given one by one.

At the end, devices: the CPU, under PyTorch's name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from graphs import dims, ops
from graphs.errors import ArgumentError, DTypeError, OptionError, OutOfRangeError, locate
from graphs.ops.shapes import dtype_of
from graphs.ops.shapes import shape_of as _shape_of
from graphs.promotion import is_scalar

NUMPY_WORDS = {"axis": "dim", "keepdims": "keepdim", "x1": "input", "x2": "other", "x": "input"}
"""PyTorch's words for options, by those of NumPy and the array API."""


def axis_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of the op library be called with PyTorch's words, `dim` and `keepdim`."""

    @functools.wraps(function, updated=())
    def wrapper(input: Any, *args: Any, **options: Any) -> Any:
        if options:
            for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
                if theirs in options:
                    options[ours] = options.pop(theirs)
        return function(input, *args, **options)

    return wrapper


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype as NumPy's; Python's `float` is float64, as in PyTorch."""
    return np.dtype(dtype)


def cast(x: Any, dtype: Any) -> Any:
    """Cast a tensor to a dtype; the tensor itself if it has the dtype."""
    return x if dtype_of(x) == dtype else ops.astype(x, dtype)


def floats(x: Any) -> Any:
    """A tensor of floats: bools and ints become the default dtype."""
    return ops.astype(x, np.float32) if dtype_of(x).kind in "biu" else x


def sizes(words: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes, or axes, given one by one or as one sequence."""
    return tuple(words[0]) if len(words) == 1 and isinstance(words[0], (tuple, list)) else words


def place(dim: Any, ndim: int) -> int:
    """The number of an axis from 0 on; a tensor without axes has 0 and -1. Raises ArgumentError, OutOfRangeError."""
    most = max(ndim, 1)
    if not hasattr(dim, "__index__"):
        raise ArgumentError(locate(f"an axis is an int, not {dim!r}; count axes from 0, or from -1 backwards"))
    if not -most <= dim < most:
        raise OutOfRangeError(locate(f"there is no axis {dim} of {ndim}; use {-most} to {most - 1}"))
    return int(dim) % most


def axis_and_size(x: Any, dim: Any) -> tuple[int, Any]:
    """The number of an axis from 0 on, and its size. Raises OutOfRangeError, also for a tensor without axes."""
    axis = place(dim, ndim_of(x))
    if not ndim_of(x):
        raise OutOfRangeError("a tensor without axes has no parts; add an axis with unsqueeze(0)")
    return axis, shape_of(x)[axis]


def values_of(x: Any) -> Any:
    """The array of a tensor; None for a symbol, which has no values yet."""
    return x if isinstance(x, np.ndarray) else x.captured_array() if hasattr(x, "captured_array") else None


def as_row(x: Any) -> Any:
    """A tensor without axes as a vector of one element; other tensors, and numbers, unchanged."""
    return x if is_scalar(x) or ndim_of(x) else ops.reshape(x, (1,))


def axes_of(x: Any, dim: Any) -> Any:
    """Axes as the op library takes them: () for a tensor without axes, and None, for all axes, if none is named."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    if ndim_of(x):
        return dim
    for d in dim if isinstance(dim, (tuple, list)) else (dim,):
        place(d, 0)
    return ()


def shape_of(x: Any) -> tuple[Any, ...]:
    """The sizes; for a symbol they may be symbolic, and computing with these may raise ControlFlowError."""
    return _shape_of(x)


def ndim_of(x: Any) -> int:
    """The number of axes."""
    return len(shape_of(x))


def with_axis(function: Callable[..., Any], x: Any, dim: Any, *rest: Any, **options: Any) -> Any:
    """`function(x, *rest, axis=dim)`; tensors without axes are taken as vectors of one element, as in PyTorch."""
    if ndim_of(x):
        return function(x, *rest, axis=place(dim, ndim_of(x)), **options)
    place(dim, 0)
    result = function(ops.reshape(x, (1,)), *[ops.reshape(r, (1,)) for r in rest], axis=0, **options)
    return ops.reshape(result, ())


def unless_empty(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function(x, axis=)` to return the equally empty exp(x) where the axis is empty."""

    def wrapper(x: Any, *, axis: int) -> Any:
        return ops.exp(x) if dims.same(shape_of(x)[axis], 0) else function(x, axis=axis)

    return wrapper


def refuse(what: str, remedy: str) -> DTypeError:
    """Make the DTypeError for dtypes that PyTorch refuses."""
    return DTypeError(locate(f"{what}; {remedy}"))


class device(str):  # noqa: N801  (PyTorch's name)
    """The device of values: "cpu". Raises OptionError for any other device."""

    __slots__ = ()
    index: Any = None

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> Self:
        """The CPU. Raises OptionError for any other."""
        del index
        name = str(type)
        if name.partition(":")[0] != "cpu":
            remedy = "values are on the CPU: write device('cpu'), or ask cuda.is_available()"
            raise OptionError(locate(f"there is no device {name!r}; {remedy}"))
        return super().__new__(cls, "cpu")

    @property
    def type(self) -> str:
        """The kind of device."""
        return "cpu"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the block, which has no effect: all tensors are on the CPU."""

    def __repr__(self) -> str:
        return "device(type='cpu')"


CPU = device()


def check(value: Any) -> None:
    """Raise OptionError for any device but the CPU."""
    if value is not None and value is not CPU:
        device(value)
