"""The methods of a tensor under PyTorch's names: one mechanism for all of them.

A function of this folder whose first parameter is called `input` is a method as well. What is a method alone stands
in the class below.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, located
from graphs.ops.shapes import dtype_of
from graphs.torch import devices, functions
from graphs.torch.words import as_dtype, cast, ndim_of, place

NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


def _is_method(function: Any) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code.co_argcount > 0 and code.co_varnames[0] == "input"


class TorchNames:
    """Methods of a tensor under PyTorch's names."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Any function of this folder."""

    def where(self, condition: Any, other: Any) -> Self:
        """These elements where the condition is true, and the others' elsewhere."""
        return functions.where(condition, self, other)

    def take_along_axis(self, indices: Any, axis: int) -> Self:
        """The elements along an axis that an index names, which broadcasts."""
        return ops.take_along_axis(self, indices, axis=axis)

    def polygamma(self, n: int) -> Self:
        """Derivative n + 1 of log(gamma(x))."""
        return functions.polygamma(n, self)

    # Kinds ------------------------------------------------------------------------------------------------------

    def to(
        self, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False
    ) -> Self:
        """The values in a dtype, that of another tensor too; the tensor itself where nothing changes.

        Raises ValueError for any device but the CPU.
        """
        del non_blocking
        for given in args:
            if isinstance(given, str):
                devices.check(given)
            elif isinstance(given, (type, np.dtype)):
                dtype = given
            elif hasattr(given, "shape"):
                dtype = dtype_of(given)
            elif given is not None and (type(given) is not bool or given is args[0]):
                raise DTypeError(located(f"to: {given!r} is no dtype, no device and no tensor; give one of these"))
        devices.check(device)
        wanted = dtype_of(self) if dtype is None else as_dtype(dtype)
        return ops.identity(self) if copy and wanted == dtype_of(self) else cast(self, wanted)

    def type(self, dtype: Any = None) -> Any:
        """The name of the kind of tensor, or the values in a dtype."""
        if dtype is None:
            return f"torch.{NAMES[dtype_of(self).name]}Tensor"
        return self.to(dtype if isinstance(dtype, (type, np.dtype)) else dtype.dtype)

    def type_as(self, other: Any) -> Self:
        """The values in the dtype of another tensor."""
        return cast(self, dtype_of(other))

    def cpu(self) -> Self:
        """The tensor itself, which is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raises ValueError: there is no GPU."""
        devices.check(device or "cuda")
        return self

    def contiguous(self) -> Self:
        """The tensor itself: every op takes any order of memory."""
        return self

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return dtype_of(self).kind == "f"

    def is_contiguous(self) -> bool:
        """True: every op takes any order of memory."""
        return True

    def element_size(self) -> int:
        """The bytes of an element."""
        return dtype_of(self).itemsize

    # Shape ------------------------------------------------------------------------------------------------------

    def dim(self) -> int:
        """The number of axes."""
        return ndim_of(self)

    ndimension = dim

    def nelement(self) -> int:
        """The number of elements."""
        return self.numel()

    @property
    def real(self) -> Self:
        """The tensor itself: all numbers are real."""
        return self

    @property
    def H(self) -> Self:  # noqa: N802
        """The axes of a matrix swapped."""
        return functions.t(self)

    @property
    def mH(self) -> Self:  # noqa: N802
        """The last two axes swapped."""
        return ops.matrix_transpose(self)


class Count(int):
    """The number of elements, as the array API standard has it; called, the shape or one size, as PyTorch."""

    shape: tuple[Any, ...]

    def __new__(cls, count: int, shape: tuple[Any, ...]) -> Self:
        """The number of elements of a tensor of that shape."""
        made = super().__new__(cls, count)
        made.shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[place(dim, len(self.shape))]


def _conversion(dtype: Any) -> Callable[[Any], Any]:
    def converted(self: Any) -> Any:
        return cast(self, dtype)

    converted.__doc__ = f"The values as {np.dtype(dtype).name}."
    return converted


_CONVERSIONS: Mapping[str, Any] = {
    "float": np.float32, "double": np.float64, "half": np.float16, "long": np.int64, "int": np.int32,
    "short": np.int16,
    "char": np.int8, "byte": np.uint8, "bool": np.bool_,
}  # fmt: skip

for _name in functions.__all__:
    if _is_method(_function := getattr(functions, _name)) and not hasattr(TorchNames, _name):
        setattr(TorchNames, _name, _function)
for _name, _dtype in _CONVERSIONS.items():
    setattr(TorchNames, _name, _conversion(_dtype))
