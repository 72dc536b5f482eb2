"""A contest: modes compared by one cost, and the words for its outcome.

Read `Contest` and `contest` first: which modes cost least and cannot be told apart. `outcome_text` says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c5_memory import bytes_held
from compare.claims.evidence import Evidence, Read
from compare.records.record import DYNAMIC
from compare.stats import LEAST, Interval, Side

CLEAR = 2.0
"""The ratio beyond which one process is enough to tell two modes apart."""
Outcome = Literal["wins", "tie", "cannot tell", "alone", "not measured"]


@dataclass(frozen=True)
class Contest:
    """The modes compared by one cost. `leaders` are the cheapest mode and those that cannot be told apart from it.

    `values` are the seconds or bytes of each mode, and `ratios` are the other modes ÷ the first leader. `base` is the
    mode that compiles nothing. `processes` is the smallest number of processes that measured a mode.
    """

    outcome: Outcome = "not measured"
    leaders: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, Interval] = field(default_factory=dict)
    base: str = DYNAMIC
    processes: int = 0


def contest(cell: Evidence, read: Read, *, once: bool = False) -> Contest:
    """Compare the modes in one cell. A mode is beaten if its whole interval lies beyond the smallest effect.

    A number that was measured only `once` has no interval; there, a mode is beaten by a ratio of more than `CLEAR`.
    """
    values = cell.means(read)
    if not values:
        return Contest(base=cell.base)
    best, *others = sorted(values, key=lambda mode: values[mode])
    measured = {mode: ratio_of(cell, mode, best, read) for mode in others}
    ratios = {mode: ratio for mode, ratio in measured.items() if ratio is not None}
    sides = {mode: _side(ratios[mode], once=once) if mode in ratios else "unclear" for mode in others}
    close = [mode for mode, side in sides.items() if side != "above"]
    outcome: Outcome = "wins" if not close else "cannot tell"
    if not others:
        outcome = "alone"
    elif close and all(sides[mode] == "tie" for mode in close):
        outcome = "tie"
    return Contest(outcome, (best, *close), values, ratios, cell.base, min(len(cell.of(mode)) for mode in values))


def _side(ratio: Interval, *, once: bool) -> Side:
    if once and not ratio.bounded and ratio.estimate > CLEAR:
        return "above"
    return ratio.side(SMALLEST_EFFECT)


def ratio_of(cell: Evidence, top: str, bottom: str, read: Read) -> Interval | None:
    """Return `top / bottom`, paired if a process has both modes; for bytes, an exact ratio without width."""
    if read is not bytes_held:
        return cell.ratio(top, bottom, read) or cell.unpaired_ratio(top, bottom, read)
    over, under = cell.mean(top, read), cell.mean(bottom, read)
    return Interval(over / under, over / under, over / under) if over and under else None


# The words ------------------------------------------------------------------------------------------------------------


def outcome_text(contest: Contest, where: str, less: str = "is {} faster than", more: str = "") -> str:
    """Return the outcome of a contest, as `once warm, static-exact is 4.35× faster than dynamic`.

    `less` is the phrase for a leader before another mode, `more` the phrase for another mode before the leader.
    """
    if contest.outcome in ("alone", "not measured") or not contest.leaders:
        return ""
    leaders = text.join_words(contest.leaders)
    compared = _compare_leader(contest, less, more)
    if contest.outcome == "wins" and compared:
        return f"{where}, {compared}"
    outcome = {
        "wins": f"{leaders} is ahead",
        "tie": f"{leaders} tie within {SMALLEST_EFFECT:.0%}",
        "cannot tell": _without_interval(contest, less)
        or _about_the_limit(contest, less)
        or f"{leaders} cannot be told apart",
    }[contest.outcome]
    return f"{where}, {outcome}{f', and {compared}' if compared else ''}"


def _without_interval(contest: Contest, less: str) -> str:
    """Return the ratio that was seen and why it has no interval; "" if all ratios have intervals."""
    (leader, *level), ratios = contest.leaders, contest.ratios
    other = contest.base if contest.base in level else next(iter(level or ratios), None)
    if other is None or all(ratio.bounded for ratio in ratios.values()):
        return ""
    ratio = ratios[other]
    seen = f"{leader} {less.format(text.ratio(ratio.estimate))} {other}"
    if max(ratio.estimate, ratio.inverse.estimate) <= 1 + SMALLEST_EFFECT:  # less than what counts, either way
        seen = f"{leader} and {other} differ by less than {SMALLEST_EFFECT:.0%}"
    if contest.processes < LEAST:
        return f"{seen} in {text.count_noun(contest.processes, 'process')} (an interval needs {LEAST})"
    return f"{seen} in what was measured, but processes differ too much for an interval"


def _about_the_limit(contest: Contest, less: str) -> str:
    """Return that the leader is ahead by about the smallest effect; "" if it is not, or if more than two are level."""
    leader, (other, *more) = contest.leaders[0], contest.leaders[1:]
    ratio = contest.ratios[other]
    if more or not ratio.bounded or ratio.low <= 1:
        return ""
    spread = f"{text.ratio(ratio.estimate)} {text.interval(ratio.low, ratio.high)}"
    return f"{leader} {less.format(spread)} {other}, about the {SMALLEST_EFFECT:.0%} that count"


def _compare_leader(contest: Contest, less: str, more: str) -> str:
    """Compare the leader with the base; if the base leads or is missing, with the nearest mode that is not level."""
    leader, ratios = contest.leaders[0], contest.ratios
    other = _beside(contest, [mode for mode in ratios if mode not in contest.leaders])
    if other is None or other in contest.leaders:
        return ""
    times = text.ratio(ratios[other].estimate)
    if more and leader == contest.base:
        return f"{other} {more.format(times)} {leader}"
    return f"{leader} {less.format(times)} {other}"


def _beside(contest: Contest, others: Sequence[str]) -> str | None:
    """Return the mode with which the leader is compared: the base, or else the first of `others`."""
    return contest.base if contest.base in contest.ratios else next(iter(others), None)
