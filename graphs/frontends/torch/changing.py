"""Methods that change a tensor: `x.exp_()` gives x the values, and the history, of `x.exp()`.

A name of a function and `_` is such a method. The result must fit the shape and the dtype of the tensor. What changing
is depends on the kind of tensor, which says it by `_assign`, `_become`, `_forget` and `_before`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, located
from graphs.frontends.torch import functions
from graphs.frontends.torch.methods import TorchNames
from graphs.ops.shapes import dtype_of, shape_of


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(self: Any, *args: Any, **options: Any) -> Any:
        return self._assign(function(self._before(*args, *options.values()), *args, **options))

    return _named(called, function)


def _reshaping(function: Callable[..., Any]) -> Callable[..., Any]:
    """The tensor itself in another shape, which shares the memory that it had."""

    def called(self: Any, *args: Any, **options: Any) -> Any:
        return self._become(function(self, *args, **options))

    return _named(called, function)


def _named(called: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    called.__name__ = called.__qualname__ = f"{function.__name__}_"
    called.__doc__ = f"In place: {function.__doc__}"
    return called


class Changing:
    """The methods of a tensor that change it in place."""

    __slots__ = ()

    def _assign(self, result: Any) -> Self:
        """Take the values and the history of a result."""
        raise NotImplementedError

    def _become(self, result: Any) -> Self:
        """Be another view of the memory."""
        raise NotImplementedError

    def _forget(self) -> Self:
        """Have no history any more."""
        raise NotImplementedError

    def _before(self, *operands: Any) -> Self:
        """The tensor as it is, for an op that reads it after the change."""
        raise NotImplementedError

    def add_(self, other: Any, *tensor: Any, alpha: float = 1) -> Self:
        """Add `alpha * other` in place; in PyTorch's older order, a number and the tensor that it multiplies."""
        if tensor:
            return self._assign(functions.add(self, other, *tensor))
        return self._assign(self + (other if alpha == 1 else other * alpha))

    def sub_(self, other: Any, *tensor: Any, alpha: float = 1) -> Self:
        """Subtract `alpha * other` in place; in PyTorch's older order, a number and the tensor that it multiplies."""
        if tensor:
            return self._assign(functions.sub(self, other, *tensor))
        return self._assign(self - (other if alpha == 1 else other * alpha))

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
        return self.copy_(value)

    def zero_(self) -> Self:
        """Set every element to 0."""
        return self.copy_(0)

    def detach_(self) -> Self:
        """Forget the history."""
        return self._forget()

    def float_power_(self, exponent: Any) -> Self:
        """Raise to a power in place. Raises DTypeError for other dtypes than float64, which the result has."""
        if dtype_of(self) != np.float64:
            raise DTypeError(located(f"float_power_ gives float64, not {dtype_of(self)}; use pow_"))
        return self._assign(functions.float_power(self, exponent))

    def where_(self, condition: Any, other: Any) -> Self:
        """Keep the elements where the condition is true, and take the other's elsewhere."""
        return self._assign(functions.where(condition, self, other))

    def fill_diagonal_(self, fill_value: Any) -> Self:
        """Set the elements of the diagonal to one value."""
        count = min(shape_of(self))
        return self._assign(ops.setitem(self, fill_value, (slice_ := ops.arange(count), slice_)))

    squeeze_ = _reshaping(TorchNames.squeeze)
    swapaxes_ = _reshaping(TorchNames.swapaxes)
    swapdims_ = _reshaping(TorchNames.swapdims)
    t_ = _reshaping(TorchNames.t)
    transpose_ = _reshaping(TorchNames.transpose)
    unsqueeze_ = _reshaping(TorchNames.unsqueeze)

    abs_ = _in_place(TorchNames.abs)
    absolute_ = _in_place(TorchNames.absolute)
    acos_ = _in_place(TorchNames.acos)
    acosh_ = _in_place(TorchNames.acosh)
    addbmm_ = _in_place(TorchNames.addbmm)
    addcdiv_ = _in_place(TorchNames.addcdiv)
    addcmul_ = _in_place(TorchNames.addcmul)
    addmm_ = _in_place(TorchNames.addmm)
    addmv_ = _in_place(TorchNames.addmv)
    addr_ = _in_place(TorchNames.addr)
    arccos_ = _in_place(TorchNames.arccos)
    arccosh_ = _in_place(TorchNames.arccosh)
    arcsin_ = _in_place(TorchNames.arcsin)
    arcsinh_ = _in_place(TorchNames.arcsinh)
    arctan_ = _in_place(TorchNames.arctan)
    arctan2_ = _in_place(TorchNames.arctan2)
    arctanh_ = _in_place(TorchNames.arctanh)
    asin_ = _in_place(TorchNames.asin)
    asinh_ = _in_place(TorchNames.asinh)
    atan_ = _in_place(TorchNames.atan)
    atan2_ = _in_place(TorchNames.atan2)
    atanh_ = _in_place(TorchNames.atanh)
    baddbmm_ = _in_place(TorchNames.baddbmm)
    bitwise_and_ = _in_place(TorchNames.bitwise_and)
    bitwise_left_shift_ = _in_place(TorchNames.bitwise_left_shift)
    bitwise_not_ = _in_place(TorchNames.bitwise_not)
    bitwise_or_ = _in_place(TorchNames.bitwise_or)
    bitwise_right_shift_ = _in_place(TorchNames.bitwise_right_shift)
    bitwise_xor_ = _in_place(TorchNames.bitwise_xor)
    ceil_ = _in_place(TorchNames.ceil)
    clamp_ = _in_place(TorchNames.clamp)
    clamp_max_ = _in_place(TorchNames.clamp_max)
    clamp_min_ = _in_place(TorchNames.clamp_min)
    clip_ = _in_place(TorchNames.clip)
    conj_physical_ = _in_place(TorchNames.conj_physical)
    copysign_ = _in_place(TorchNames.copysign)
    cos_ = _in_place(TorchNames.cos)
    cosh_ = _in_place(TorchNames.cosh)
    cumprod_ = _in_place(TorchNames.cumprod)
    cumsum_ = _in_place(TorchNames.cumsum)
    deg2rad_ = _in_place(TorchNames.deg2rad)
    digamma_ = _in_place(TorchNames.digamma)
    divide_ = _in_place(TorchNames.divide)
    eq_ = _in_place(TorchNames.eq)
    erf_ = _in_place(TorchNames.erf)
    erfc_ = _in_place(TorchNames.erfc)
    erfinv_ = _in_place(TorchNames.erfinv)
    exp_ = _in_place(TorchNames.exp)
    exp2_ = _in_place(TorchNames.exp2)
    expm1_ = _in_place(TorchNames.expm1)
    fix_ = _in_place(TorchNames.fix)
    floor_ = _in_place(TorchNames.floor)
    floor_divide_ = _in_place(TorchNames.floor_divide)
    fmod_ = _in_place(TorchNames.fmod)
    frac_ = _in_place(TorchNames.frac)
    gcd_ = _in_place(TorchNames.gcd)
    ge_ = _in_place(TorchNames.ge)
    greater_ = _in_place(TorchNames.greater)
    greater_equal_ = _in_place(TorchNames.greater_equal)
    gt_ = _in_place(TorchNames.gt)
    heaviside_ = _in_place(TorchNames.heaviside)
    hypot_ = _in_place(TorchNames.hypot)
    i0_ = _in_place(TorchNames.i0)
    igamma_ = _in_place(TorchNames.igamma)
    igammac_ = _in_place(TorchNames.igammac)
    index_add_ = _in_place(TorchNames.index_add)
    index_copy_ = _in_place(TorchNames.index_copy)
    index_fill_ = _in_place(TorchNames.index_fill)
    index_put_ = _in_place(TorchNames.index_put)
    index_reduce_ = _in_place(TorchNames.index_reduce)
    lcm_ = _in_place(TorchNames.lcm)
    ldexp_ = _in_place(TorchNames.ldexp)
    le_ = _in_place(TorchNames.le)
    lerp_ = _in_place(TorchNames.lerp)
    less_ = _in_place(TorchNames.less)
    less_equal_ = _in_place(TorchNames.less_equal)
    lgamma_ = _in_place(TorchNames.lgamma)
    log_ = _in_place(TorchNames.log)
    log10_ = _in_place(TorchNames.log10)
    log1p_ = _in_place(TorchNames.log1p)
    log2_ = _in_place(TorchNames.log2)
    logical_and_ = _in_place(TorchNames.logical_and)
    logical_not_ = _in_place(TorchNames.logical_not)
    logical_or_ = _in_place(TorchNames.logical_or)
    logical_xor_ = _in_place(TorchNames.logical_xor)
    logit_ = _in_place(TorchNames.logit)
    lt_ = _in_place(TorchNames.lt)
    masked_fill_ = _in_place(TorchNames.masked_fill)
    masked_scatter_ = _in_place(TorchNames.masked_scatter)
    multiply_ = _in_place(TorchNames.multiply)
    mvlgamma_ = _in_place(TorchNames.mvlgamma)
    nan_to_num_ = _in_place(TorchNames.nan_to_num)
    ne_ = _in_place(TorchNames.ne)
    neg_ = _in_place(TorchNames.neg)
    negative_ = _in_place(TorchNames.negative)
    nextafter_ = _in_place(TorchNames.nextafter)
    not_equal_ = _in_place(TorchNames.not_equal)
    polygamma_ = _in_place(TorchNames.polygamma)
    pow_ = _in_place(TorchNames.pow)
    put_ = _in_place(TorchNames.put)
    rad2deg_ = _in_place(TorchNames.rad2deg)
    reciprocal_ = _in_place(TorchNames.reciprocal)
    relu_ = _in_place(TorchNames.relu)
    remainder_ = _in_place(TorchNames.remainder)
    renorm_ = _in_place(TorchNames.renorm)
    round_ = _in_place(TorchNames.round)
    rsqrt_ = _in_place(TorchNames.rsqrt)
    scatter_ = _in_place(TorchNames.scatter)
    scatter_add_ = _in_place(TorchNames.scatter_add)
    scatter_reduce_ = _in_place(TorchNames.scatter_reduce)
    sgn_ = _in_place(TorchNames.sgn)
    sigmoid_ = _in_place(TorchNames.sigmoid)
    sign_ = _in_place(TorchNames.sign)
    sin_ = _in_place(TorchNames.sin)
    sinc_ = _in_place(TorchNames.sinc)
    sinh_ = _in_place(TorchNames.sinh)
    sqrt_ = _in_place(TorchNames.sqrt)
    square_ = _in_place(TorchNames.square)
    subtract_ = _in_place(TorchNames.subtract)
    tan_ = _in_place(TorchNames.tan)
    tanh_ = _in_place(TorchNames.tanh)
    threshold_ = _in_place(TorchNames.threshold)
    tril_ = _in_place(TorchNames.tril)
    triu_ = _in_place(TorchNames.triu)
    true_divide_ = _in_place(TorchNames.true_divide)
    trunc_ = _in_place(TorchNames.trunc)
    xlogy_ = _in_place(TorchNames.xlogy)

    __ifloordiv__ = floor_divide_
    __imod__ = remainder_
    __ipow__ = pow_
    __iand__ = bitwise_and_
    __ior__ = bitwise_or_
    __ixor__ = bitwise_xor_
    __ilshift__ = bitwise_left_shift_
    __irshift__ = bitwise_right_shift_
