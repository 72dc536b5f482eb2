"""The judgement of a mode's results, against the plain mode's results and, where they exist, wider ones.

An array is right where it is no further from the wider numbers than FACTOR times the plain mode is. That factor is for
errors that are samples of one thing: those of another order of the same sums. Below the tolerance of its dtype, as a
part of its own size, it is right in any case. Without wider numbers the tolerance alone says how far it may be from the
plain mode's array. Where the plain mode gives NaN or infinity and wider numbers do not, any value is right.

An array that the plain mode computes with an error above the tolerance is ill-conditioned. Wider numbers decide there
too, of the array as a whole: in its norm a mode may be FACTOR times as far off as the plain mode is, in an element
MULTIPLE times, and by a factor on all of it FACTOR times the plain mode's own such factor.

Only an array that is off by more, or has no wider numbers, is examined further. A mode may then be as far off as
rounding alone puts the plain mode, which is measured (`compare.instruments.rounding`), in directions in which rounding
moves it. Integers must be those of the plain mode, in its own, in wider, or in nudged numbers.

A mode that is off from these numbers but right from most nearby ones is right: there the function jumps, as a ReLU does
whose input is 0 but for rounding, and each mode stands on its own side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.instruments.rounding import (
    Difference,
    Distance,
    Moves,
    apart,
    distance,
    error_of,
    is_exact,
    largest,
    scales_of,
    wide,
    worst,
)

TOLERANCES: Mapping[str, float] = {"bfloat16": 4e-2, "float16": 5e-3, "float32": 1e-4, "float64": 1e-9}
"""The tolerance of each dtype as a part of an array's size; the lowest dtype of a step counts."""
UNITS: Mapping[str, float] = {"bfloat16": 2**-7, "float16": 2**-10}
"""The unit in the last place of 1, for dtypes whose rounding is a large part of a result."""
FACTOR = 3.0
"""The factor by which a mode may be further from wider numbers than the plain mode; PyTorch's own tests use it."""
MULTIPLE = 10.0
"""The factor on the moves of nudges, where only they tell of rounding; PyTorch allows it for small arrays. For dtypes
of UNITS a nudge is as large as rounding, and the factor is 1.
"""
NUDGES, MOST = 8, 64
"""The number of nudges, and the number before a mode is refused that is no further off than nudges move: it may have
put so many ReLUs on their other sides that eight nudges do not tell them apart.
"""
NEARBY, AWAY = 4, 8
"""The number of nearby inputs on which a mode that is off is tried, half of which must show it right, and their
distance in nudges: a ReLU that turns by rounding here seldom turns there.
"""
DIGIT = 0.1
"""The error of the plain mode, as a part of an array's size, from which on the array has no correct digit."""
SEEN = 0.02
"""The factor on a whole array that must be noticed where wider numbers alone decide."""
ANOTHER = "has another structure"
_PARTS = ("the output", "the gradient", "the state")

Result = tuple[Any, ...]
"""The value of a call, its gradients, and, where there is any, the state after it: a dict by the names of messages."""


def lowest(dtypes: Iterable[Any], default: str = "float32") -> str:
    """Return the least precise of some dtypes, as a key of TOLERANCES; complex dtypes count as their parts."""
    parts = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
    names = {parts.get(name, name) for name in (getattr(dtype, "name", str(dtype)) for dtype in dtypes)}
    return max(names & TOLERANCES.keys(), key=TOLERANCES.__getitem__, default=default)


def unit_of(dtype: str) -> float:
    """Return the unit in the last place of 1."""
    return UNITS.get(dtype) or float(np.finfo(dtype).eps)


class ResultLeaf(NamedTuple):
    """One array of a result, with the number of its part (value, gradients, state) and its path there."""

    part: int
    path: tuple[Any, ...]
    array: Any

    @property
    def name(self) -> str:
        """Return the array's name in every call: ``the gradient of `fc.weight` ``."""
        if self.part == 2:
            return str(self.path[0]) if self.path else _PARTS[2]
        place = "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in self.path).removeprefix(".")
        return f"{_PARTS[self.part]}{f' of `{place}`' if place else ''}"

    def named(self, call: int) -> str:
        """Return the array's name for messages: ``the gradient of `fc.weight` in call 2``."""
        return f"{self.name} {'after' if self.part == 2 else 'in'} call {call + 1}"

    @property
    def kind(self) -> tuple[int, str]:
        """Return the key of arrays that share a scale: their part, and in the state the sum's name."""
        return self.part, self.path[0].rpartition(" `")[0] if self.part == 2 else ""


