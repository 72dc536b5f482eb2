"""Methods, attributes and operators of a tensor under PyTorch's names that are no functions, also in-place methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from graphs import ops
from graphs.dims import Sizes
from graphs.errors import DTypeError, ShapeError, locate
from graphs.frontends.torch import arithmetic, dtypes, functions, picking, products, shapes, words
from graphs.frontends.torch.arithmetic import of_op
from graphs.frontends.torch.functions import Methods
from graphs.frontends.torch.names import method
from graphs.frontends.torch.words import as_dtype, cast, ndim_of, place, within
from graphs.ops.shapes import HALF, dtype_of, shape_of

_DTYPES = (type, np.dtype, dtypes.dtype)
NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


def _conversion(name: str, dtype: Any) -> Callable[..., Any]:
    def convert(self: Any, memory_format: Any = None) -> Any:
        return cast(self, dtype) if memory_format is None else self.to(dtype, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The values as {dtypes.dtype(dtype).name}." if isinstance(dtype, type) else "Refused."
    return convert


class Conversions:
    """Methods that convert the values to another dtype."""

    __slots__ = ()

    float, double = _conversion("float", np.float32), _conversion("double", np.float64)
    half, long = _conversion("half", np.float16), _conversion("long", np.int64)
    int, short = _conversion("int", np.int32), _conversion("short", np.int16)
    char, byte = _conversion("char", np.int8), _conversion("byte", np.uint8)
    bool, bfloat16 = _conversion("bool", np.bool_), _conversion("bfloat16", dtypes.bfloat16)


@method(in_place=True)
def where(input: Any, condition: Any, other: Any) -> Any:
    """The elements of `input` where the condition is true, and those of `other` elsewhere."""
    return picking.where(condition, input, other)


@method(in_place=True)
def polygamma(input: Any, n: int) -> Any:
    """Derivative n + 1 of log(gamma(x))."""
    return arithmetic.polygamma(n, input)


def unlike_others(function: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison as an operator: None and text are no operands, and so differ from every tensor."""

    def wrapper(input: Any, other: Any) -> Any:
        return NotImplemented if other is None or isinstance(other, str) else function(input, other)

    return wrapper


def swap_operands(function: Callable[..., Any]) -> Callable[..., Any]:
    """Exchange the two operands of a function."""

    def wrapper(self: Any, other: Any) -> Any:
        return function(other, self)

    return wrapper


class Absence(NamedTuple):
    """An attribute that is not there, of a tensor as of its class: whoever reads it is told what to use instead."""

    name: str
    remedy: str

    def __get__(self, instance: Any, owner: type) -> Any:
        what = "type object 'Tensor'" if instance is None else "'Tensor' object"
        raise AttributeError(f"{what} has no attribute {self.name!r}: {self.remedy}", name=self.name)


def _rare(names: str, remedy: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), remedy)


_NO_MEMORY = "NumPy keeps the memory; compare tensors by `is`, and take the values by numpy()"
_DENSE = "tensors are dense; use the tensor itself"
ABSENT = {
    **_rare("data_ptr storage untyped_storage storage_offset", _NO_MEMORY),
    **_rare("to_sparse to_dense coalesce", _DENSE),
    "_version": "changes are counted inside; backward refuses a saved value that was changed",
    **_rare("stft istft", "frame the signal by unfold, and use torch.fft.rfft on the frames"),
    "resize": "use reshape, or torch.empty",
    "as_subclass": "all tensors have one class; keep what a subclass would add in an object that holds the tensor",
    **_rare("select_scatter slice_scatter diagonal_scatter as_strided_scatter", "assign to the part of a clone()"),
    **_rare("index_reduce index_reduce_", "use scatter_reduce, with an index of the shape of the source"),
    **_rare("addmv addmv_ addr addr_ addbmm addbmm_ chain_matmul", "write the sum, and the product with @"),
    **_rare("ldexp ldexp_", "write x * 2.0 ** n"),
    **_rare("float_power float_power_", "write x.double() ** n"),
    **_rare("mvlgamma mvlgamma_", "use torch.special.multigammaln"),
    **_rare("nanmedian nanquantile", "take x[~x.isnan()] first"),
    **_rare("lu_solve pinverse", "use lu_solve or pinv of torch.linalg"),
    "aminmax": "use amin and amax",
    "frexp": "use torch.log2, and floor",
    "histogram": "use histc, or bucketize and bincount",
    "msort": "use sort(0).values",
    "diagflat": "use flatten().diag()",
    **_rare("swapdims swapdims_", "use transpose"),
    **_rare("hsplit vsplit dsplit", "use tensor_split, with dim="),
    "vander": "write x[:, None] ** torch.arange(n)",
    **_rare("put put_", "use index_put of the flat tensor"),
    "is_signed": "ask x.dtype.is_signed",
    "logaddexp2": "use logaddexp, which is to base e",
    "sum_to_size": "use sum over the axes that were stretched",
    **_rare("is_conj is_neg resolve_neg conj_physical conj_physical_", "nothing is deferred; use conj()"),
    "is_nonzero": "use bool(x)",
    "is_same_size": "compare the shapes",
}
"""Names of PyTorch's tensors that ours have not, as hardly a program asks for them, and what to use instead."""


