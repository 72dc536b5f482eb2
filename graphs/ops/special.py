"""The error function, its complement, and the scaled complement, by rational approximations.

The coefficients are those of W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of
Computation 23 (1969), 631-637: relative error below 6e-19 on each of his three ranges, so that only the rounding of the
arithmetic is left, some 5 units in the last place. float32 needs less: its erf is tanh of x times a rational function
of degree 3 in x * x, made for this file by linear programming in 40-digit arithmetic; relative error 4e-9 before
rounding, 4 units in the last place after. The function is smooth, since erf and tanh are alike, and NumPy's tanh takes
as long as three of its products. float16 takes the same way.

Then the inverses of the error function and of its complement, by Newton's method in float64; last two activations,
which weigh x by a distribution function.

Near 0 the steps solve erf(y) = x; further out log(erfc(y)) = log(1 - x), which is nearly a parabola, so that each step
doubles the digits however far out y lies. They start from a Taylor polynomial and from S. Winitzki's approximation ("A
handy approximation for the error function and its inverse", 2008), which is right to 4 in 1000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.op import Array, Kernel, Op, TorchName
from graphs.ops.elementwise import add, divide, equal, exp, log, multiply, negative, sigmoid, square, subtract, where
from graphs.ops.families import elementwise
from graphs.ops.gamma import in_doubles
from graphs.ops.scans import round_to_dtype
from graphs.ops.shapes import HALF, SINGLE, shape_of

__all__ = ["entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv"]


Block = Callable[..., object]

BLOCK = 1 << 17  # bytes at a time: some dozens of passes stay in cache, and take longer than it takes to call them

_CENTRE = 0.46875  # up to here erf is a rational function of x * x, times x
_TAIL = 4.0  # and from here erfc is one of 1 / (x * x), times exp(-x * x)
_DEEP = 27.5  # erfc is 0 from here, in float64 too

# Coefficients of numerators and denominators, the highest power first.
_P1 = (
    1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
    3.20937758913846947e3,
)  # fmt: skip
_Q1 = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_P2 = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2,
    8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
)  # fmt: skip
_Q2 = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)  # fmt: skip
_P3 = (
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
    1.60837851487422766e-2, 6.58749161529837803e-4,
)  # fmt: skip
_Q3 = (
    1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
    2.33520497626869185e-3,
)  # fmt: skip

_P_SINGLE = (6.70361363, 1.31235834e2, 8.61009099e2, 3.47214155e3)
_Q_SINGLE = (1.0, 7.29022663e1, 4.82787407e2, 3.07710532e3)
_ONE_IN_SINGLE = 5.0  # erf is 1 from before here in float32


def _ratio(x: Array, numerator: Sequence[float], denominator: Sequence[float]) -> Array:
    """The quotient of two polynomials, each by Horner's rule."""
    top = _polynomial(x, numerator)
    return np.divide(top, _polynomial(x, denominator), out=top)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    first, second, *others = coefficients
    total = np.add(x if first == 1 else np.multiply(x, first), second)
    for coefficient in others:
        np.add(np.multiply(total, x, out=total), coefficient, out=total)
    return total


def _erf_centre(x: Array) -> Array:
    limited = np.clip(x, -_CENTRE, _CENTRE)
    return limited * _ratio(limited * limited, _P1, _Q1)


def _erf_block(x: Array, out: Array) -> None:
    if x.dtype == np.float32:
        limited = x.clip(-_ONE_IN_SINGLE, _ONE_IN_SINGLE, out)
        np.tanh(np.multiply(limited, _ratio(np.square(limited), _P_SINGLE, _Q_SINGLE), out), out)
        return
    size = np.abs(x)
    middle = np.clip(size, _CENTRE, 6)  # erf is 1 from there on
    outer = 1 - np.exp(-middle * middle) * _ratio(middle, _P2, _Q2)
    out[...] = np.where(size <= _CENTRE, _erf_centre(x), np.copysign(outer, x))