def leaves_of(result: Result) -> list[ResultLeaf]:
    """Return the arrays of a result."""
    return [
        ResultLeaf(part, path, leaf)
        for part, tree in enumerate(result)
        for path, leaf in zip(optree.tree_paths(tree), optree.tree_leaves(tree), strict=True)
    ]


@dataclass(frozen=True)
class Standard:
    """The expected result of a call: `plain` of the plain mode, and `exact` in wider numbers where it exists.

    `dtype` is the lowest in which the call computes. A plain mode that is `judged` itself is not trusted: its error
    says nothing about rounding, and modes are compared with both results. If `blind`, only shapes count, and NaN in
    the place of numbers. If the two are `apart` by more than rounding, `exact` may be of another function: a mode must
    meet one.
    """

    plain: Result
    exact: Result | None = None
    dtype: str = "float32"
    judged: bool = False
    blind: bool = False
    apart: bool = False

    @property
    def tolerance(self) -> float:
        """Return the tolerance of the call's dtype."""
        return TOLERANCES[self.dtype]

    @cached_property
    def leaves(self) -> list[ResultLeaf]:
        """Return the arrays of the plain mode."""
        return leaves_of(self.plain)

    @cached_property
    def own(self) -> list[float]:
        """Return the error of each array of the plain mode against wider numbers; empty if there are none to trust."""
        return [] if self.apart else self._distances

    @cached_property
    def _distances(self) -> list[float]:
        plain = self._arrays(self.leaves)
        return self._errors(plain, self._other, self._scales) if self._other else []

    @cached_property
    def shares(self) -> list[float]:
        """Return the size of each array as a part of its scale; 1 for an array that is zero but for rounding.

        In such an array the plain mode has no correct digit. For results in float64 nothing tells, so they have 1 too.
        """
        alone = self._other is None and self.dtype != "float64"
        zero, shares = self.zero(), []
        for k, (leaf, size) in enumerate(zip(self.leaves, self.sizes, strict=True)):
            unknown = alone and np.asarray(leaf.array).dtype in (np.float64, np.complex128)
            shares.append(1.0 if not size or unknown or k in zero else size)
        return shares

    def zero(self, moved: Sequence[float] = ()) -> set[int]:
        """Return the indices of arrays that are zero but for rounding, with no correct digit.

        `moved` is how far nudges move each array.
        """
        off = worst([self._distances, moved])
        return {k for k, (by, size) in enumerate(zip(off, self.sizes, strict=False)) if by > DIGIT * size}

    @cached_property
    def sizes(self) -> list[float]:
        """Return the size of each array as a part of its scale; 0 for arrays without floats."""
        each = zip(self.leaves, self._right, self._scales, strict=True)
        return [largest(right) / scale if scale and not is_exact(leaf.array) else 0.0 for leaf, right, scale in each]

    @cached_property
    def limits(self) -> list[float]:
        """Return the error of each array up to which a mode is right without further examination."""
        most = self.tolerance
        if not self.own or self.judged:
            return [most * share for share in self.shares]
        least = min(most, max(TOLERANCES["float32"], UNITS.get(self.dtype, 0.0)))
        return [max(least * share, min(FACTOR * own, most)) for own, share in zip(self.own, self.shares, strict=True)]

    @cached_property
    def far(self) -> dict[int, Distance]:
        """Return the distance of the plain mode from wider numbers, for each ill-conditioned array as a whole."""
        if not self.own or self.judged or self.wider is None:
            return {}
        ill = [k for k, (own, limit) in enumerate(zip(self.own, self.limits, strict=True)) if FACTOR * own > limit]
        floats = [k for k in ill if not is_exact(self.leaves[k].array) and math.isfinite(self.own[k])]
        return {k: distance(self.leaves[k].array, self.wider[k].array) for k in floats}

    @cached_property
    def factor(self) -> float:
        """Return the largest factor on a whole ill-conditioned array that would go unnoticed."""
        return FACTOR * max((far.factor for far in self.far.values() if far.norm <= DIGIT), default=0.0)

    def as_near(self, errors: Sequence[float], actual: Sequence[Any]) -> dict[int, float]:
        """Return the ill-conditioned arrays as near to wider numbers as the plain mode's, with their allowed errors.

        None are where that would let a factor of SEEN pass: then the directions in which rounding moves tell more.
        """
        if self.factor > SEEN:
            return {}
        most = FACTOR * max((self.own[k] for k in self.far), default=0.0)
        near = {}
        for k, far in self.far.items():
            allowed = min(MULTIPLE * self.own[k], most)
            if not self.limits[k] < errors[k] <= allowed or self.wider is None or far.norm > DIGIT:
                continue
            off = distance(actual[k], self.wider[k].array)
            if off.norm <= FACTOR * far.norm and off.factor <= max(self.factor, self.tolerance):
                near[k] = allowed
        return near

    @property
    def is_ill(self) -> bool:
        """Return whether the plain mode itself is further from wider numbers than the tolerance."""
        return any(own > self.tolerance for own in self.own)

    @cached_property
    def lost(self) -> list[tuple[ResultLeaf, int]]:
        """Return the arrays in which the plain mode gives NaN or infinity, with the number of such elements."""
        floats = [leaf for leaf in self.leaves if not is_exact(leaf.array)]
        counts = [(leaf, int(np.sum(~np.isfinite(wide(leaf.array))))) for leaf in floats]
        return [(leaf, count) for leaf, count in counts if count]

    def less(self, result: Result) -> list[Difference]:
        """Return a result minus the expected one; minus both where the plain mode is judged itself."""
        if self.apart and self._other:
            return [_nearer(*(self._less(result, exact, always=True) for exact in (self._other, None)))]
        from_plain = [self._less(result, None)] if self.exact and self.judged else []
        return [self._less(result, self.wider), *from_plain]

    def less_plain(self, result: Result) -> Difference:
        """Return a result minus the plain mode's, with its arrays."""
        return self._less(result, None, always=True)

    def less_exact(self, result: Result, exact: Result) -> Difference:
        """Return a result minus another one in wider numbers, with its arrays, by the scales of this call."""
        return self._less(result, leaves_of(exact), always=True)

    @property
    def best(self) -> Result:
        """Return the most trustworthy result: in wider numbers where they are trusted, else the plain one."""
        return self.plain if self.apart or self.exact is None else self.exact

    @property
    def wider(self) -> list[ResultLeaf] | None:
        """Return the arrays in wider numbers where they are trusted; else None."""
        return None if self.apart else self._other

    @cached_property
    def _other(self) -> list[ResultLeaf] | None:
        if self.exact is None:
            return None
        wider = leaves_of(self.exact)
        return wider if _shape(self.exact) == _shape(self.plain) else None

    @cached_property
    def _scales(self) -> list[float]:
        """Return the divisor of each array's differences: its size, or a part of the largest array of its kind."""
        kinds: dict[tuple[int, str], list[Any]] = {}
        for leaf, array in zip(self.leaves, self._right, strict=True):
            kinds.setdefault(leaf.kind, []).append(array)
        scales = {kind: iter(scales_of(arrays)) for kind, arrays in kinds.items()}
        return [next(scales[leaf.kind]) for leaf in self.leaves]

    @cached_property
    def _right(self) -> list[Any]:
        """Return the expected arrays; NaN where the plain mode overflows, so that it does not count in a size."""
        plain = self._arrays(self.leaves)
        exact = self._arrays(self.wider) if self.wider else [None] * len(plain)
        return [
            array if wider is None or is_exact(array) else np.where(np.isfinite(wide(array)), wide(wider), np.nan)
            for array, wider in zip(plain, exact, strict=True)
        ]

    @staticmethod
    def _arrays(leaves: Sequence[ResultLeaf]) -> list[Any]:
        return [leaf.array for leaf in leaves]

    def _errors(self, actual: Sequence[Any], exact: Sequence[ResultLeaf], scales: Sequence[float]) -> list[float]:
        plain = self._arrays(self.leaves)
        expected = [_expected_array(*each) for each in zip(actual, plain, self._arrays(exact), strict=True)]
        return [error_of(*each) for each in zip(actual, expected, scales, strict=True)]

    def _less(self, result: Result, exact: list[ResultLeaf] | None, *, always: bool = False) -> Difference:
        """Return the difference leaf by leaf; with arrays where a leaf is over its limit, or `always`."""
        if self.blind:
            return self._visible_difference(result)
        leaves, plain = leaves_of(result), self._arrays(self.leaves)
        if _shape(result) != _shape(self.plain) or (exact is not None and len(exact) != len(plain)):
            return self._other_structure(result)
        actual = self._arrays(leaves)
        wider = self._arrays(exact) if exact is not None else [None] * len(plain)
        expected = [_expected_array(*each) for each in zip(actual, plain, wider, strict=True)]
        errors = [error_of(*each) for each in zip(actual, expected, self._scales, strict=True)]
        if not always and all(error <= limit for error, limit in zip(errors, self.limits, strict=True)):
            return Difference(errors)
        near = self.as_near(errors, actual) if exact is not None and exact is self.wider else {}
        arrays = [apart(*each) for each in zip(actual, expected, self._scales, strict=True)]
        faults = {k: _words(actual[k], plain[k]) for k, error in enumerate(errors) if not math.isfinite(error)}
        whole = {k: np.asarray(array) for k, array in enumerate(actual) if is_exact(array) and (always or k in faults)}
        return Difference(errors, arrays, faults, whole, near)

    def _other_structure(self, result: Result) -> Difference:
        """Return infinite errors in the parts with another structure, or everywhere if no part shows it."""
        parts = {k for k, pair in enumerate(zip_longest(_shape(result), _shape(self.plain))) if pair[0] != pair[1]}
        wrong = [k for k, leaf in enumerate(self.leaves) if leaf.part in parts] or range(len(self.leaves))
        errors = [math.inf if k in wrong else 0.0 for k in range(max(len(self.leaves), 1))]
        errors = errors if self.leaves else [math.inf]
        return Difference(errors, [np.empty(0, np.float32)] * len(self.leaves), dict.fromkeys(wrong, ANOTHER))

    def _visible_difference(self, result: Result) -> Difference:
        """Return the visible faults of an incomparable result: structure, shapes, and NaN or infinity for numbers."""
        leaves = leaves_of(result)
        if _shape(result) != _shape(self.plain):
            return self._other_structure(result)
        faults = {}
        for place, (actual, plain) in enumerate(zip(self._arrays(leaves), self._arrays(self.leaves), strict=True)):
            lost = not is_exact(actual) and np.all(np.isfinite(wide(plain))) and not np.all(np.isfinite(wide(actual)))
            if np.shape(actual) != np.shape(plain) or lost:
                faults[place] = _words(actual, plain)
        return Difference([math.inf if place in faults else 0.0 for place in range(len(leaves))], faults=faults)


