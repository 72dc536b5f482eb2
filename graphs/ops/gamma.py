"""The gamma function, its derivatives, the incomplete gamma and beta functions, and Bessel functions.

polygamma: recurrence up to 10 and an asymptotic series there (Abramowitz and Stegun, 6.3.18 and 23.2); the incomplete
functions: a series or a continued fraction, whichever converges sooner (6.5.29, 6.5.31 and 26.5.8), by Lentz's method;
where a is large, an expansion around the normal distribution.
All kernels compute in float64; the errors, relative to the larger of the value and 1, are some 1e-15, or 1e-12 for the
incomplete functions of arguments up to 100.

The modified Bessel functions of the first kind, of orders 0 and 1: a power series, and for large x an asymptotic one
(Abramowitz and Stegun, 9.6.10 and 9.7.1), in float64; the error is a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs.errors import NotDifferentiableError, locate
from graphs.op import Array, Kernel, Op, TorchName
from graphs.ops.elementwise import abs as _abs
from graphs.ops.elementwise import (
    add,
    divide,
    exp,
    less,
    log,
    log1p,
    multiply,
    negative,
    sign,
    square,
    subtract,
    where,
)
from graphs.ops.families import elementwise

__all__ = [
    "betainc", "digamma", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "polygamma", "stdtr", "zeta",
]  # fmt: skip


Values = Callable[..., Array]
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_START = 10.0  # of the asymptotic series
_LOWEST = -1000.0  # below it the recurrence takes too many steps
_TINY = 1e-300
_TERMS = 5_000  # enough for parameters up to about 300,000


def in_doubles(function: Values) -> Kernel:
    """Make a kernel of a function that takes flat float64 arrays of one size."""

    def kernel(*inputs: Array, out: Array = None) -> Array:
        kind = np.result_type(*inputs, 0.5)
        shape = np.broadcast_shapes(*map(np.shape, inputs))
        arrays = [np.broadcast_to(x, shape).astype(np.float64).reshape(-1) for x in inputs]
        with np.errstate(all="ignore"):
            result = function(*arrays).reshape(shape)
        if out is None:
            return result.astype(kind)
        out[...] = result
        return out

    return kernel


def _gammaln(x: Array) -> Array:
    return np.fromiter(map(_lgamma, x.tolist()), np.float64, x.size)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):  # too large, or a pole
        return math.inf


def _digamma(x: Array) -> Array:
    y = np.where(x < 0, 1 - x, x)
    result = np.zeros_like(x)
    for _ in range(int(_START)):
        small = y < _START
        result -= np.where(small, 1 / y, 0)
        y = np.where(small, y + 1, y)
    result += np.log(y) - 0.5 / y
    for i, number in reversed([*enumerate(_BERNOULLI, 1)]):
        result -= number / (2 * i * y ** (2 * i))
    part = x - np.round(x)
    mirrored = np.where(part == 0, np.nan, result - np.pi / np.tan(np.pi * part))
    return np.where(x < 0, mirrored, np.where(x == 0, -np.copysign(np.inf, x), result))


def _zeta(s: Array, q: Array) -> Array:
    """The sum of (q + k) ** -s over all k >= 0, for s > 1; where q is below 0, s must be a whole number."""
    result, y = np.zeros_like(q), np.where(q < _LOWEST, np.nan, q)
    while (small := y < _START).any():
        result += np.where(small, np.where(small, y, 1.0) ** -s, 0)
        y = np.where(small, y + 1, y)
    result += y ** (1 - s) / (s - 1) + y**-s / 2
    factor = s * y ** (-s - 1) / 2
    for i, number in enumerate(_BERNOULLI, 1):
        result += number * factor
        factor = factor * (s + 2 * i - 1) * (s + 2 * i) / (y * y * (2 * i + 1) * (2 * i + 2))
    return np.where(np.isinf(q), 0, result)


def _hurwitz(s: Array, q: Array) -> Array:
    pole = (q <= 0) & (q == np.floor(q))
    wrong = (s < 1) | np.isnan(s) | ((q < 0) & (s != np.floor(s)) & ~pole)
    values = _zeta(np.where(wrong | (s == 1), 2, s), np.where(pole | wrong, 1, q))
    return np.where(wrong, np.nan, np.where(pole | (s == 1), np.inf, values))


def _polygamma(n: Array, x: Array) -> Array:
    result = np.full_like(x, np.nan)
    first, rest = n == 0, (n > 0) & (n == np.floor(n))
    result[first] = _digamma(x[first])
    orders: Array = np.extract(rest, n)
    points: Array = np.extract(rest, x)
    scale = np.where(orders % 2, 1.0, -1.0) * np.exp(_gammaln(orders + 1)).round()
    mirrored = (orders == 1) & (points < _LOWEST)  # by reflection, as the recurrence would not end
    values = scale * _zeta(orders + 1, np.where(mirrored, 1 - points, points))
    slope: Any = (np.pi / np.sin(np.pi * (points - np.round(points)))) ** 2
    result[rest] = np.where(mirrored, slope - values, values)
    return result


def _gammas(a: Array, x: Array) -> tuple[Array, Array]:
    """The regularised lower and upper incomplete gamma functions."""
    wrong, none, endless = (a < 0) | (x < 0) | np.isnan(a + x) | ((a == 0) & (x == 0)), x == 0, np.isinf(x)
    wrong |= np.isinf(a) & endless
    endless |= (a == 0) & (x > 0)  # all of the integral lies at 0
    plain, large = wrong | endless, a > _LARGE
    shares = np.array(_few_gammas(*[np.where(plain | large, 1, value) for value in (a, x)]))
    large &= ~plain
    shares[:, large] = _large_gammas(a[large], x[large])
    return (
        np.where(wrong, np.nan, np.where(none, 0, np.where(endless, 1, shares[0]))),
        np.where(wrong, np.nan, np.where(none, 1, np.where(endless, 0, shares[1]))),
    )


def _few_gammas(a: Array, x: Array) -> tuple[Array, Array]:
    """The regularised incomplete gamma functions: a series below the mean of the density, else a continued fraction."""
    scale = np.exp(a * np.log(x) - x - _gammaln(a))
    near = x < a + 1
    lower = scale * _series(a, np.where(near, x, 0))
    upper = scale * _fraction(a, np.where(near, a + 1, x))
    # Where the lower share is nearly 1, nothing of the upper one is left in 1 - lower.
    tiny = near & (x <= 1.1) & (a <= np.where(x <= 0.5, -0.4 / np.log(np.minimum(x, 0.5)), 1.1 * x))
    rest = np.where(near, 1 - lower, upper)
    rest[tiny] = _small_upper(a[tiny], x[tiny])
    return np.where(near, lower, 1 - upper), rest


def _small_upper(a: Array, x: Array) -> Array:
    """The regularised upper incomplete gamma function of small `a` and x, both at most about 1 (as in Cephes)."""
    total, term = np.zeros_like(x), np.ones_like(x)
    for n in range(1, 30):
        term = -term * x / n
        total += term / (a + n)
    power = a * np.log(x)
    return -np.expm1(power - _gammaln_of_next(a)) - np.exp(power - _gammaln(a)) * total


def _gammaln_of_next(a: Array) -> Array:
    """log(gamma(1 + a)) from 0 to 1.5, with all digits where it is near 0: Taylor's series at 0, and shifted at 1."""
    past = a > 0.5
    t = np.where(past, a - 1, a)
    orders = np.arange(2.0, 60.0)
    factors = _zeta(orders, np.ones_like(orders)) / orders * (-1) ** orders
    series = t * (-np.euler_gamma + t * np.polyval(factors[::-1], t))
    return series + np.where(past, np.log(np.where(past, a, 1)), 0)


