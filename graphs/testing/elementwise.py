"""Samples of ops: by element, with every broadcasting pattern inside the domain of each input; along axes; of layers.

Samples of the ops that show values and stop at them are here, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from graphs.op import Op, RuleTable
from graphs.ops.convolution import convolution
from graphs.ops.pooling import window_max
from graphs.ops.random import random_key
from graphs.ops.windows import Window, counts, window_of
from graphs.testing.sample import Array, Case, Given, Maker, Sizes, Values, calls, join_makers, real

Domain = Callable[[Values, Sizes], Array]

_ONE: dict[str, Sizes] = {"matrix": (2, 3), "0-d": (), "one": (1,), "empty": (0, 3)}
_TWO: dict[str, tuple[Sizes, Sizes]] = {
    "same": ((2, 3), (2, 3)),
    "0-d": ((), ()),
    "scalar-right": ((2, 3), ()),
    "scalar-left": ((), (2, 3)),
    "row": ((2, 3), (3,)),
    "column": ((2, 1), (2, 3)),
    "outer": ((2, 1), (1, 3)),
    "leading": ((3, 1), (2, 1, 4)),
    "size-1": ((1,), (1, 1)),
    "empty": ((0, 3), (3,)),
    "stretched-to-empty": ((0, 1), (1, 3)),
}
_THREE: dict[str, tuple[Sizes, Sizes, Sizes]] = {
    "same": ((2, 3), (2, 3), (2, 3)),
    "scalar-first": ((), (2, 3), (3,)),
    "scalars": ((2, 3), (), ()),
    "outer": ((4, 1, 1), (2, 1), (1, 3)),
    "empty": ((0, 3), (3,), (1, 1)),
}
_SHAPES: dict[int, dict[str, Any]] = {1: {title: (shape,) for title, shape in _ONE.items()}, 2: _TWO, 3: _THREE}


def _above_one(values: Values, shape: Sizes) -> Array:
    return np.asarray(values.positive(shape) + 1)


def _counts(values: Values, shape: Sizes) -> Array:
    return values.ints(shape, 1, 5)


def _orders(values: Values, shape: Sizes) -> Array:
    return values.ints(shape, 2, 6)


def _shares(values: Values, shape: Sizes) -> Array:
    return np.asarray(values.positive(shape) / 2.2)


def _shifts(values: Values, shape: Sizes) -> Array:
    return values.ints(shape, 0, 8)


_DOMAINS: RuleTable[tuple[Domain, ...]] = RuleTable("domains of samples", otherwise=())
_DOMAINS.enter({
    **dict.fromkeys(("entr", "log", "log2", "log10", "sqrt"), (Values.positive,)),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (Values.unit,)),
    "acosh": (_above_one,),
    "betainc": (_counts, _counts, _shares),
    "erfcinv": (_shares,),
    **dict.fromkeys(("gcd", "lcm"), (Values.ints, Values.ints)),
    "gammainc": (_counts, Values.positive),
    "gammaincc": (_counts, Values.positive),
    "polygamma": (_counts, Values.real),
    "stdtr": (_counts, Values.real),
    "log1p": (Values.above_minus_one,),
    **{f"bitwise_{side}_shift": (Values.ints, _shifts) for side in ("left", "right")},
    "pow": (Values.positive, Values.real),
    "zeta": (_orders, Values.positive),
    "where": (Values.bools, Values.real, Values.real),
    **{f"bitwise_{name}": (Values.ints, Values.ints) for name in ("and", "or", "xor")},
    "bitwise_invert": (Values.ints,),
    **{f"logical_{name}": (Values.bools, Values.bools) for name in ("and", "or", "xor")},
    "logical_not": (Values.bools,),
})  # fmt: skip


def elementwise(op: Op, values: Values) -> Iterator[Case]:
    """Each broadcasting pattern of the op's number of inputs, and what is special about some ops."""
    count = op.arity or 1
    domains = _DOMAINS[op] or (Values.real,) * count
    for title, shapes in _SHAPES[count].items():
        yield title, tuple(domain(values, shape) for domain, shape in zip(domains, shapes, strict=True)), {}
    first = domains[0](values, (3, 2)).T
    others = [domain(values, (2, 3)) for domain in domains[1:]]
    yield "not-contiguous", (first, *others), {}
    yield from _MORE[op](op, values)