def _nearer(from_exact: Difference, from_plain: Difference) -> Difference:
    """Return the smaller of two differences for each array."""
    pairs = zip(from_exact.errors, from_plain.errors, strict=True)
    nearest = [from_exact if wider <= plain else from_plain for wider, plain in pairs]
    return Difference(
        [each.errors[k] for k, each in enumerate(nearest)],
        [each.arrays[k] for k, each in enumerate(nearest)],
        {k: each.faults[k] for k, each in enumerate(nearest) if k in each.faults},
        {k: each.whole[k] for k, each in enumerate(nearest) if k in each.whole},
    )


def _shape(result: Result) -> list[Any]:
    return [optree.tree_structure(part) for part in result]


def _expected_array(actual: Any, plain: Any, exact: Any) -> Any:
    """Return the expected array by element: the exact one, or the plain one where that is not finite.

    Where only the exact element is finite, any value is expected; an integer may equal either one.
    """
    if exact is None or not np.shape(actual) == np.shape(plain) == np.shape(exact):
        return plain
    if is_exact(plain):
        return np.where(np.equal(actual, exact), exact, plain) if is_exact(actual) else plain
    actual, plain, exact = map(wide, (actual, plain, exact))
    if_infinite = np.where(np.isfinite(exact), actual, plain)
    return np.where(np.isfinite(plain), np.where(np.isfinite(exact), exact, plain), if_infinite)