_LARGE = 200_000.0  # from here on the density is so narrow that few terms of Temme's expansion are enough


def _large_gammas(a: Array, x: Array) -> tuple[Array, Array]:
    """The regularised incomplete gamma functions for large `a`: around the normal distribution (Temme, 1979)."""
    a = np.minimum(a, 1e300)
    m = (x - a) / a
    near = sum((-m) ** k / k for k in range(2, 12))
    half = np.where(np.abs(m) < 0.01, near, m - np.log1p(m))
    eta = np.copysign(np.sqrt(2 * half), m)
    first, second = (np.polyval(factors, np.clip(eta, -1, 1)) for factors in _TEMME)
    rest = np.exp(-a * half) / np.sqrt(2 * np.pi * a) * (first + second / a)
    lower, upper = (_erfc(sign * eta * np.sqrt(a / 2)).astype(float) / 2 for sign in (-1, 1))
    return lower - rest, upper + rest


_erfc = np.frompyfunc(math.erfc, 1, 1)
# Coefficients of powers of eta, the highest power first.
_TEMME = (
    (1 / 25515, -139 / 777600, 1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3),
    (-77 / 77760, 1 / 378, -1 / 288, -1 / 540),
)


def _series(a: Array, x: Array) -> Array:
    total = term = 1 / a
    for k in range(1, _TERMS):
        term = term * x / (a + k)
        total = total + term
        going = np.abs(term) > np.abs(total) * 1e-17
        if not going.any():
            return total
    return np.where(going, np.nan, total)


def _fraction(a: Array, x: Array) -> Array:
    return 1 / _lentz(x + 1 - a, lambda k: (-k * (k - a), x + 2 * k + 1 - a))