_MORE: RuleTable[Maker] = RuleTable("further samples of elementwise ops", otherwise=lambda *_: iter(()))


@_MORE.for_op("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def _ties(_: Op, values: Values) -> Iterator[Case]:
    yield "ties", (values.ints((4, 5), 0, 2), values.ints((5,), 0, 2)), {}


@_MORE.for_op("isnan", "isinf", "isfinite")
def _not_finite(_: Op, __: Values) -> Iterator[Case]:
    yield "not-finite", (np.array([np.nan, np.inf, -np.inf, 0.0]),), {}


@_MORE.for_op("pow")
def _negative_base(_: Op, values: Values) -> Iterator[Case]:
    yield "negative-base", (values.real((2, 3)), values.ints((3,), 0, 4)), {}


@_MORE.for_op("clip")
def _limits(_: Op, values: Values) -> Iterator[Case]:
    low, high = np.array([-1.05, 0.05, 1.55]), np.array([[0.55], [1.05]])
    yield "inside-and-out", (values.real((4, 2, 3)), low, high), {}
    yield "from-below", (values.real((2, 3)),), {"min": np.array(-0.55)}
    yield "from-above", (values.real((2, 3)), None, np.array(0.45)), {}


@_MORE.for_op("signbit")
def _signed_zeros(_: Op, __: Values) -> Iterator[Case]:
    yield "signed-zeros", (np.array([0.0, -0.0, np.inf, -np.inf]),), {}


@_MORE.for_op("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert")
def _of_bools(op: Op, values: Values) -> Iterator[Case]:
    yield "bools", tuple(values.bools((2, 3)) for _ in range(op.arity or 1)), {}


_PRINTED: dict[str, Sizes] = {"matrix": (2, 3), "0-d": (), "size-1": (1,), "empty": (0,)}


def _print_samples(**options: Any) -> Maker:
    labels = {title: (title, shape) for title, shape in _PRINTED.items()}
    return calls(labels, lambda v, title, s: ((v.real(s),), {"label": title, "line": "model.py:1", **options}))


EFFECTS = {name: _print_samples() for name in ("print", "observe")}
EFFECTS["require"] = _print_samples(error=None)
EFFECTS["breakpoint"] = _print_samples(when=lambda value: value.size, hook=len)


# Along axes -----------------------------------------------------------------------------------------------------------


Cases = dict[str, tuple[Sizes, dict[str, Any]]]

_AXES: Cases = {
    "all": ((2, 3), {}),
    "all-kept": ((2, 3), {"keepdims": True}),
    "first": ((2, 3), {"axis": 0}),
    "last": ((2, 3), {"axis": -1}),
    "last-kept": ((2, 3), {"axis": -1, "keepdims": True}),
    "size-1": ((2, 1, 3), {"axis": 1}),
    "not-reduced-empty": ((0, 3), {"axis": 1}),
}
_SEVERAL: Cases = {
    "outer-two": ((2, 3, 4), {"axis": (0, -1)}),
    "outer-two-kept": ((2, 3, 4), {"axis": (-1, 0), "keepdims": True}),
    "none": ((2, 3), {"axis": ()}),
    "0-d": ((), {}),
}


def over_axes(op: Op, values: Values, *, of_bools: bool = False, of_nothing: bool = True) -> Iterator[Case]:
    """Reductions over any axes; those `of_nothing` have a value for no elements."""
    make = values.bools if of_bools else values.real
    cases = {**_AXES, **_SEVERAL}
    if of_nothing:
        cases["reduced-empty"] = ((0, 3), {"axis": 0})
    yield from calls(cases, lambda v, shape, options: ((make(shape),), options))(op, values)


def _sum(op: Op, values: Values) -> Iterator[Case]:
    yield from over_axes(op, values)
    yield "in-float64", (values.real((2, 3)),), {"axis": 0, "dtype": np.float64}
    yield "in-int8", (values.ints((2, 3)),), {"dtype": np.int8}


def _prod(op: Op, values: Values) -> Iterator[Case]:
    yield from _sum(op, values)
    yield "one-zero-a-row", (_with_zeros(values, (3, 4), [(0, 1), (2, 3)]),), {"axis": 1}
    yield "two-zeros-a-row", (_with_zeros(values, (2, 4), [(0, 1), (0, 3), (1, 0)]),), {"axis": -1}
    yield "zeros-over-two-axes", (_with_zeros(values, (2, 3, 2), [(0, 1, 1), (1, 0, 0)]),), {"axis": (0, 2)}


def _with_zeros(values: Values, shape: Sizes, places: list[Sizes]) -> Array:
    array = values.real(shape)
    for place in places:
        array[place] = 0
    return array


_SCANS: Cases = {
    "last": ((2, 3), {"axis": -1}),
    "first": ((2, 3), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "size-1": ((2, 1), {"axis": -1}),
    "empty": ((2, 0), {"axis": -1}),
    "vector": ((4,), {}),
    "initial": ((2, 3), {"axis": 0, "include_initial": True}),
    "initial-of-empty": ((0,), {"include_initial": True}),
    "in-float64": ((2, 3), {"axis": 1, "dtype": np.float64}),
}
_RECURRENCES: dict[str, tuple[Sizes, int]] = {
    "vector": ((5,), -1),
    "rows": ((3, 2), 0),
    "middle": ((2, 3, 2), 1),
    "one": ((2, 1), -1),
    "empty": ((0,), 0),
}
_RUNNING: Cases = {
    "vector": ((4,), {}),
    "first": ((3, 2), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "size-1": ((2, 1), {}),
    "empty": ((2, 0), {}),
}


def _scan(op: Op, values: Values) -> Iterator[Case]:
    yield from calls(_SCANS, real)(op, values)
    yield "zeros", (_with_zeros(values, (4, 3), [(1, 0), (1, 1), (3, 1)]),), {"axis": 0}
    yield "in-int8", (values.ints((2, 3)),), {"axis": 1, "dtype": np.int8}


def _ties_along(shape: Sizes, high: int, dtype: type, **options: Any) -> Maker:
    return calls({"ties": ()}, lambda v: ((v.ints(shape, 0, high).astype(dtype),), options))


_ONE_AXIS = join_makers(calls({**_AXES, "0-d": ((), {})}, real), _ties_along((3, 6), 3, int, axis=1))
_EXTREMES = join_makers(calls(_RUNNING, real), _ties_along((3, 5), 2, float))
REDUCTIONS: dict[str, Maker] = {
    "sum": _sum,
    "prod": _prod,
    **dict.fromkeys(("any", "all"), partial(over_axes, of_bools=True)),
    **dict.fromkeys(("max", "min", "mean"), partial(over_axes, of_nothing=False)),
    **dict.fromkeys(("argmax", "argmin"), _ONE_AXIS),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), _scan),
    **dict.fromkeys(("cumulative_argmax", "cumulative_argmin", "logcumsumexp"), _EXTREMES),
    "linear_recurrence": calls(_RECURRENCES, lambda v, s, axis: ((v.real(s), v.real(s)), {"axis": axis})),
}


_SORTS: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "vector": ((7,), {}),
    "first": ((4, 3), {"axis": 0}),
    "last": ((2, 5), {"axis": -1, "stable": False}),
    "descending": ((2, 3, 4), {"axis": 1, "descending": True}),
    "size-1": ((2, 1), {}),
    "empty": ((2, 0), {"descending": True}),
}
_TIES = {"ties": (False,), "ties-descending": (True,)}
_SORT = join_makers(
    calls(_SORTS, real), calls(_TIES, lambda v, descending: ((v.ints((3, 9), 0, 3),), {"descending": descending}))
)


