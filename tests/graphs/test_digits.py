"""Every elementwise function and its gradients at hard arguments: all digits of the dtype, but where a reason is given.

The exact values are by mpmath. The arguments are tiny, large, near the ends of a domain, and where a kernel changes its
formula. An argument of which the last digit is another gives another result: so many units a result may be off, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

import dynamic
import dynamic.nn.functional as F  # noqa: N812
import graphs as g
import static
from graphs import special
from graphs.op import registered_ops
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KINDS = (np.float32, np.float64)
UNITS = 32  # in the last place

SIZES = (1e-38, 1e-20, 1e-10, 1e-5, 0.01, 0.3, 0.5, 0.9, 1.5, 3.0, 5.0, 7.0, 9.0, 13.0, 17.0, 25.0, 40.0, 60.0, 85.0)
FAR = (150.0, 400.0, 700.0, 1e4, 1e10, 1e20, 1e38)
NEAR_1 = tuple(1 - 2.0**-k for k in (3, 9, 16, 23))


def both(*sizes: float) -> tuple[float, ...]:
    """The sizes and their negatives."""
    return (*sizes, *(-size for size in sizes))


ABOVE = SIZES + FAR
ANY = both(*ABOVE)
MODERATE = both(*SIZES)
UNIT = both(*(size for size in SIZES if size < 1), *NEAR_1)
INSIDE = tuple(x for x in UNIT if x > 0)
FEW = (1e-30, 1e-8, 0.3, 1.0, 2.5, 7.0, 40.0, 1e4, 1e15)
PAIRS = [(x, y) for x in both(*FEW) for y in both(*FEW)]
POSITIVE_PAIRS = [(x, y) for x in FEW for y in FEW]


class Exact(NamedTuple):
    """A function of ours, the same by mpmath, where to try both, and the inputs with a gradient: all by default."""

    ours: Callable[..., Any]
    exact: Callable[..., Any]
    places: Sequence[Any]
    inputs: tuple[int, ...] | None = None


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def softplus(x):
    return mp.log1p(mp.exp(x)) if x < 1000 else x


def expm1_below(x):
    return x if x > 0 else mp.expm1(x)


def log_of_sum(x, y):
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


def constant(number: float) -> Callable[[Any], Any]:
    return lambda x: g.full_like(x, number)


OPS = {
    "abs": (abs, ANY),
    "acos": (mp.acos, UNIT),
    "acosh": (mp.acosh, (*(1 + 2.0**-k for k in (3, 9, 16, 23)), *(x for x in ABOVE if x > 1))),
    "asin": (mp.asin, UNIT),
    "asinh": (mp.asinh, ANY),
    "atan": (mp.atan, ANY),
    "atan2": (mp.atan2, PAIRS),
    "atanh": (mp.atanh, UNIT),
    "clip": (lambda x, low, high: min(max(x, low), high), [(x, -2.0, 2.0) for x in ANY]),
    "copysign": (lambda x, y: abs(x) * mp.sign(y), PAIRS),
    "cos": (mp.cos, MODERATE),
    "cosh": (mp.cosh, MODERATE),
    "divide": (lambda x, y: x / y, PAIRS),
    "entr": (lambda x: -x * mp.log(x), ABOVE),
    "erf": (mp.erf, both(*(x for x in SIZES if x < 30))),
    "erfc": (mp.erfc, both(*(x for x in SIZES if x < 9))),
    "erfcinv": (lambda x: mp.erfinv(1 - x), INSIDE),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), both(*(x for x in SIZES if x < 9))),
    "erfinv": (mp.erfinv, UNIT),
    "exp": (mp.exp, MODERATE),
    "expm1": (mp.expm1, MODERATE),
    "fmax": (max, [(x, y) for x, y in PAIRS if x != y]),
    "fmin": (min, [(x, y) for x, y in PAIRS if x != y]),
    "hypot": (mp.hypot, PAIRS),
    "i0": (lambda x: mp.besseli(0, x), MODERATE),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), MODERATE),
    "i1": (lambda x: mp.besseli(1, x), MODERATE),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), MODERATE),
    "gammaln": (lambda x: mp.re(mp.loggamma(x)), [x for x in ABOVE if x < 1e30] + [-0.3, -2.6, -10.3]),
    "log": (mp.log, ABOVE),
    "log10": (mp.log10, ABOVE),
    "log1p": (mp.log1p, ABOVE + tuple(x for x in UNIT if x < 0)),
    "log2": (lambda x: mp.log(x, 2), ABOVE),
    "logaddexp": (log_of_sum, [(x, y) for x, y in PAIRS if abs(x) < 1e6 > abs(y)]),
    "maximum": (max, PAIRS),
    "minimum": (min, PAIRS),
    "multiply": (lambda x, y: x * y, PAIRS),
    "polygamma": (lambda n, x: mp.polygamma(int(n), x), [(1.0, x) for x in SIZES if x > 1e-9], (1,)),
    "pow": (lambda x, y: mp.mpf(x) ** y, [(x, y) for x, y in POSITIVE_PAIRS if x > 1e-4 and y < 1e4]),
    "reciprocal": (lambda x: 1 / x, ANY),
    "relu": (lambda x: max(x, 0), ANY),
    "remainder": (lambda x, y: x - y * mp.floor(x / y), [(7.3, 2.5), (-7.3, 2.5), (1e4, -0.3), (1e-8, 3.0)]),
    "sigmoid": (sigmoid, MODERATE),
    "sin": (mp.sin, MODERATE),
    "sinh": (mp.sinh, MODERATE),
    "sqrt": (mp.sqrt, ABOVE),
    "square": (lambda x: x * x, ANY),
    "tan": (mp.tan, MODERATE),
    "tanh": (mp.tanh, MODERATE),
    "zeta": (mp.zeta, [(2.5, q) for q in (0.01, 0.3, 1.0, 7.0, 40.0)], (1,)),
}  # fmt: skip
ELSEWHERE = {  # with oracles of their own in tests/graphs/test_special.py
    "betainc", "gammainc", "gammaincc", "stdtr", "where",
}  # fmt: skip

CASES = {name: Exact(registered_ops()[name], *case) for name, case in OPS.items()}
CASES |= {
    "bce at 0": Exact(lambda x: g.binary_cross_entropy(x, 0.0 * x, reduction="none"), lambda x: -mp.log1p(-x), INSIDE),
    "bce at 1": Exact(
        lambda x: g.binary_cross_entropy(x, constant(1)(x), reduction="none"), lambda x: -mp.log(x), INSIDE[1:]
    ),
    "bce of logits at 0": Exact(
        lambda x: g.binary_cross_entropy_with_logits(x, constant(0)(x), reduction="none"), softplus, MODERATE
    ),
    "bce of logits at 1": Exact(
        lambda x: g.binary_cross_entropy_with_logits(x, constant(1)(x), reduction="none"),
        lambda x: softplus(-x),
        MODERATE,
    ),
    "celu": Exact(lambda x: F.celu(x, 2.0), lambda x: 2 * expm1_below(x / 2), ANY),
    "elu": Exact(g.elu, expm1_below, ANY),
    "gelu": Exact(g.gelu, lambda x: x * ndtr(x), MODERATE),
    "gelu by tanh": Exact(
        lambda x: g.gelu(x, True),
        lambda x: x * sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3)),
        [x for x in MODERATE if x > -20],
    ),
    "hardsigmoid": Exact(F.hardsigmoid, lambda x: min(max(x + 3, 0), 6) / mp.mpf(6), [x for x in ANY if abs(x) != 3]),
    "hardswish": Exact(F.hardswish, lambda x: x * min(max(x + 3, 0), 6) / 6, [x for x in MODERATE if abs(x) != 3]),
    "leaky_relu": Exact(lambda x: g.leaky_relu(x, 0.25), lambda x: max(x, x / 4), ANY),
    "log_ndtr": Exact(special.log_ndtr, lambda x: mp.log(ndtr(x)), MODERATE),
    "log_softmax": Exact(
        lambda x: g.log_softmax(g.stack([x, 0.0 * x]), axis=0)[0], lambda x: -softplus(-x), MODERATE
    ),
    "logit": Exact(special.logit, lambda x: mp.log(x) - mp.log1p(-x), [x for x in INSIDE if x != 0.5]),
    "logsigmoid": Exact(F.logsigmoid, lambda x: -softplus(-x), MODERATE),
    "mish": Exact(F.mish, lambda x: x * mp.tanh(softplus(x)), MODERATE),
    "ndtr": Exact(special.ndtr, ndtr, [x for x in MODERATE if abs(x) < 10]),
    "ndtri": Exact(special.ndtri, lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), [x for x in INSIDE if x != 0.5]),
    "selu": Exact(
        F.selu,
        lambda x: mp.mpf(1.0507009873554805) * (x if x > 0 else mp.mpf(1.6732632423543772) * mp.expm1(x)),
        ANY,
    ),
    "silu": Exact(g.silu, lambda x: x * sigmoid(x), MODERATE),
    "sinc": Exact(g.sinc, lambda x: mp.sin(mp.pi * x) / (mp.pi * x), [x for x in MODERATE if x % 1]),
    "softmax": Exact(lambda x: g.softmax(g.stack([x, 0.0 * x]), axis=0)[0], sigmoid, MODERATE),
    "softplus": Exact(g.softplus, softplus, ANY),
    "softsign": Exact(F.softsign, lambda x: x / (1 + abs(x)), ANY),
    "std": Exact(lambda x: dynamic.std(g.stack([x, -1.0 * x]), 0), lambda x: abs(x) * mp.sqrt(2), ANY),
    "tanhshrink": Exact(F.tanhshrink, lambda x: x - mp.tanh(x), ANY),
    "xlog1py": Exact(lambda x: special.xlog1py(x, x), lambda x: x * mp.log1p(x), [x for x in ABOVE if x > 1e-15]),
    "xlogy": Exact(lambda x: special.xlogy(x, x), lambda x: x * mp.log(x), ABOVE),
}  # fmt: skip


class Loss(NamedTuple):
    """Why a result has not all of its digits, and the size of what cancels, whose digits it has."""

    why: str
    scale: Callable[..., float] = lambda *_: 1.0


RESULT_ALONE = "the rule reads the result alone, as PyTorch's does: it has no digits of its distance from 1"
AS_THERE = "PyTorch's formula, which costs a fraction of one that keeps the digits of what is all but 0"
VALUES = {
    "gelu": Loss(AS_THERE, abs),
    "gelu by tanh": Loss(AS_THERE, abs),
    "log_softmax": Loss("the number less the logarithm of the sum, which are all but equal", lambda x: max(1, abs(x))),
    "tanhshrink": Loss(AS_THERE, abs),
}
SLOPES = {
    "erfcinv": Loss(
        "exp of the square of the result, of which the last digit is worth as much as it is large", lambda x: 1 / x
    ),
    "erfcx": Loss("2 * x * erfcx(x) less its limit", lambda x: max(1, abs(x) * math.exp(min(x, 0) ** 2))),
    "gelu": Loss(AS_THERE),
    "gelu by tanh": Loss(AS_THERE, lambda x: max(1, abs(x))),
    "i0e": Loss("i1e less i0e, which are all but equal"),
    "i1e": Loss("as of i0e"),
    "log_softmax": Loss(RESULT_ALONE),
    "sigmoid": Loss(RESULT_ALONE),
    "softmax": Loss(RESULT_ALONE),
    "softsign": Loss("the quotient's two parts, as there", lambda x: 1 / (1 + abs(x))),
    "tanh": Loss(RESULT_ALONE),
    "tanhshrink": Loss(RESULT_ALONE),
    "mish": Loss(RESULT_ALONE),
    "silu": Loss(RESULT_ALONE),
}


def _digits(x: Sequence[float]) -> int:
    """So many digits that what is all but equal differs in its first twenty."""
    if len(x) > 1:
        return 300
    size = abs(x[0])
    return 200 + int(0.5 * size**2 if size <= 30 else 1.2 * size if size <= 800 else 0)


class Truth(NamedTuple):
    """An exact number, and how many units of it one unit of an argument is worth."""

    number: Any
    condition: float


def _exact(case: Exact, place: Sequence[float]) -> list[Truth]:
    """The value, and the slope in each argument."""
    with mp.workdps(_digits(place)):
        x = [mp.mpf(number) for number in place]
        value, slopes, worth = mp.mpf(case.exact(*x)), [], mp.mpf(0)
        for i in range(len(x)):
            step = abs(x[i]) * mp.mpf(10) ** -20
            after, before = (case.exact(*x[:i], x[i] + sign * step, *x[i + 1 :]) for sign in (1, -1))
            slope, bend = (after - before) / (2 * step), (after - 2 * value + before) / step**2
            slopes.append(Truth(slope, _condition(x[i], bend, slope)))
            worth += _condition(x[i], slope, value)
        return [Truth(value, worth), *slopes]


def _condition(x: Any, slope: Any, value: Any) -> float:
    return float(abs(x * slope / value)) if value else 0.0


def _places(case: Exact, kind: Any) -> list[tuple[float, ...]]:
    rows = [place if isinstance(place, tuple) else (place,) for place in case.places]
    return [tuple(float(kind(number)) for number in row) for row in rows]


def _results(case: Exact, arrays: Sequence[Any], wanted: Sequence[int], backend: str) -> list[Any]:
    def total(*xs):
        return g.sum(case.ours(*xs))

    if backend == "dynamic":
        value = case.ours(*map(dynamic.tensor, arrays)).numpy()
        return [value, *dynamic.grad(total, tuple(wanted))(*arrays)]
    slopes = static.grad(total, tuple(wanted))
    return static.jit(lambda *xs: [case.ours(*xs), *slopes(*xs)], backend=backend)(*arrays)


def _lost(found: float, exact: Any, scale: float, kind: Any) -> float:
    """The units in the last place by which a number is off, of itself or of what its parts are."""
    limits = np.finfo(kind)
    if not mp.isfinite(exact) or abs(exact) > float(limits.max) or max(abs(exact), abs(found)) < float(limits.tiny):
        return 0.0
    if not math.isfinite(found):
        return math.inf
    size = max(abs(exact), scale)
    return float(abs(mp.mpf(found) - exact) / size / mp.mpf(float(limits.eps)))


@together("name", CASES, quick=20)
def test_digits(name):
    case = CASES[name]
    for kind in KINDS:
        places = _places(case, kind)
        exact = [_exact(case, place) for place in places]
        wanted = range(len(places[0])) if case.inputs is None else case.inputs
        arrays = [np.array(column, kind) for column in zip(*places, strict=True)]
        for backend in ("dynamic", *BACKENDS):
            parts = [-1, *wanted]
            for part, found in zip(parts, _results(case, arrays, wanted, backend), strict=True):
                loss = (VALUES if part < 0 else SLOPES).get(name)
                assert found.dtype == kind
                for place, number, truths in zip(places, found.tolist(), exact, strict=True):
                    truth = truths[part + 1]
                    lost = _lost(number, truth.number, loss.scale(*place) if loss else 0.0, kind)
                    told = f"{backend}, {kind.__name__}, slope {part} at {place}: {number}, not {mp.nstr(truth.number)}"
                    assert lost <= UNITS + truth.condition, f"{told}: {lost:.3g} units"


def test_every_op_whose_slope_reads_values_is_here():
    ops = {name for name, op in registered_ops().items() if op.family == "elementwise" and op.widens}
    assert not ops - OPS.keys() - ELSEWHERE
