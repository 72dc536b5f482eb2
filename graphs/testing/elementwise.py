"""Samples of elementwise ops: every broadcasting pattern, inside the domain of each input.

Samples of the ops that show values and stop at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphs.op import Op
from graphs.rules import RuleTable
from graphs.testing.sample import Array, Case, Maker, Sizes, Values, calls

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


def _seen(**options: Any) -> Maker:
    labels = {title: (title, shape) for title, shape in _PRINTED.items()}
    return calls(labels, lambda v, title, s: ((v.real(s),), {"label": title, "line": "model.py:1", **options}))


EFFECTS = {name: _seen() for name in ("print", "observe")}
EFFECTS["require"] = _seen(error=None)
EFFECTS["breakpoint"] = _seen(when=lambda value: value.size, hook=len)