def _words(actual: Any, plain: Any) -> str:
    """Return the description of an array whose error is infinite."""
    actual, plain = np.asarray(actual), np.asarray(plain)
    if actual.shape != plain.shape:
        return f"is of shape {actual.shape} instead of {plain.shape}"
    if is_exact(plain) and is_exact(actual):
        kind = {"b": "bools", "i": "integers", "u": "integers"}.get(plain.dtype.kind, "elements")
        return f"differs in {np.sum(actual != plain):,} of {plain.size:,} {kind}"
    lost = np.isnan(wide(actual)) & np.isfinite(wide(plain))
    if np.any(lost):
        return f"is NaN in {np.sum(lost):,} of {plain.size:,} elements where it must be finite"
    if np.any(~np.isfinite(wide(actual)) & np.isfinite(wide(plain))):
        return "is infinite where it must be finite"
    if np.any(np.isfinite(wide(actual)) & ~np.isfinite(wide(plain))):
        return "is finite where it must be NaN or infinite"
    return "has NaN or infinity in other places" if np.any(~np.isfinite(wide(plain))) else "is not 0"


class CallJudgement(NamedTuple):
    """The judgement of a call: largest errors of value, gradients and state, the limit, and a `fault` or a `warning`.

    An error is None where nothing could be compared. No error below `unseen` is noticed; an error up to `allowed` is
    accepted in the directions in which rounding moves a result. `coarse` names the arrays in which errors above the
    tolerance go unnoticed, each with the largest such error as a part of the array's size.
    """

    errors: tuple[float | None, float | None, float | None] = (None, None, None)
    allowed: float = 0.0
    fault: str | None = None
    warning: str | None = None
    unseen: float = 0.0
    coarse: Mapping[str, float] = MappingProxyType({})


