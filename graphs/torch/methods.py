"""The methods of a tensor under PyTorch's names: functions as methods, and what is a method alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, located
from graphs.ops.shapes import dtype_of
from graphs.torch import arithmetic, comparing, devices, dtypes, functions, pointwise, products, shapes
from graphs.torch.function_methods import FunctionMethods
from graphs.torch.words import as_dtype, cast, ndim_of, place

_DTYPES = (type, np.dtype, dtypes.dtype)
NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


def _conversion(name: str, dtype: Any) -> Callable[..., Any]:
    def converted(self: Any) -> Any:
        return cast(self, dtype)

    converted.__name__ = converted.__qualname__ = name
    converted.__doc__ = f"The values as {np.dtype(dtype).name}."
    return converted


class Conversions:
    """Methods that give the values in another dtype."""

    __slots__ = ()

    float, double = _conversion("float", np.float32), _conversion("double", np.float64)
    half, long = _conversion("half", np.float16), _conversion("long", np.int64)
    int, short = _conversion("int", np.int32), _conversion("short", np.int16)
    char, byte = _conversion("char", np.int8), _conversion("byte", np.uint8)
    bool = _conversion("bool", np.bool_)


def swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two operands with these the other way round."""

    def called(self: Any, other: Any) -> Any:
        return function(other, self)

    return called


class TorchNames(FunctionMethods, Conversions):
    """Methods of a tensor under PyTorch's names, and its operators: the dtype of a result is PyTorch's."""

    __slots__ = ()

    # Defined where tensors are made: `dynamic/creation.py` and `dynamic/random.py`.
    new: ClassVar[Callable[..., Any]]
    new_empty: ClassVar[Callable[..., Any]]
    new_full: ClassVar[Callable[..., Any]]
    new_ones: ClassVar[Callable[..., Any]]
    new_tensor: ClassVar[Callable[..., Any]]
    new_zeros: ClassVar[Callable[..., Any]]
    bernoulli: ClassVar[Callable[..., Any]]
    bernoulli_: ClassVar[Callable[..., Any]]
    exponential_: ClassVar[Callable[..., Any]]
    multinomial: ClassVar[Callable[..., Any]]
    normal_: ClassVar[Callable[..., Any]]
    random_: ClassVar[Callable[..., Any]]
    uniform_: ClassVar[Callable[..., Any]]

    __add__ = arithmetic.add
    __radd__ = swapped(arithmetic.add)
    __sub__ = arithmetic.sub
    __rsub__ = arithmetic.rsub
    __mul__ = arithmetic.mul
    __rmul__ = swapped(arithmetic.mul)
    __truediv__ = arithmetic.true_divide
    __rtruediv__ = swapped(arithmetic.true_divide)
    __floordiv__ = functions.floor_divide
    __rfloordiv__ = swapped(functions.floor_divide)
    __mod__ = functions.remainder
    __rmod__ = swapped(functions.remainder)
    __rpow__ = swapped(arithmetic.pow)
    __matmul__ = products.matmul
    __rmatmul__ = swapped(products.matmul)
    __and__ = __rand__ = comparing.bitwise_and
    __or__ = __ror__ = comparing.bitwise_or
    __xor__ = __rxor__ = comparing.bitwise_xor
    __eq__ = comparing.eq
    __ne__ = comparing.ne
    __lt__ = comparing.lt
    __le__ = comparing.le
    __gt__ = comparing.gt
    __ge__ = comparing.ge
    __abs__ = pointwise.abs
    __neg__ = pointwise.neg
    __hash__ = object.__hash__

    def __pow__(self, other: Any) -> Any:
        if dtype_of(self).kind == "f" and type(other) in (int, float):
            return ops.square(self) if other == 2 else ops.pow(self, other)
        return arithmetic.pow(self, other)

    def where(self, condition: Any, other: Any) -> Self:
        """These elements where the condition is true, and the others' elsewhere."""
        return functions.where(condition, self, other)

    def take_along_axis(self, indices: Any, axis: int) -> Self:
        """The elements along an axis that an index names, which broadcasts."""
        return ops.take_along_axis(self, indices, axis=axis)

    def polygamma(self, n: int) -> Self:
        """Derivative n + 1 of log(gamma(x))."""
        return functions.polygamma(n, self)

    def clone(self, *, memory_format: Any = None) -> Self:
        """A copy that keeps the history."""
        del memory_format
        return ops.identity(self)

    # Kinds ------------------------------------------------------------------------------------------------------

    is_cuda = is_sparse = is_quantized = False

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        copy: bool = False,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """The values in a dtype, that of another tensor too; the tensor itself where nothing changes.

        Raises ValueError for any device but the CPU.
        """
        del non_blocking
        for target in args:
            if isinstance(target, str):
                devices.check(target)
            elif isinstance(target, _DTYPES):
                dtype = target
            elif hasattr(target, "shape"):
                dtype = dtype_of(target)
            elif target is not None and (type(target) is not bool or target is args[0]):
                raise DTypeError(located(f"to: {target!r} is no dtype, no device and no tensor; give one of these"))
        devices.check(device)
        copy = copy or [target for target in args if type(target) is bool][1:] == [True]  # after non_blocking
        wanted = dtype_of(self) if dtype is None else as_dtype(dtype)
        if "channels_last" in str(memory_format):
            return TorchNames.contiguous(cast(self, wanted), memory_format)
        return ops.identity(self) if copy and wanted == dtype_of(self) else cast(self, wanted)

    def type(self, dtype: Any = None) -> Any:
        """The name of the kind of tensor, or the values in a dtype."""
        if dtype is None:
            return f"torch.{NAMES[dtype_of(self).name]}Tensor"
        return self.to(dtype if isinstance(dtype, _DTYPES) else dtype.dtype)

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

    def contiguous(self, memory_format: Any = None) -> Self:
        """The tensor itself where its elements lie in a row, or as "channels_last" says, else a copy that does."""
        if TorchNames.is_contiguous(self, memory_format):
            return self
        if "channels_last" in str(memory_format):
            return ops.moveaxis(ops.identity(ops.moveaxis(self, 1, -1)), -1, 1)
        return ops.identity(self)

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return dtype_of(self).kind == "f"

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in a row; in "channels_last" those of all channels next to each other."""
        memory = shapes.memory_of(self)
        if memory is not None and "channels_last" in str(memory_format):
            return bool(memory.ndim > 3 and np.moveaxis(memory, 1, -1).flags.c_contiguous)
        return memory is None or bool(memory.flags.c_contiguous)

    def element_size(self) -> int:
        """The bytes of an element."""
        return dtype_of(self).itemsize

    # Shape ------------------------------------------------------------------------------------------------------

    def dim(self) -> int:
        """The number of axes."""
        return ndim_of(self)

    ndimension = dim

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