def _searchsorted(op: Op, values: Values) -> Iterator[Case]:
    x = np.sort(values.real((6,)))
    for side in ("left", "right"):
        yield side, (x, values.real((2, 3))), {"side": side}
        yield f"ties-{side}", (np.array([0, 1, 1, 2]), np.array([1, 2, 0, 5])), {"side": side}
    yield "0-d", (x, values.real(())), {}
    yield "nothing-to-search", (x[:0], values.real((2,))), {}
    yield "nothing-to-find", (x, values.real((0, 2))), {}


SORTING: dict[str, Maker] = {"sort": _SORT, "argsort": _SORT, "searchsorted": _searchsorted}


_SOFTMAX_AXES: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "vector": ((4,), {}),
    "last": ((2, 3), {}),
    "first": ((3, 2), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "two": ((2, 3, 4), {"axis": (0, 2)}),
    "all": ((2, 3), {"axis": None}),
    "none": ((2, 3), {"axis": ()}),
    "one-class": ((3, 1), {}),
    "no-row": ((0, 3), {}),
}
_LABELLED: dict[str, tuple[Sizes, int]] = {
    "rows": ((4,), 3),
    "one": ((), 3),
    "two-axes": ((2, 3), 4),
    "one-class": ((3,), 1),
}

_ALONG = join_makers(
    calls(_SOFTMAX_AXES, real), calls({"ties": ((3, 4), 0, 2)}, lambda v, *case: ((v.ints(*case).astype(float),), {}))
)
_GRADIENT = calls(_SOFTMAX_AXES, lambda v, shape, options: ((v.real(shape), v.real(shape)), options))
SOFTMAX: dict[str, Maker] = {
    "softmax": _ALONG,
    "log_softmax": _ALONG,
    "softmax_gradient": _GRADIENT,
    "log_softmax_gradient": _GRADIENT,
    "nll_loss": calls(_LABELLED, lambda v, shape, n: ((v.real((*shape, n)), v.ints(shape, 0, n)), {})),
}


