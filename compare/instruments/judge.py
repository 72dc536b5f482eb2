"""Whether what a mode gives is right: beside what the plain mode gives, and in wider numbers, where there is that.

An array is right where it is no further from the wider numbers than the plain mode is, times FACTOR. That factor is for
errors that are samples of one thing: those of another order of the same sums. Below one part of the table it is right
in any case. Without wider numbers the table alone says how far it may be from what the plain mode gives.

An array that the plain mode is further from than the table says is ill-conditioned. A mode may then be as far off as
rounding alone puts the plain mode, which is measured (`compare.instruments.rounding`), and in the directions in which
rounding moves it. Integers are those of the plain mode, or those that it gives in wider numbers, or from nudged ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.instruments.rounding import (
    Difference,
    Moves,
    apart,
    error_of,
    is_exact,
    largest,
    scaled_error,
    scales_of,
    wide,
    worst,
)

TOLERANCES: Mapping[str, float] = {"bfloat16": 4e-2, "float16": 5e-3, "float32": 1e-4, "float64": 1e-9}
"""How far off what is computed in a dtype may be where nothing else says it, by the lowest one of a step."""
UNITS: Mapping[str, float] = {"bfloat16": 2**-7, "float16": 2**-10}
"""The unit in the last place of the dtypes of which rounding is no small part of a result."""
FACTOR = 3.0
"""How many times as far from wider numbers as the plain mode another may be: what PyTorch allows its own backends."""
MULTIPLE = 10.0
"""The same where nudges of the plain mode are all that tells of rounding; what PyTorch allows of small arrays. In the
dtypes of UNITS a nudge is as much as rounding is: there it is 1."""
NUDGES, MOST = 8, 64
"""How many are made, and how many before a mode is refused that is no further off than they: one may have put so many
ReLUs on their other sides that eight nudges do not tell them apart."""
ANOTHER = "has another structure"
_PARTS = ("the output", "the gradient", "the state")

Result = tuple[Any, ...]
"""The value of a call, the gradients, and the state after it where there is any, a dict by what messages call it."""


def lowest(dtypes: Iterable[Any], default: str = "float32") -> str:
    """The least precise of some dtypes as the table calls it; complex numbers are as precise as their parts."""
    parts = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
    names = {parts.get(name, name) for name in (getattr(dtype, "name", str(dtype)) for dtype in dtypes)}
    return max(names & TOLERANCES.keys(), key=TOLERANCES.__getitem__, default=default)


class ResultLeaf(NamedTuple):
    """One array of a result: the part that it is of, its path there, and itself."""

    part: int
    path: tuple[Any, ...]
    array: Any

    def named(self, call: int) -> str:
        """What messages call it: `the gradient of `fc.weight` in call 2`."""
        if self.part == 2:
            return f"{self.path[0]} after call {call + 1}"
        place = "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in self.path).removeprefix(".")
        return f"{_PARTS[self.part]}{f' of `{place}`' if place else ''} in call {call + 1}"

    @property
    def kind(self) -> tuple[int, str]:
        """What it is compared in size with: in the state all parameters, or all sums of squares of an optimizer's."""
        return self.part, self.path[0].rpartition(" `")[0] if self.part == 2 else ""


def leaves_of(result: Result) -> list[ResultLeaf]:
    """The arrays of a result."""
    return [
        ResultLeaf(part, path, leaf)
        for part, tree in enumerate(result)
        for path, leaf in zip(optree.tree_paths(tree), optree.tree_leaves(tree), strict=True)
    ]


