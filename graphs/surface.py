"""What a tensor looks like to its user: operators, methods and the NumPy protocols, once for Tensor and Symbol."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from graphs import numpy_protocol, ops
from graphs.dims import Shape
from graphs.errors import ControlFlowError, located
from graphs.ops.dtypes import VERSIONS, check_device
from graphs.ops.shapes import Axis
from graphs.torch_names import TorchNames, axis_words


class Surface(TorchNames):
    """The operators and methods of a value that has `shape` and `dtype`.

    Methods have NumPy's names, and PyTorch's where those mean nothing in NumPy. NumPy functions called on such
    a value dispatch to the op library; one with no counterpart raises TypeError.
    """

    __slots__ = ()
    __array_priority__ = 1000

    shape: Shape
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Self:
        """The axes reversed."""
        return ops.permute_dims(self)

    @property
    def mT(self) -> Self:
        """The last two axes swapped."""
        return ops.matrix_transpose(self)

    @property
    def device(self) -> str:
        """Where the values are: always "cpu"."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Self:
        """The tensor itself. Raises ValueError for any device but the CPU."""
        check_device(device)
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0].__index__()

    def __iter__(self) -> Iterator[Self]:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, key: Any) -> Self:
        return ops.index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ControlFlowError(
            located("a traced value cannot be changed in place; write x = graphs.setitem(x, value, key)")
        )

    # Operators ----------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Self:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Self:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Self:
        return ops.subtract(self, other)

    def __rsub__(self, other: Any) -> Self:
        return ops.subtract(other, self)

    def __mul__(self, other: Any) -> Self:
        return ops.multiply(self, other)

    def __rmul__(self, other: Any) -> Self:
        return ops.multiply(other, self)

    def __truediv__(self, other: Any) -> Self:
        return ops.divide(self, other)

    def __rtruediv__(self, other: Any) -> Self:
        return ops.divide(other, self)

    def __floordiv__(self, other: Any) -> Self:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Self:
        return ops.floor_divide(other, self)

    def __mod__(self, other: Any) -> Self:
        return ops.remainder(self, other)

    def __rmod__(self, other: Any) -> Self:
        return ops.remainder(other, self)

    def __matmul__(self, other: Any) -> Self:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Self:
        return ops.matmul(other, self)

    def __and__(self, other: Any) -> Self:
        return ops.bitwise_and(self, other)

    def __rand__(self, other: Any) -> Self:
        return ops.bitwise_and(other, self)

    def __or__(self, other: Any) -> Self:
        return ops.bitwise_or(self, other)

    def __ror__(self, other: Any) -> Self:
        return ops.bitwise_or(other, self)

    def __xor__(self, other: Any) -> Self:
        return ops.bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> Self:
        return ops.bitwise_xor(other, self)

    def __lshift__(self, other: Any) -> Self:
        return ops.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Any) -> Self:
        return ops.bitwise_left_shift(other, self)

    def __rshift__(self, other: Any) -> Self:
        return ops.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Any) -> Self:
        return ops.bitwise_right_shift(other, self)

    def __pow__(self, other: Any) -> Self:
        # The square is the commonest power, and one multiplication.
        return ops.square(self) if type(other) is int and other == 2 else ops.pow(self, other)

    def __rpow__(self, other: Any) -> Self:
        return ops.pow(other, self)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]  # elementwise, as every array library has it
        return ops.equal(self, other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return ops.not_equal(self, other)

    def __lt__(self, other: Any) -> Self:
        return ops.less(self, other)

    def __le__(self, other: Any) -> Self:
        return ops.less_equal(self, other)

    def __gt__(self, other: Any) -> Self:
        return ops.greater(self, other)

    def __ge__(self, other: Any) -> Self:
        return ops.greater_equal(self, other)

    def __neg__(self) -> Self:
        return ops.negative(self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return ops.abs(self)

    def __invert__(self) -> Self:
        return ops.bitwise_invert(self)

    def __round__(self) -> Self:
        return ops.round(self)

    __hash__ = object.__hash__

    # Methods ------------------------------------------------------------------------------------------------

    @axis_words
    def sum(self, axis: Axis = None, keepdims: bool = False, dtype: npt.DTypeLike | None = None) -> Self:
        """The sum over `axis`, in `dtype`."""
        return ops.sum(self, axis=axis, keepdims=keepdims, dtype=dtype)

    @axis_words
    def mean(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The mean over `axis`."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    @axis_words
    def prod(self, axis: Axis = None, keepdims: bool = False, dtype: npt.DTypeLike | None = None) -> Self:
        """The product over `axis`, in `dtype`."""
        return ops.prod(self, axis=axis, keepdims=keepdims, dtype=dtype)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The largest element over `axis`."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The smallest element over `axis`."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    @axis_words
    def any(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Whether any element is true."""
        return ops.any(self, axis=axis, keepdims=keepdims)

    @axis_words
    def all(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """Whether all elements are true."""
        return ops.all(self, axis=axis, keepdims=keepdims)

    @axis_words
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Self:
        """The index of the largest element."""
        return ops.argmax(self, axis=axis, keepdims=keepdims)

    @axis_words
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Self:
        """The index of the smallest element."""
        return ops.argmin(self, axis=axis, keepdims=keepdims)

    @axis_words
    def argsort(self, axis: int = -1, descending: bool = False, stable: bool = True) -> Self:
        """The indices that sort along one axis."""
        return ops.argsort(self, axis=axis, descending=descending, stable=stable)

    @axis_words
    def cumsum(self, axis: int | None = None) -> Self:
        """The running sum along one axis."""
        return ops.cumulative_sum(self, axis=axis)

    @axis_words
    def cumprod(self, axis: int | None = None) -> Self:
        """The running product along one axis."""
        return ops.cumulative_prod(self, axis=axis)

    def reshape(self, *shape: Any) -> Self:
        """The same elements in another shape."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Self:
        """The axes in another order, reversed by default."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return ops.permute_dims(self, order or None)

    @axis_words
    def squeeze(self, axis: Axis = None) -> Self:
        """Without the axes of size 1."""
        return ops.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Two axes swapped."""
        return numpy_protocol.call_function(np.swapaxes, (self, axis1, axis2), {})

    def flatten(self) -> Self:
        """All elements along one axis."""
        return ops.flatten(self)

    def astype(self, dtype: npt.DTypeLike) -> Self:
        """The values in another dtype."""
        return ops.astype(self, dtype)

    def clip(self, min: Any = None, max: Any = None) -> Self:
        """The values limited to a range."""
        return ops.clip(self, min, max)

    # NumPy protocols ----------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_protocol.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_protocol.call_function(func, args, kwargs)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The module with the array API standard's functions: `graphs`."""
        if api_version not in (None, *VERSIONS):
            raise ValueError(f"there is no version {api_version!r} of the array API here; use one of {VERSIONS}")
        return importlib.import_module("graphs")

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The values for another library, without a copy; as for np.asarray, detach a tensor with a history first."""
        options: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        given = {name: value for name, value in options.items() if value is not None}
        return np.asarray(self).__dlpack__(stream=stream, **given)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.asarray(self).__dlpack_device__()