Measure = Callable[[int, int], Moves]
"""A function of a call's index and a number of nudges; it returns the moves of the result."""
Again = Callable[[int], bool]
"""A function of a call's index: whether the call, though off, is right from inputs nearby."""


def judge_calls(
    calls: Mapping[int, Sequence[Difference]],
    references: Mapping[int, Standard],
    moves: Measure = lambda *_: Moves(),
    nearby: Again = lambda _: False,
) -> CallJudgement:
    """Judge calls by their differences; `moves` is asked about rounding where a call is off.

    An array that rounding moves by more than its own size gets only the tolerance. `nearby` is asked where nudges do
    not explain an error.
    """
    rows = [
        _call(index, call, references[index], partial(moves, index), partial(nearby, index))
        for index, call in calls.items()
    ]
    return CallJudgement(
        tuple(max((e for row in rows if (e := row.errors[k]) is not None), default=None) for k in range(3)),  # type: ignore[arg-type]
        max((row.allowed for row in rows), default=0.0),
        next((row.fault for row in rows if row.fault), None),
        next((row.warning for row in rows if row.warning), None),
        max((row.unseen for row in rows), default=0.0),
        _merge([row.coarse for row in rows]),
    )


def _call(
    index: int,
    call: Sequence[Difference],
    reference: Standard,
    moves: Callable[[int], Moves],
    nearby: Callable[[], bool],
) -> CallJudgement:
    errors, leaves = worst(difference.errors for difference in call), reference.leaves
    near = call[0].allowed if len(call) == 1 else {}
    limits = [max(limit, near.get(k, 0.0)) for k, limit in enumerate(reference.limits)]
    own, most = _report_errors(errors, limits, reference)
    warning = _join_sentences(_nothing(reference.lost, index), _near(near, reference))
    row = CallJudgement(own, most, None, warning, most, _coarse(limits, reference))

    def fault(errors: Sequence[float], limits: Sequence[float], where: str = "") -> str | None:
        over = [
            (e / limit if limit else math.inf, k)
            for k, (e, limit) in enumerate(zip(errors, limits, strict=True))
            if e > limit
        ]
        if not over:
            return None
        k = max(over)[1]
        if k >= len(leaves):
            return "it gives something where nothing is expected"
        said = next((each.faults[k] for each in call if k in each.faults), "")
        off, allowed = (size / reference.shares[k] for size in (errors[k], limits[k]))
        leaf = leaves[k]._replace(path=()) if said == ANOTHER else leaves[k]
        return f"{leaf.named(index)} {said or f'is off by {off:.3g}{where}, allowed {allowed:.3g}'}"

    if len(errors) != len(leaves):
        return row._replace(fault=fault(errors, [0.0] * len(errors)))
    said = fault(errors, limits)
    sizeless = any(math.isinf(e) for e, leaf in zip(errors, leaves, strict=True) if not is_exact(leaf.array))
    if said is None or sizeless or reference.blind:
        return row._replace(fault=said)
    rounding = moves(NUDGES)
    multiple = FACTOR if reference.own and not reference.judged else 1.0 if reference.dtype in UNITS else MULTIPLE
    allowed = _limits(rounding.sizes, limits, multiple)
    noise = _limits(rounding.noise(reference.tolerance), limits, multiple)
    sized = [_excuse_rounding(k, error, call, reference, rounding) for k, error in enumerate(errors)]

    def beside(nudges: int) -> str | None:
        rest = worst(moves(nudges).beside(each, reference.tolerance) for each in call if len(each.arrays))
        return fault(rest, noise, " in directions in which rounding does not move it")

    warning = _warning(rounding.sizes, max(noise), reference.tolerance, multiple)
    reported, most = _report_errors(errors, allowed, reference, rounding.sizes)
    unseen = _report_errors(errors, noise, reference, rounding.sizes)[1]
    coarse = _merge([row.coarse, _coarse(noise, reference, rounding.sizes)])
    row = row._replace(errors=reported, allowed=max(row.allowed, most), unseen=max(row.unseen, unseen), coarse=coarse)
    ill = row._replace(
        warning=_join_sentences(row.warning, warning, _unseen_sentence(reference, rounding.sizes, index))
    )
    said = fault(sized, allowed) or beside(NUDGES)
    if said is None:
        return ill
    if nearby():
        jump = f"{said}; from numbers nearby it is right, so that the step jumps here, and each mode may be on its side"
        return row._replace(warning=_join_sentences(row.warning, jump))
    said = fault(sized, allowed) or beside(MOST)
    return row._replace(fault=said) if said else ill


