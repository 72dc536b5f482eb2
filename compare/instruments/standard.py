"""The standard that a call is held to: the plain mode's result of the call and, where they exist, wider numbers.

Read `Standard` first: its limits, and its differences from a mode's result. `leaves_of` names the arrays of a result,
and the constants say how far an array may be off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.instruments.rounding import (
    Difference,
    Distance,
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
        """Return the expected arrays; NaN where the plain mode overflows, so that it does not count in a size.

        Where the two are apart these are the plain ones; one of zeros has no size, and the other is taken for it.
        """
        plain = self._arrays(self.leaves)
        exact = self._arrays(self._other) if self._other else [None] * len(plain)
        return [
            array
            if wider is None or is_exact(array) or (self.apart and largest(array))
            else np.where(np.isfinite(wide(array)), wide(wider), np.nan)
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
    plain, exact = wide(plain), wide(exact)
    if np.isfinite(plain).all() and np.isfinite(exact).all():
        return exact
    actual = wide(actual)
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
