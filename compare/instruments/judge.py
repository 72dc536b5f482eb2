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
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from compare.instruments.rounding import Difference, Moves, is_exact, worst
from compare.instruments.standard import ANOTHER, FACTOR, MULTIPLE, UNITS, ResultLeaf, Standard

NUDGES, MOST = 8, 64
"""The number of nudges, and the number before a mode is refused that is no further off than nudges move: it may have
put so many ReLUs on their other sides that eight nudges do not tell them apart.
"""
NEARBY, AWAY = 4, 8
"""The number of nearby inputs on which a mode that is off is tried, half of which must show it right, and their
distance in nudges: a ReLU that turns by rounding here seldom turns there.
"""


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

    An output that rounding moves by more than its own size gets only the tolerance. `nearby` is asked where nudges do
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
    allowed = _limits(rounding.sizes, limits, multiple, _rounding_alone(rounding.sizes, reference))
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


def _limits(
    moved: Sequence[float], least: Sequence[float], multiple: float, alone: Mapping[int, float] = MappingProxyType({})
) -> list[float]:
    """Return the limits by how far rounding moves each array; one that moves by more than its size has its own."""
    several = list(moved) or [0.0] * len(least)
    return [
        max(low, min(multiple * by, 1.0) if by <= 1 else alone.get(k, 0.0))
        for k, (by, low) in enumerate(zip(several, least, strict=True))
    ]


def _rounding_alone(moved: Sequence[float], reference: Standard) -> dict[int, float]:
    """Return the limits of gradients and state that rounding moves by more than their size: they are rounding alone.

    They may be as far off as it moves them, and FACTOR times as far from wider numbers as the plain mode. Where the
    output moves so, the whole step is lost, and nothing is excused; nor in half precision, in which the second moments
    of an optimizer underflow and any step is moved so.
    """
    if reference.dtype in UNITS:
        return {}
    lost = {k for k, by in enumerate(moved) if by > 1}
    if any(reference.leaves[k].part == 0 or math.isinf(moved[k]) for k in lost):
        return {}
    own = [] if reference.judged else reference.own
    return {k: max(moved[k], FACTOR * own[k] if own else 0.0) for k in lost}


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
    most = f"up to {max(sizes):.2g}" if max(sizes) <= 1 else "more than its size"
    return (
        f"ill-conditioned: rounding alone moves its result by {most} ({many} of {len(sizes)} arrays by "
        f"more than {tolerance:g}), and it may be {multiple:g} times as far off in these directions, "
        f"and by {beside:.2g} beside them"
    )