def right_nearby(is_right: Callable[[int], bool]) -> bool:
    """Return whether a mode that is off from its own inputs (seed 0) is right from half of the inputs nearby.

    A mode that is right when called again has an error that inputs do not explain, and is not excused.
    """
    return not is_right(0) and 2 * sum(map(is_right, range(1, NEARBY + 1))) >= NEARBY


def _report_errors(
    errors: Sequence[float], limits: Sequence[float], reference: Standard, moved: Sequence[float] = ()
) -> tuple[tuple[float | None, float | None, float | None], float]:
    """Return the largest error of each part of a result, and the largest limit, as parts of each array's size.

    The error of a part without finite elements is None. An array that is zero but for rounding has no size of its own,
    so its error and its limit are left out.
    """
    zero, sizes = _zero(reference, moved), {id(leaf): np.size(leaf.array) for leaf in reference.leaves}
    blank = {id(leaf) for leaf, count in reference.lost if count == sizes[id(leaf)]}
    blank |= {id(reference.leaves[k]) for k in zero}
    own = [(leaf, e / share) for leaf, e, share in zip(reference.leaves, errors, reference.shares, strict=False)]
    most = [max((e for leaf, e in own if leaf.part == k and id(leaf) not in blank), default=None) for k in range(3)]
    allowed = _own_limits(limits, reference, moved).values()
    return (most[0], most[1], most[2]), max(allowed, default=reference.tolerance)