# Windows and layers ---------------------------------------------------------------------------------------------------


# title -> (shape of x, shape of the weight, window, groups)
_CONVOLUTIONS: dict[str, tuple[Sizes, Sizes, Window, int]] = {
    "1d": ((2, 3, 5), (4, 3, 2), window_of((2,), 1, 0, 1), 1),
    "2d": ((2, 2, 4, 5), (3, 2, 3, 2), window_of((3, 2), 1, 1, 1), 1),
    "3d": ((1, 1, 2, 3, 2), (2, 1, 2, 2, 1), window_of((2, 2, 1), 1, 0, 1), 1),
    "stride": ((1, 2, 7, 4), (2, 2, 2, 3), window_of((2, 3), (3, 2), (1, 0), 1), 1),
    "uneven-padding": ((1, 1, 5), (1, 1, 3), window_of((3,), 2, ((2, 1),), 1), 1),
    "dilation": ((1, 2, 6, 5), (2, 2, 2, 2), window_of((2, 2), 1, "same", (3, 2)), 1),
    "groups": ((2, 4, 4), (6, 2, 3), window_of((3,), 1, 1, 1), 2),
    "depthwise": ((1, 3, 4, 3), (3, 1, 2, 2), window_of((2, 2), 2, (0, 1), 1), 3),
    "one-by-one": ((2, 3, 2, 2), (2, 3, 1, 1), window_of((1, 1), 1, 0, 1), 1),
    "past-the-edge": ((1, 1, 2), (1, 1, 4), window_of((4,), 1, 3, 2), 1),
    "no-example": ((0, 2, 3), (1, 2, 2), window_of((2,), 1, 0, 1), 1),
    "no-channel": ((2, 0, 3), (1, 0, 2), window_of((2,), 1, 0, 1), 1),
}

