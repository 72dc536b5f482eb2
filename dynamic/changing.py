"""Methods that change a tensor: `x.exp_()` gives x the values, and the history, of `x.exp()`.

A name of a function and `_` is such a method. The result must fit the shape and the dtype of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dynamic import grad_mode
from graphs import ops
from graphs.errors import DTypeError, InplaceError, located
from graphs.ops.shapes import shape_of
from graphs.torch import functions
from graphs.torch.methods import TorchNames


def as_it_was(tensor: Any, *operands: Any) -> Any:
    """A tensor that is about to be changed, or a copy where backward may need what it holds now."""
    if grad_mode.is_grad_enabled() and any(map(requires_grad, (tensor, *operands))):
        return tensor.clone()
    return tensor


def requires_grad(value: Any) -> bool:
    """Whether a value is a tensor with a gradient."""
    return bool(getattr(value, "requires_grad", False))


class Changing:
    """The methods of a tensor that change it in place."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The name of a function and `_`."""

    def _assign(self, result: Any) -> Self:
        raise NotImplementedError

    def _forget(self) -> Self:
        raise NotImplementedError

    def add_(self, other: Any, alpha: float = 1) -> Self:
        """Add `alpha * other` in place."""
        return self._assign(self + (other if alpha == 1 else other * alpha))

    def sub_(self, other: Any, alpha: float = 1) -> Self:
        """Subtract `alpha * other` in place."""
        return self._assign(self - (other if alpha == 1 else other * alpha))

    def mul_(self, other: Any) -> Self:
        """Multiply in place."""
        return self._assign((as_it_was(self, other) if requires_grad(other) else self) * other)

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
        return self.copy_(value)

    def zero_(self) -> Self:
        """Set every element to 0."""
        return self.copy_(0)

    def detach_(self) -> Self:
        """Forget the history."""
        return self._forget()

    def float_power_(self, exponent: Any) -> Self:
        """Raise to a power in place. Raises DTypeError for other dtypes than float64, which the result has."""
        if self.dtype != np.float64:
            raise DTypeError(located(f"float_power_ gives float64, not {self.dtype}; use pow_"))
        return self._assign(functions.float_power(self, exponent))

    def where_(self, condition: Any, other: Any) -> Self:
        """Keep the elements where the condition is true, and take the other's elsewhere."""
        return self._assign(functions.where(condition, self, other))

    def fill_diagonal_(self, fill_value: Any) -> Self:
        """Set the elements of the diagonal to one value."""
        count = min(shape_of(self))
        return self._assign(ops.setitem(self, fill_value, (slice_ := ops.arange(count), slice_)))


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(self: Any, *args: Any, **options: Any) -> Any:
        return self._assign(function(as_it_was(self, *args, *options.values()), *args, **options))

    called.__doc__ = f"In place: {function.__doc__}"
    return called


def _reshaping(function: Callable[..., Any]) -> Callable[..., Any]:
    """The tensor itself in another shape, which shares the memory that it had."""

    def called(self: Any, *args: Any, **options: Any) -> Any:
        if self.is_leaf and self.requires_grad:
            raise InplaceError(located("in-place change of the shape of a leaf that requires a gradient; use a result"))
        found = function(self, *args, **options)
        self._data, self._edge = found._data, found._edge
        return self

    called.__doc__ = f"In place: {function.__doc__}"
    return called


for _name in ("squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"):
    setattr(Changing, f"{_name}_", _reshaping(getattr(TorchNames, _name)))

_NAMES = """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2
    arctanh asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip conj_physical copysign cos cosh cumprod
    cumsum deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 fix floor floor_divide fmod frac
    gcd ge greater greater_equal gt heaviside hypot i0 igamma igammac index_add index_copy index_fill index_put
    index_reduce lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logical_and logical_not logical_or
    logical_xor logit lt masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg negative nextafter
    not_equal polygamma pow put rad2deg reciprocal relu remainder renorm round rsqrt scatter scatter_add
    scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh threshold tril triu true_divide
    trunc xlogy
"""

for _name in _NAMES.split():
    if not hasattr(Changing, f"{_name}_"):
        setattr(Changing, f"{_name}_", _in_place(getattr(TorchNames, _name)))
for _operator, _name in (
    ("floordiv", "floor_divide"), ("mod", "remainder"), ("pow", "pow"),
    ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
    ("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift"),
):  # fmt: skip
    setattr(Changing, f"__i{_operator}__", getattr(Changing, f"{_name}_"))