def _lentz(first: Array, terms: Callable[[int], tuple[Array, Array]]) -> Array:
    """first + a1 / (b1 + a2 / (b2 + ...)), where `terms(k)` gives ak and bk (Lentz, 1976)."""
    value = c = np.where(first == 0, _TINY, first)
    d, going = np.zeros_like(value), np.full(value.shape, True)
    for k in range(1, _TERMS):
        a, b = terms(k)
        d, c = b + a * d, b + a / c
        d, c = 1 / np.where(d == 0, _TINY, d), np.where(c == 0, _TINY, c)
        value = np.where(going, value * c * d, value)  # of one element, whatever stands beside it
        going &= np.abs(c * d - 1) > 1e-15
        if not going.any():
            return value
    return np.where(going, np.nan, value)


def _betainc(a: Array, b: Array, x: Array) -> Array:
    wrong = (a <= 0) | (b <= 0) | (x < 0) | (x > 1) | np.isnan(a + b + x)
    a, b, x = np.where(wrong, 1, a), np.where(wrong, 1, b), np.where(wrong, 0, x)
    swapped = x > (a + 1) / (a + b + 2)
    p: Any = np.where(swapped, b, a)
    q: Any = np.where(swapped, a, b)
    t: Any = np.where(swapped, 1 - x, x)

    def terms(k: int) -> tuple[Array, Array]:
        m: Any = k // 2
        if k % 2:
            return -(p + m) * (p + q + m) * t / ((p + 2 * m) * (p + 2 * m + 1)), np.ones_like(t)
        return m * (q - m) * t / ((p + 2 * m - 1) * (p + 2 * m)), np.ones_like(t)

    scale = np.exp(_gammaln(p + q) - _gammaln(p) - _gammaln(q) + p * np.log(t) + q * np.log1p(-t))
    tail = scale / p / _lentz(np.ones_like(t), terms)
    result = np.where(swapped, 1 - tail, tail)
    return np.where(wrong, np.nan, np.where(x == 0, 0, np.where(x == 1, 1, result)))


def _stdtr(n: Array, t: Array) -> Array:
    tail = _betainc(n / 2, np.full_like(n, 0.5), n / (n + t * t)) / 2
    return np.where(t < 0, tail, 1 - tail)


def no_gradient_rule(g: Array) -> Array:
    """The VJP of an argument whose gradient is not known. Raises NotDifferentiableError."""
    raise NotDifferentiableError(
        locate("this function has a gradient in its last argument alone; stop_gradient the others")
    )


def _gamma_density(a: Array, x: Array) -> Array:
    return exp(subtract(subtract(multiply(subtract(a, 1), log(x)), x), gammaln(a)))


def _beta_density(a: Array, b: Array, x: Array) -> Array:
    constant = subtract(gammaln(add(a, b)), add(gammaln(a), gammaln(b)))
    powers = add(multiply(subtract(a, 1), log(x)), multiply(subtract(b, 1), log1p(negative(x))))
    return exp(add(constant, powers))


def _t_density(n: Array, t: Array) -> Array:
    half = divide(n, 2)
    constant = subtract(subtract(gammaln(add(half, 0.5)), gammaln(half)), multiply(0.5, log(multiply(n, math.pi))))
    return exp(subtract(constant, multiply(add(half, 0.5), log1p(divide(square(t), n)))))


def _floating(*dtypes: np.dtype[np.generic]) -> np.dtype[np.generic]:
    return np.result_type(*dtypes, 0.5)