class TorchMethods(Methods, Conversions):
    """The methods and operators of a tensor under PyTorch's names; results have PyTorch's dtypes.

    How a tensor is changed in place depends on its class, which defines `_assign`, `_become`, `_forget` and `_before`.
    A result must fit the shape and the dtype of the tensor that it changes.
    """

    __slots__ = ()

    __add__ = arithmetic.add
    __radd__ = swap_operands(arithmetic.add)
    __sub__ = arithmetic.sub
    __rsub__ = arithmetic.rsub
    __mul__ = arithmetic.mul
    __rmul__ = swap_operands(arithmetic.mul)
    __truediv__ = arithmetic.true_divide
    __rtruediv__ = swap_operands(arithmetic.true_divide)
    __floordiv__ = functions.floor_divide
    __rfloordiv__ = swap_operands(functions.floor_divide)
    __mod__ = functions.remainder
    __rmod__ = swap_operands(functions.remainder)
    __rpow__ = shapes.laid_in_rows(swap_operands(arithmetic.pow))
    __matmul__ = products.matmul
    __rmatmul__ = swap_operands(products.matmul)
    __and__ = __rand__ = of_op(ops.bitwise_and)
    __or__ = __ror__ = of_op(ops.bitwise_or)
    __xor__ = __rxor__ = of_op(ops.bitwise_xor)
    __lshift__ = of_op(ops.bitwise_left_shift)
    __rlshift__ = swap_operands(__lshift__)
    __rshift__ = of_op(ops.bitwise_right_shift)
    __rrshift__ = swap_operands(__rshift__)
    __eq__ = unlike_others(of_op(ops.equal))
    __ne__ = unlike_others(of_op(ops.not_equal))
    __lt__ = of_op(ops.less)
    __le__ = of_op(ops.less_equal)
    __gt__ = of_op(ops.greater)
    __ge__ = of_op(ops.greater_equal)
    __abs__ = of_op(ops.abs)
    __neg__ = of_op(ops.negative)
    __hash__ = object.__hash__

    def __pow__(self, other: Any) -> Any:
        dtype = dtype_of(self)
        if dtype.kind == "f" and type(other) in (int, float) and dtype.num != HALF:
            return ops.square(self) if other == 2 else ops.pow(self, other)
        return arithmetic.pow(self, other)

    def take_along_axis(self, indices: Any, axis: int) -> Self:
        """The elements along an axis at the given indices, which broadcast."""
        return ops.take_along_axis(self, indices, axis=axis)

    def clone(self, *, memory_format: Any = None) -> Self:
        """A copy that keeps the history, and the order of the axes in memory unless a format asks for another."""
        return ops.identity(self, order=shapes.order_of(memory_format, ndim_of(self)))

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
        """Convert to a dtype, or to that of another tensor; the tensor itself where it has it.

        Raises ValueError for any device but the CPU.
        """
        del non_blocking
        for target in args:
            if isinstance(target, str):
                words.check(target)
            elif isinstance(target, _DTYPES):
                dtype = target
            elif hasattr(target, "shape"):
                dtype = dtype_of(target)
            elif target is not None and (type(target) is not bool or target is args[0]):
                raise DTypeError(locate(f"to: {target!r} is no dtype, no device and no tensor; give one of these"))
        words.check(device)
        copy = copy or [target for target in args if type(target) is bool][1:] == [True]  # after non_blocking
        wanted = dtype_of(self) if dtype is None else as_dtype(dtype)
        made = ops.identity(self) if copy and wanted == dtype_of(self) else cast(self, wanted)
        order = shapes.order_of(memory_format, ndim_of(self))
        if order == "K" or shapes.has_channels_last(shapes.memory_of(made)) == (order != "C"):
            return made
        return shapes.in_order(made, order)

    def type(self, dtype: Any = None) -> Any:
        """The name of the tensor's type, or with `dtype` the values in that dtype."""
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
        """Not supported: raises ValueError, as there is no GPU."""
        words.check(device or "cuda")
        return self

    def contiguous(self, memory_format: Any = None) -> Self:
        """The tensor itself if it is contiguous, also in the order "channels_last"; else a contiguous copy."""
        return shapes.in_order(self, shapes.order_of(memory_format, ndim_of(self), "C"))

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return dtype_of(self).kind == "f"

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements are contiguous in memory; for "channels_last" with the channels as the last axis."""
        memory: Any = shapes.memory_of(self)
        try:
            order = shapes.order_of(memory_format, memory.ndim, "C")
        except ShapeError:  # an order of another number of axes
            return False
        return bool((memory.transpose(order) if isinstance(order, tuple) else memory).flags.c_contiguous)

    def numel(self) -> Any:
        """The number of elements."""
        raise NotImplementedError

    def nelement(self) -> Any:
        """The number of elements."""
        return self.numel()

    @property
    def nbytes(self) -> Any:
        """The bytes of all elements."""
        return self.numel() * self.itemsize

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return dtype_of(self).itemsize

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

    # In place ---------------------------------------------------------------------------------------------------

    def _assign(self, result: Any) -> Self:
        """Change the tensor in place to the values and the history of a result."""
        raise NotImplementedError

    def _become(self, result: Any) -> Self:
        """Change the tensor in place to another view of its memory."""
        raise NotImplementedError

    def _forget(self) -> Self:
        """Change the tensor in place to one without a history."""
        raise NotImplementedError

    def _before(self, *operands: Any) -> Self:
        """The tensor's present values, for an op that reads them after an in-place change."""
        raise NotImplementedError

    def add_(self, other: Any, *tensor: Any, alpha: float = 1) -> Self:
        """Add `alpha * other` in place; also in PyTorch's older order, a number and the tensor that it multiplies."""
        if tensor or type(alpha) is not int or alpha != 1:
            return self._assign(functions.add(self, other, *tensor, alpha=alpha))
        return self._assign(self + other)

    def sub_(self, other: Any, *tensor: Any, alpha: float = 1) -> Self:
        """Subtract `alpha * other` in place; also in PyTorch's older order, a number and the tensor it multiplies."""
        if tensor or type(alpha) is not int or alpha != 1:
            return self._assign(functions.sub(self, other, *tensor, alpha=alpha))
        return self._assign(self - other)

    def mul_(self, other: Any) -> Self:
        """Multiply in place."""
        return self._assign((self._before(other) if getattr(other, "requires_grad", False) else self) * other)

    def div_(self, other: Any, rounding_mode: str | None = None) -> Self:
        """Divide in place."""
        return self._assign(self / other if rounding_mode is None else functions.div(self, other, rounding_mode))

    __iadd__ = add_
    __isub__ = sub_
    __imul__ = mul_
    __itruediv__ = div_

    def copy_(self, other: Any, non_blocking: bool = False) -> Self:
        """Take the values of another tensor, broadcast to this one's shape."""
        del non_blocking
        return self._assign(ops.setitem(self, other, ...))

    def fill_(self, value: Any) -> Self:
        """Set every element to one value."""
        return self.copy_(within(value, dtype_of(self)))

    def zero_(self) -> Self:
        """Set every element to 0."""
        return self.fill_(0)

    def detach_(self) -> Self:
        """Remove the history in place."""
        return self._forget()

    def fill_diagonal_(self, fill_value: Any) -> Self:
        """Set the elements of the diagonal to one value."""
        count, value = min(shape_of(self)), within(fill_value, dtype_of(self))
        return self._assign(ops.setitem(self, value, (slice_ := ops.arange(count), slice_)))

    __ifloordiv__ = Methods.floor_divide_
    __imod__ = Methods.remainder_
    __ipow__ = Methods.pow_
    __iand__ = Methods.bitwise_and_
    __ior__ = Methods.bitwise_or_
    __ixor__ = Methods.bitwise_xor_
    __ilshift__ = Methods.bitwise_left_shift_
    __irshift__ = Methods.bitwise_right_shift_


for _name, _remedy in ABSENT.items():
    setattr(TorchMethods, _name, Absence(_name, _remedy))


class Count(int):
    """The number of elements, as in the array API standard; a call returns the shape or one size, as in PyTorch."""

    shape: tuple[Any, ...]

    def __new__(cls, count: int, shape: tuple[Any, ...]) -> Self:
        """Make the number of elements of a tensor of this shape."""
        made = int.__new__(cls, count)
        made.shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        sizes = self.shape
        if type(dim) is int and -len(sizes) <= dim < len(sizes):
            return sizes[dim]
        return Sizes(sizes) if dim is None else sizes[place(dim, len(sizes))]