@dataclass(frozen=True)
class Standard:
    """What a call must give: what the `plain` mode gives, and the same in wider numbers, `exact`, where there is that.

    `dtype` is the lowest in which the call computes. A plain mode that is `judged` itself is not trusted: what it is
    off by says nothing of rounding, and all are compared with both. Of a `blind` one shapes count, and NaN for numbers.
    Where the two are `apart` by more than rounding, wider numbers may be of something else: one of both must be met.
    """

    plain: Result
    exact: Result | None = None
    dtype: str = "float32"
    judged: bool = False
    blind: bool = False
    apart: bool = False

    @property
    def tolerance(self) -> float:
        """How far off an array may be where nothing else says it."""
        return TOLERANCES[self.dtype]

    @cached_property
    def leaves(self) -> list[ResultLeaf]:
        """What the plain mode gives."""
        return leaves_of(self.plain)

    @cached_property
    def own(self) -> list[float]:
        """How far the plain mode is from wider numbers."""
        return [self._off(k, leaf.array) for k, leaf in enumerate(self.leaves)] if self.wider else []

    @cached_property
    def limits(self) -> list[float]:
        """How far a mode may be off without a question."""
        most = self.tolerance
        if not self.own or self.judged:
            return [most] * len(self.leaves)
        least = min(most, max(TOLERANCES["float32"], UNITS.get(self.dtype, 0.0)))
        return [max(least, min(FACTOR * own, most)) for own in self.own]

    @property
    def is_ill(self) -> bool:
        """Whether the plain mode itself is further from wider numbers than the dtype says."""
        return any(own > self.tolerance for own in self.own)

    def blank(self) -> list[ResultLeaf]:
        """The arrays of which no element is finite, so that there is nothing to compare."""
        floats = [leaf for leaf in self.leaves if np.size(leaf.array) and not is_exact(leaf.array)]
        return [leaf for leaf in floats if not np.any(np.isfinite(wide(leaf.array)))]

    def less(self, result: Result) -> list[Difference]:
        """A result less what it must be: less both where the plain mode is judged itself."""
        from_plain = self._less(result, None) if self.exact and (self.judged or self.apart) else None
        if self.apart and from_plain:
            from_exact = self._less(result, self._other)
            return [from_exact if max(from_exact.errors, default=0.0) <= self.tolerance else from_plain]
        return [self._less(result, self.wider), *([from_plain] if from_plain else [])]

    def less_plain(self, result: Result) -> Difference:
        """A result less what the plain mode gives, with its arrays."""
        return self._less(result, None, always=True)

    def less_exact(self, result: Result, exact: Result) -> Difference:
        """A result less another one in wider numbers, with its arrays, scaled as this call is."""
        return self._less(result, leaves_of(exact), always=True)

    @property
    def best(self) -> Result:
        """What is nearest to what is right."""
        return self.plain if self.apart or self.exact is None else self.exact

    @property
    def wider(self) -> list[ResultLeaf] | None:
        """The arrays in wider numbers, where they say what is right."""
        return None if self.apart else self._other

    @cached_property
    def _other(self) -> list[ResultLeaf] | None:
        if self.exact is None:
            return None
        wider = leaves_of(self.exact)
        return wider if _shape(self.exact) == _shape(self.plain) else None

    @cached_property
    def _scales(self) -> list[float]:
        """An array whose own size the plain mode gets right is scaled by that, and any other by the largest as well.

        The same array in the same dtype is no other opinion: of one that is zero but for rounding it has that rounding.
        """
        expected = self.wider or self.leaves
        kinds = {leaf.kind: [other.array for other in expected if other.kind == leaf.kind] for leaf in expected}
        scales = {kind: iter(scales_of(arrays)) for kind, arrays in kinds.items()}
        floors = [next(scales[leaf.kind]) for leaf in expected]
        if not self.wider:
            return floors
        sizes = [0.0 if is_exact(leaf.array) else largest(leaf.array) for leaf in expected]
        near = [
            not _same(*pair) and scaled_error(*pair) <= self.tolerance / FACTOR
            for pair in zip(self._arrays(self.leaves), self._arrays(self.wider), strict=True)
        ]
        return [size if right else floor for size, floor, right in zip(sizes, floors, near, strict=True)]

    @staticmethod
    def _arrays(leaves: Sequence[ResultLeaf]) -> list[Any]:
        return [leaf.array for leaf in leaves]

    def _off(self, place: int, array: Any) -> float:
        exact = self.wider[place].array if self.wider else None
        expected = _expected(array, self.leaves[place].array, exact)
        return error_of(array, expected, self._scales[place])

    def _less(self, result: Result, exact: list[ResultLeaf] | None, *, always: bool = False) -> Difference:
        """Leaf by leaf; with arrays where some leaf is off, or `always`."""
        if self.blind:
            return self._seen(result)
        leaves, plain = leaves_of(result), self._arrays(self.leaves)
        if _shape(result) != _shape(self.plain) or (exact is not None and len(exact) != len(plain)):
            others = dict.fromkeys(range(len(plain)), ANOTHER)
            return Difference([math.inf] * max(len(plain), 1), [np.empty(0, np.float32)] * len(plain), others)
        actual = self._arrays(leaves)
        wider = self._arrays(exact) if exact is not None else [None] * len(plain)
        expected = [_expected(*each) for each in zip(actual, plain, wider, strict=True)]
        errors = [error_of(*each) for each in zip(actual, expected, self._scales, strict=True)]
        if not always and all(error <= limit for error, limit in zip(errors, self.limits, strict=True)):
            return Difference(errors)
        arrays = [apart(*each) for each in zip(actual, expected, self._scales, strict=True)]
        faults = {k: _words(actual[k], plain[k]) for k, error in enumerate(errors) if not math.isfinite(error)}
        whole = {k: np.asarray(array) for k, array in enumerate(actual) if is_exact(array) and (always or k in faults)}
        return Difference(errors, arrays, faults, whole)

    def _seen(self, result: Result) -> Difference:
        """What can be seen of a result that is no other's: structure, shapes, and NaN or infinity for numbers."""
        leaves = leaves_of(result)
        if _shape(result) != _shape(self.plain):
            return Difference([math.inf] * len(self.leaves), faults=dict.fromkeys(range(len(leaves)), ANOTHER))
        faults = {}
        for place, (actual, plain) in enumerate(zip(self._arrays(leaves), self._arrays(self.leaves), strict=True)):
            lost = not is_exact(actual) and np.all(np.isfinite(wide(plain))) and not np.all(np.isfinite(wide(actual)))
            if np.shape(actual) != np.shape(plain) or lost:
                faults[place] = _words(actual, plain)
        return Difference([math.inf if place in faults else 0.0 for place in range(len(leaves))], faults=faults)