def _scaled_tail(size: Array) -> Array:
    """exp(x * x) * erfc(x) for x >= _CENTRE."""
    middle, far = np.clip(size, _CENTRE, _TAIL), np.maximum(size, _TAIL)
    inverse = 1 / (far * far)
    tail = (1 / math.sqrt(math.pi) - inverse * _ratio(inverse, _P3, _Q3)) / far
    return np.where(size <= _TAIL, _ratio(middle, _P2, _Q2), tail)


def _erfc_block(x: Array, out: Array) -> None:
    size = np.abs(x)
    near = np.minimum(size, _DEEP)
    # exp(-x * x) in two factors, the first of them exact: rounding x * x would cost as many digits as it is large.
    coarse = np.floor(near * 16) / 16
    rest = (near - coarse) * (near + coarse)
    with np.errstate(under="ignore"):
        outer = np.exp(-coarse * coarse) * np.exp(-rest) * _scaled_tail(near)
    outer = np.where(size >= _DEEP, 0, outer)
    out[...] = np.where(size <= _CENTRE, 1 - _erf_centre(x), np.where(x < 0, 2 - outer, outer))


def _erfcx_block(x: Array, out: Array) -> None:
    size = np.abs(x)
    with np.errstate(over="ignore"):
        power = np.exp(np.where(x < _CENTRE, x * x, 0))
    tail = _scaled_tail(size)
    out[...] = np.where(size <= _CENTRE, power * (1 - _erf_centre(x)), np.where(x < 0, 2 * power - tail, tail))


def _in_rows(x: Array, dtype: np.dtype[Any]) -> Array:
    """The elements in row-major order. Those of one number repeated, as the cotangents of a sum are, are not copied."""
    is_one = type(x) is np.ndarray and x.dtype == dtype and x.ndim and not any(x.strides)
    return x if is_one else np.asarray(x, dtype, order="C")


def by_blocks(block: Block) -> Kernel:
    """The kernel that calls `block(*arrays, out)` for some elements at a time, all of one float."""

    def kernel(*arrays: Array, out: Array = None) -> Array:
        kind = np.result_type(*arrays, 0.5)
        wide = SINGLE if kind.num == HALF else kind
        is_fit = out is not None and out.dtype == wide and out.flags.c_contiguous
        shape = np.broadcast_shapes(*map(np.shape, arrays)) if len(arrays) > 1 else np.shape(arrays[0])
        into = out if is_fit else np.empty(shape, wide)
        whole = [_in_rows(x if np.shape(x) == shape else np.broadcast_to(x, shape), wide) for x in arrays]
        size = BLOCK // wide.itemsize
        if into.ndim and into.size <= size:
            block(*whole, into)
        else:
            whole, rows = [x.reshape(-1) for x in whole], into.reshape(-1)
            for start in range(0, into.size, size):
                part = slice(start, start + size)
                block(*[x[part] for x in whole], rows[part])
        return into if is_fit or (out is None and kind is wide) else round_to_dtype(into, kind, out)

    return kernel


_SLOPE = 2 / math.sqrt(math.pi)


def _bell(x: Array) -> Array:
    """The derivative of erf."""
    return multiply(exp(negative(square(x))), _SLOPE)


erf: Op = elementwise(
    "erf",
    by_blocks(_erf_block),
    lambda g, x: multiply(g, _bell(x)),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=60,
    doc="The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x.",
    torch=TorchName("floats", in_place=True),
)
erfc: Op = elementwise(
    "erfc",
    by_blocks(_erfc_block),
    lambda g, x: negative(multiply(g, _bell(x))),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=100,
    doc="1 - erf(x), accurate also where that is tiny.",
    torch=TorchName("floats", in_place=True),
)
erfcx: Op = elementwise(
    "erfcx",
    by_blocks(_erfcx_block),
    lambda g, x: multiply(g, subtract(multiply(multiply(x, 2), erfcx(x)), _SLOPE)),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=100,
    doc="exp(x * x) * erfc(x), which decays as 1 / x.",
)