gammaln: Op = elementwise(
    "gammaln",
    in_doubles(_gammaln),
    lambda g, x: multiply(g, polygamma(0, x)),
    dtype=_floating,
    flops=60,
    doc="log(abs(gamma(x))); infinite at 0 and at negative whole numbers, where the gradient is NaN or infinite.",
    torch=TorchName("floats", "lgamma", in_place=True),
)
polygamma: Op = elementwise(
    "polygamma",
    in_doubles(_polygamma),
    None,
    lambda g, x, y: multiply(g, polygamma(add(x, 1), y)),
    dtype=_floating,
    arity=2,
    flops=300,
    doc="polygamma(n, x): derivative n + 1 of log(gamma(x)), for whole n >= 0. For n > 1 it is NaN below -1000.",
)
gammainc: Op = elementwise(
    "gammainc",
    in_doubles(lambda a, x: _gammas(a, x)[0]),
    no_gradient_rule,
    lambda g, x, y: multiply(g, _gamma_density(x, y)),
    dtype=_floating,
    flops=1000,
    doc="gammainc(a, x): the share of the integral of t ** (a - 1) * exp(-t) up to x. Differentiable in x alone.",
    torch=TorchName("floats", "igamma", in_place=True),
)
gammaincc: Op = elementwise(
    "gammaincc",
    in_doubles(lambda a, x: _gammas(a, x)[1]),
    no_gradient_rule,
    lambda g, x, y: negative(multiply(g, _gamma_density(x, y))),
    dtype=_floating,
    flops=1000,
    doc="1 - gammainc(a, x), accurate also where that is tiny. Differentiable in x alone.",
    torch=TorchName("floats", "igammac", in_place=True),
)
betainc: Op = elementwise(
    "betainc",
    in_doubles(_betainc),
    no_gradient_rule,
    no_gradient_rule,
    lambda g, x, y, z: multiply(g, _beta_density(x, y, z)),
    dtype=_floating,
    flops=1000,
    doc="betainc(a, b, x): the share of the integral of t**(a-1) * (1-t)**(b-1) up to x. Differentiable in x alone.",
)
stdtr: Op = elementwise(
    "stdtr",
    in_doubles(_stdtr),
    no_gradient_rule,
    lambda g, x, y: multiply(g, _t_density(x, y)),
    dtype=_floating,
    flops=1000,
    doc="stdtr(n, t): how likely Student's t with n degrees of freedom is at most t. Differentiable in t alone.",
)
zeta: Op = elementwise(
    "zeta",
    in_doubles(_hurwitz),
    no_gradient_rule,
    lambda g, x, y: negative(multiply(g, multiply(x, zeta(add(x, 1), y)))),
    dtype=_floating,
    flops=300,
    doc="zeta(s, q): the sum of (q + k) ** -s over all k >= 0, for s > 1. Differentiable in q alone.",
)


def digamma(x: Array, /) -> Array:
    """The derivative of log(gamma(x))."""
    return polygamma(0, x)


_FAR = 20.0  # from here on the asymptotic series ends below the spacing of floats
_NEAR_TERMS, _FAR_TERMS = 60, 30


def _near(order: int, x: Array) -> Array:
    """The power series of a Bessel function: all its terms have one sign, so that nothing cancels."""
    quarter = x * x / 4
    total = term = (x / 2) ** order
    for k in range(1, _NEAR_TERMS):
        term = term * quarter / (k * (k + order))
        total = total + term
    return total


def _far(order: int, size: Array) -> Array:
    """The asymptotic series of exp(-x) times a Bessel function."""
    total = term = np.ones_like(size)
    for k in range(1, _FAR_TERMS):
        term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * size)
        total = total + term
    return total / np.sqrt(2 * math.pi * size)


def _bessel(order: int, x: Array, *, scaled: bool) -> Array:
    size = np.abs(x)
    near = size < _FAR
    inner, outer = _near(order, np.where(near, x, 0)), _far(order, np.maximum(size, _FAR))
    outer = outer if order == 0 else np.copysign(outer, x)
    if scaled:
        return np.where(near, inner * np.exp(-size), outer)
    # In two factors, as exp(x) alone overflows a little sooner than the function.
    return np.where(near, inner, outer * np.exp(size / 2) * np.exp(size / 2))


def _slope_of_i1(x: Array, below: Array, value: Array) -> Array:
    """The derivative of i1: i0 - i1 / x, which is 1/2 at 0."""
    none = less(_abs(x), 1e-30)  # where the value may have left the range of float32
    return subtract(below, where(none, 0.5, divide(value, where(none, 1, x))))


def _order(name: str, order: int, *, scaled: bool, rule: object, doc: str, torch: TorchName | None = None) -> Op:
    return elementwise(
        name,
        in_doubles(lambda x: _bessel(order, x, scaled=scaled)),
        rule,  # type: ignore[arg-type]  # a rule in ops, as all are
        dtype=lambda x: np.result_type(x, 0.5),
        flops=300,
        doc=doc,
        torch=torch,
    )


i0: Op = _order(
    "i0",
    0,
    scaled=False,
    rule=lambda g, x: multiply(g, i1(x)),
    doc="The modified Bessel function of the first kind and order 0.",
    torch=TorchName("floats", in_place=True),
)
i1: Op = _order(
    "i1",
    1,
    scaled=False,
    rule=lambda g, x, out: multiply(g, _slope_of_i1(x, i0(x), out)),
    doc="The modified Bessel function of the first kind and order 1.",
)
i0e: Op = _order(
    "i0e",
    0,
    scaled=True,
    rule=lambda g, x, out: multiply(g, subtract(i1e(x), multiply(sign(x), out))),
    doc="exp(-abs(x)) * i0(x).",
)
i1e: Op = _order(
    "i1e",
    1,
    scaled=True,
    rule=lambda g, x, out: multiply(g, subtract(_slope_of_i1(x, i0e(x), out), multiply(sign(x), out))),
    doc="exp(-abs(x)) * i1(x).",
)