def _same(plain: Any, wider: Any) -> bool:
    """Whether the one is the other again, in no wider numbers."""
    plain, wider = np.asarray(plain), np.asarray(wider)
    return plain.dtype == wider.dtype and np.array_equal(plain, wider)


def _shape(result: Result) -> list[Any]:
    return [optree.tree_structure(part) for part in result]


def _expected(actual: Any, plain: Any, exact: Any) -> Any:
    """What an array must be, element by element: as exact as there is, and as the plain mode where that is not finite.

    There a finite number may stand that is the exact one, and for an integer the exact one may.
    """
    if exact is None or not np.shape(actual) == np.shape(plain) == np.shape(exact):
        return plain
    if is_exact(plain):
        return np.where(np.equal(actual, exact), exact, plain) if is_exact(actual) else plain
    actual, plain, exact = map(wide, (actual, plain, exact))
    mask = np.isfinite(exact) & (np.isfinite(plain) | np.isfinite(actual))
    return np.where(mask, exact, plain)


def _words(actual: Any, plain: Any) -> str:
    """What is said of an array whose error has no size."""
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


class Judged(NamedTuple):
    """How far results are off at most, how far they may be, and what to say of it: a `fault`, or else a `warning`.

    An error is null where there is nothing that could be compared.
    """

    errors: tuple[float | None, float | None, float | None] = (None, None, None)
    allowed: float = 0.0
    fault: str | None = None
    warning: str | None = None


Measure = Callable[[int, int], Moves]
"""What so many nudges do to a call."""