def _own_limits(limits: Sequence[float], reference: Standard, moved: Sequence[float] = ()) -> dict[int, float]:
    """Return the limit of each array as a part of its own size, without arrays that are zero but for rounding.

    The last digits are rounded away: a tolerance that is multiplied by a share and divided by it is off by a bit.
    """
    zero, pairs = _zero(reference, moved), enumerate(zip(limits, reference.shares, strict=True))
    return {k: float(f"{limit / share:.9g}") for k, (limit, share) in pairs if k not in zero}


def _coarse(limits: Sequence[float], reference: Standard, moved: Sequence[float] = ()) -> dict[str, float]:
    """Return the limits above the tolerance, as parts of the arrays' own sizes, by the names of the arrays."""
    own = _own_limits(limits, reference, moved)
    return {reference.leaves[k].name: limit for k, limit in own.items() if limit > reference.tolerance}


def _merge(coarse: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the largest limit for each name."""
    merged: dict[str, float] = {}
    for each in coarse:
        merged.update({name: max(limit, merged.get(name, 0.0)) for name, limit in each.items()})
    return merged


def _zero(reference: Standard, moved: Sequence[float]) -> set[int]:
    """Return the arrays that are zero but for rounding; none where the plain mode is not trusted to tell."""
    return set() if reference.judged else reference.zero(moved)


def _unseen_sentence(reference: Standard, moved: Sequence[float], call: int) -> str | None:
    """Return a sentence about arrays that are zero but for rounding, whose errors go unnoticed; None if none are."""
    zero = sorted(_zero(reference, moved))
    if not zero:
        return None
    others = f", and so are {len(zero) - 1} more arrays" if len(zero) > 1 else ""
    return f"{reference.leaves[zero[0]].named(call)} is zero but for rounding{others}: errors there are not seen"


def _excuse_rounding(place: int, error: float, call: Sequence[Difference], reference: Standard, moves: Moves) -> float:
    """Return an array's error; 0 for integers that rounding alone gives."""
    actual = [difference.whole[place] for difference in call if place in difference.whole]
    plain = np.asarray(reference.leaves[place].array)
    return 0.0 if actual and all(moves.gives(place, whole, plain) for whole in actual) else error


def _limits(moved: Sequence[float], least: Sequence[float], multiple: float) -> list[float]:
    several = list(moved) or [0.0] * len(least)
    return [max(low, min(multiple * by, 1.0)) if by <= 1 else low for by, low in zip(several, least, strict=True)]


def _join_sentences(*said: str | None) -> str | None:
    return "; ".join(filter(None, said)) or None


def _near(near: Mapping[int, float], reference: Standard) -> str | None:
    """Return a sentence about ill-conditioned arrays that are as near to wider numbers as the plain mode's."""
    if not near:
        return None
    own, most = max(reference.own[k] for k in near), max(reference.factor, reference.tolerance)
    return (
        f"ill-conditioned: rounding alone puts eager off by up to {own:.2g} of an array's size; in {len(near)} of "
        f"{len(reference.leaves)} arrays this mode is as near to float64, where a factor on all of one is seen from "
        f"{most:.2g} on"
    )


def _nothing(lost: Sequence[tuple[ResultLeaf, int]], call: int) -> str | None:
    """Return a sentence about NaN and infinity in the plain mode's own result."""
    if not lost:
        return None
    leaf, count = lost[0]
    others = f", and {len(lost) - 1} more arrays" if len(lost) > 1 else ""
    return (
        f"{leaf.named(call)} is NaN or infinite in {count:,} of {np.size(leaf.array):,} elements in the plain mode "
        f"too{others}: no size was compared there"
    )


def _warning(sizes: Sequence[float], beside: float, tolerance: float, multiple: float) -> str | None:
    """Return a sentence about a step that rounding moves by more than the tolerance; None if it moves less."""
    many = sum(size > tolerance for size in sizes)
    if not many:
        return None
    most = max((size for size in sizes if size <= 1), default=1.0)
    return (
        f"ill-conditioned: rounding alone moves its result by up to {most:.2g} ({many} of {len(sizes)} arrays by "
        f"more than {tolerance:g}), and it may be {multiple:g} times as far off in these directions, "
        f"and by {beside:.2g} beside them"
    )