def _entropy(x: Array, out: Array = None) -> Array:
    kind = np.result_type(x, 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = -(x * np.log(x, dtype=np.promote_types(kind, np.float32)))  # -x of an unsigned int wraps
    values = np.where(x > 0, values, np.where(x < 0, -np.inf, np.where(x == 0, 0, x)))
    return round_to_dtype(values, kind, out)


entr: Op = elementwise(
    "entr",
    _entropy,
    lambda g, x: negative(multiply(g, add(log(x), 1))),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=20,
    doc="-x * log(x); 0 at 0, where its slope is infinite, and -inf below, where it has none.",
)

_WINITZKI = 0.147
_STEPS = 4
_HALF_ROOT = math.sqrt(math.pi) / 2


def _inverse(x: Array, rest: Array) -> Array:
    """The y >= 0 with erf(y) = x and erfc(y) = rest. x + rest is 1; the smaller of both is the exact one."""
    near = x < 0.5
    return np.where(near, _near(np.where(near, x, 0.25)), _far(np.where(near, 0.25, rest)))


def _near(x: Array) -> Array:
    y = _HALF_ROOT * x * (1 + math.pi / 12 * x * x)
    for _ in range(_STEPS):
        y = y - (erf.kernel(y) - x) * _HALF_ROOT * np.exp(y * y)
    return y


def _far(rest: Array) -> Array:
    logarithm = np.log(rest)
    whole = logarithm + np.log1p(1 - rest)  # of 1 - x * x
    middle = 2 / (math.pi * _WINITZKI) + whole / 2
    y = np.sqrt(np.sqrt(middle * middle - whole / _WINITZKI) - middle)
    for _ in range(_STEPS):
        scaled = erfcx.kernel(y)
        y = y + (np.log(scaled) - y * y - logarithm) * _HALF_ROOT * scaled
    return y


def _erfinv(x: Array) -> Array:
    size = np.abs(x)
    inside = size < 1
    values = np.copysign(_inverse(np.where(inside, size, 0), np.where(inside, 1 - size, 1)), x)
    return np.where(inside, values, np.where(size == 1, np.copysign(np.inf, x), np.nan))


def _erfcinv(x: Array) -> Array:
    inside, low = (x > 0) & (x < 2), x < 1
    rest = np.where(inside, np.where(low, x, 2 - x), 1)
    values = np.where(low, 1, -1) * _inverse(1 - rest, rest)
    return np.where(inside, values, np.where(x == 0, np.inf, np.where(x == 2, -np.inf, np.nan)))


def _slope(y: Array) -> Array:
    """The derivative of erfinv, from its result y."""
    return multiply(exp(square(y)), _HALF_ROOT)


erfinv: Op = elementwise(
    "erfinv",
    in_doubles(_erfinv),
    lambda g, out: multiply(g, _slope(out)),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=400,
    doc="The y with erf(y) = x; infinite at -1 and 1, NaN beyond.",
    copies=True,
    torch=TorchName("floats", in_place=True),
)
erfcinv: Op = elementwise(
    "erfcinv",
    in_doubles(_erfcinv),
    lambda g, out: negative(multiply(g, _slope(out))),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=400,
    doc="The y with erfc(y) = x, accurate also where x is tiny; infinite at 0 and 2, NaN beyond.",
)


# Activations: in fewer passes over memory than the ops that are their parts ------------------------------------------


def _gelu_block(x: Array, out: Array) -> None:
    _erf_block(np.multiply(x, _ROOT, out), out)
    np.multiply(np.multiply(x, 0.5), np.add(out, 1, out), out)


def _silu_block(x: Array, out: Array) -> None:
    np.multiply(x, sigmoid.kernel(x, out=out), out)


def _share_block(x: Array, y: Array, out: Array) -> None:
    """y / x, the share of x that an activation keeps; a half where x is 0."""
    np.divide(y, x, out)
    if (none := np.equal(x, 0)).any():
        out[none] = 0.5


def _gelu_gradient_block(g: Array, x: Array, y: Array, out: Array) -> None:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        _share_block(x, y, out)
        bell = np.square(x)
        np.exp(np.multiply(bell, -0.5, bell), bell)
        np.add(out, np.multiply(np.multiply(x, _PEAK), bell, bell), out)
        np.multiply(g, out, out)


def _silu_gradient_block(g: Array, x: Array, y: Array, out: Array) -> None:
    with np.errstate(divide="ignore", invalid="ignore"):
        _share_block(x, y, out)
        rest = np.subtract(1, out)
        np.add(out, np.multiply(y, rest, rest), out)
        np.multiply(g, out, out)


_ROOT = math.sqrt(0.5)
_PEAK = 1 / math.sqrt(2 * math.pi)


def _share(x: Array, y: Array) -> Array:
    none = equal(x, 0)
    return where(none, 0.5, divide(y, where(none, 1, x)))


def _normal_share(x: Array, factor: Array) -> Array:
    """A factor times the density of the normal distribution."""
    return multiply(multiply(factor, _PEAK), exp(multiply(square(x), -0.5)))


def _silu_gradient_parts(g: Array, x: Array, y: Array) -> Array:
    share = _share(x, y)
    return multiply(g, add(share, multiply(y, subtract(1, share))))


def _silu_bend(x: Array) -> Array:
    """The second derivative of silu."""
    share = sigmoid(x)
    rest = subtract(1, share)
    return multiply(multiply(share, rest), add(multiply(x, subtract(rest, share)), 2))


def by_size(op: Op, x: Array) -> Array:
    """An activation; of few elements by its parts, which take less time than to lay out blocks."""
    count = dims.product(shape_of(x))
    is_few = isinstance(count, int) and count < _FEW
    return op.parts(x) if is_few and op.parts else op(x)


_FEW = 4096  # elements


# `op(g, x, y)`, where y is the activation of x; their rule for x holds the part of y.
gelu_gradient: Op = elementwise(
    "gelu_gradient",
    by_blocks(_gelu_gradient_block),
    lambda g, y, z: gelu_gradient(g, y, z),
    lambda g, x, y: multiply(multiply(g, x), _normal_share(y, subtract(2, square(y)))),
    None,
    dtype=lambda *dtypes: np.result_type(*dtypes, 0.5),
    flops=20,
    parts=lambda g, x, y: multiply(g, add(_share(x, y), _normal_share(x, x))),
    listed=False,
    doc="The cotangent of x from that of y = gelu(x).",
)
silu_gradient: Op = elementwise(
    "silu_gradient",
    by_blocks(_silu_gradient_block),
    lambda g, y, z: silu_gradient(g, y, z),
    lambda g, x, y: multiply(multiply(g, x), _silu_bend(y)),
    None,
    dtype=lambda *dtypes: np.result_type(*dtypes, 0.5),
    flops=6,
    parts=_silu_gradient_parts,
    listed=False,
    doc="The cotangent of x from that of y = silu(x).",
)
gelu_op: Op = elementwise(
    "gelu",
    by_blocks(_gelu_block),
    lambda g, x, out: gelu_gradient(g, x, out),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=64,
    copies=True,
    parts=lambda x: multiply(multiply(x, 0.5), add(erf(multiply(x, _ROOT)), 1)),
    listed=False,
    doc="x times the normal distribution function of x.",
)
silu_op: Op = elementwise(
    "silu",
    by_blocks(_silu_block),
    lambda g, x, out: silu_gradient(g, x, out),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=19,
    copies=True,
    parts=lambda x: multiply(x, sigmoid(x)),
    listed=False,
    doc="x times the logistic function of x.",
)