def judged(calls: Mapping[int, Sequence[Difference]], references: Mapping[int, Standard], moves: Measure) -> Judged:
    """Calls by what they are off by. Where one is off, `moves` is asked what so many nudges do to it.

    An array that rounding moves by more than its own size has no more than the tolerance.
    """
    rows = [_call(index, call, references[index], partial(moves, index)) for index, call in calls.items()]
    return Judged(
        tuple(max((e for row in rows if (e := row.errors[k]) is not None), default=None) for k in range(3)),  # type: ignore[arg-type]
        max((row.allowed for row in rows), default=0.0),
        next((row.fault for row in rows if row.fault), None),
        next((row.warning for row in rows if row.warning), None),
    )


def _call(index: int, call: Sequence[Difference], reference: Standard, moves: Callable[[int], Moves]) -> Judged:
    errors, leaves, limits = worst(difference.errors for difference in call), reference.leaves, reference.limits
    blank = reference.blank()
    compared = [(leaf, error) for leaf, error in zip(leaves, errors, strict=False) if not _is_in(leaf, blank)]
    most = tuple(max((error for leaf, error in compared if leaf.part == k), default=None) for k in range(3))
    row = Judged(most, max(limits, default=reference.tolerance), None, _nothing(blank, index, len(leaves)))  # type: ignore[arg-type]

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
        return f"{leaves[k].named(index)} {said or f'is off by {errors[k]:.3g}{where}, allowed {limits[k]:.3g}'}"

    if len(errors) != len(leaves):
        return row._replace(fault=fault(errors, [0.0] * len(errors)))
    said = fault(errors, limits)
    sizeless = any(math.isinf(e) for e, leaf in zip(errors, leaves, strict=True) if not is_exact(leaf.array))
    if said is None or sizeless or reference.blind:
        return row._replace(fault=said)
    multiple = FACTOR if reference.own and not reference.judged else 1.0 if reference.dtype in UNITS else MULTIPLE
    rounding = moves(NUDGES)
    allowed = _limits(rounding.sizes, limits, multiple)
    row = row._replace(allowed=max([*allowed, row.allowed]))
    sized = [_excused(k, error, call, reference, rounding) for k, error in enumerate(errors)]
    if said := fault(sized, allowed):
        return row._replace(fault=said)
    noise = _limits(rounding.noise(reference.tolerance), limits, multiple)
    said = None
    for several in (NUDGES, MOST):
        of_all = moves(several)
        beside = worst(of_all.beside(difference, reference.tolerance) for difference in call if len(difference.arrays))
        said = fault(beside, noise, " in directions in which rounding does not move it")
        if said is None:
            return row._replace(warning=_warning(rounding.sizes, max(noise), reference.tolerance, multiple))
    return row._replace(fault=said)


def _excused(place: int, error: float, call: Sequence[Difference], reference: Standard, moves: Moves) -> float:
    """The error; 0 of integers that rounding alone gives."""
    actual = [difference.whole[place] for difference in call if place in difference.whole]
    plain = np.asarray(reference.leaves[place].array)
    return 0.0 if actual and all(moves.gives(place, whole, plain) for whole in actual) else error


def _limits(moved: Sequence[float], least: Sequence[float], multiple: float) -> list[float]:
    several = list(moved) or [0.0] * len(least)
    return [max(low, min(multiple * by, 1.0)) if by <= 1 else low for by, low in zip(several, least, strict=True)]


def _is_in(leaf: ResultLeaf, leaves: Sequence[ResultLeaf]) -> bool:
    return any(leaf is other for other in leaves)


def _nothing(blank: Sequence[ResultLeaf], call: int, count: int) -> str | None:
    if not blank:
        return None
    return (
        f"{blank[0].named(call)} has no finite element in the plain mode either: "
        f"of {len(blank)} of {count} arrays nothing was compared"
    )


def _warning(sizes: Sequence[float], beside: float, tolerance: float, multiple: float) -> str:
    many = sum(size > tolerance for size in sizes)
    return (
        f"ill-conditioned: rounding alone moves its result by up to {max(sizes):.2g} ({many} of {len(sizes)} arrays by "
        f"more than {tolerance:g}), and it may be {multiple:g} times as far off in these directions, "
        f"and by {beside:.2g} beside them"
    )