# title -> (shape of x, window)
_POOLINGS: dict[str, tuple[Sizes, Window]] = {
    "vector": ((6,), window_of((2,), 2, 0, 1)),
    "1d": ((2, 3, 5), window_of((3,), 2, 1, 1)),
    "2d": ((2, 1, 4, 5), window_of((2, 3), (2, 1), (1, 1), 1)),
    "overlapping": ((1, 2, 4, 4), window_of((3, 3), 1, 1, 1)),
    "gaps": ((1, 1, 8), window_of((2,), 3, 0, 1)),
    "dilation": ((1, 1, 7), window_of((3,), 1, 1, 2)),
    "everything": ((2, 3), window_of((3,), 1, 0, 1)),
    "no-example": ((0, 2, 4), window_of((2,), 2, 0, 1)),
}


def _convolution(v: Values, x: Sizes, weight: Sizes, window: Window, groups: int) -> Given:
    return (v.real(x), v.real(weight)), {"window": window, "groups": groups}


def _convolution_weight(v: Values, x: Sizes, weight: Sizes, window: Window, groups: int) -> Given:
    g = (x[0], weight[0], *map(int, counts(x[2:], window)))
    return (v.real(x), v.real(g)), {"window": window, "groups": groups}


def _convolution_input(v: Values, x: Sizes, weight: Sizes, window: Window, groups: int) -> Given:
    g = convolution(np.zeros(x), np.zeros(weight), window, groups).shape
    return (v.real(g), v.real(weight)), {"sizes": x[2:], "window": window, "groups": groups}


def _windows(operands_of: Callable[[Values, Array, Window], tuple[Array, ...]]) -> Maker:
    return calls(_POOLINGS, lambda v, x, window: (operands_of(v, v.real(x), window), {"window": window}))


def _windows_back(operands_of: Callable[[Values, Array, Window], tuple[Array, ...]]) -> Maker:
    """The same with cotangents of windows, carried back to elements of these sizes."""

    def call(v: Values, shape: Sizes, window: Window) -> Given:
        return operands_of(v, v.real(shape), window), {"sizes": shape[len(shape) - len(window) :], "window": window}

    return calls(_POOLINGS, call)


def _tied_windows(v: Values) -> Given:
    x, window = v.ints((2, 9), 0, 2).astype(float), window_of((3,), 1, 1, 1)
    return (x, window_max(x, window=window)), {"window": window}


def _taps(v: Values, x: Array, window: Window) -> Any:
    """Any tap for each window, also one that lies in the padding."""
    shape = window_max(x, window=window).shape
    return v.ints(shape, 0, math.prod(part[0] for part in window)).astype(np.uint8)


_DRAWN_SHAPES: dict[str, Sizes] = {"0-d": (), "odd": (3, 5), "one": (1,), "empty": (0, 3)}
_DRAWN = {
    f"{title}-{d}": (shape, d) for title, shape in _DRAWN_SHAPES.items() for d in ("float64", "float32", "float16")
}
_KEY = random_key(7)

NEURAL: dict[str, Maker] = {
    "convolution": calls(_CONVOLUTIONS, _convolution),
    "convolution_input": calls(_CONVOLUTIONS, _convolution_input),
    "convolution_weight": calls(_CONVOLUTIONS, _convolution_weight),
    **dict.fromkeys(("window_sum", "window_max"), _windows(lambda v, x, window: (x,))),
    "window_argmax": join_makers(
        _windows(lambda v, x, window: (x, window_max(x, window=window))), calls({"ties": ()}, _tied_windows)
    ),
    "window_pick": _windows(lambda v, x, window: (x, _taps(v, x, window))),
    "window_spread": _windows_back(lambda v, x, window: (window_max(x, window=window),)),
    "window_place": _windows_back(lambda v, x, window: (window_max(x, window=window), _taps(v, x, window))),
    **dict.fromkeys(
        ("uniform", "normal"), calls(_DRAWN, lambda v, shape, dtype: ((_KEY,), {"shape": shape, "dtype": dtype}))
    ),
    "split_key": calls({str(n): (n,) for n in (0, 1, 2, 5)}, lambda v, n: ((_KEY,), {"n": n})),
    "fold_in": calls(
        {"small": (np.array(3),), "negative": (np.array(-1, np.int32),)}, lambda v, number: ((_KEY, number), {})
    ),
}
