"""What changes to a user's code have gained: each was tried as a mode beside the others, and the best is told.

A change gains in warm calls, in the first pass, or in both. They are weighed by the seconds of a first pass and `CALLS`
warm calls, so that a minute of compiling is not forgotten for a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.contests import ratio_of
from compare.claims.evidence import cells, join_evidence, steady
from compare.claims.verdict import OwnVerdict, verdict
from compare.engines import find_engine
from compare.records.cells import Compilations, Time
from compare.records.record import Records, Run, records_of
from compare.stats import Interval

CALLS = 1000
"""The number of warm calls that are weighed beside a first pass."""
LESS = 0.8
"""The ratio of seconds below which a first pass, which is measured once, is said to be shorter."""


@dataclass(frozen=True)
class TriedChange:
    """A change of a user's code, and its mode beside `usual`, the mode without it.

    `before` is what the usual mode has. `call` is the steady time ÷ that of `usual`, and `first` the seconds of the
    first pass. `refused` is why the mode was not timed, "" if it was. `gain` is the seconds of a first pass and `CALLS`
    calls of the usual mode ÷ its own.
    """

    mode: str
    change: str
    usual: str
    call: Interval | None = None
    first: float | None = None
    compiles: int | None = None
    breaks: int | None = None
    before: TriedChange | None = None
    refused: str = ""
    gain: float = 0.0

    @property
    def helps(self) -> bool:
        """Whether it costs less than the usual mode: beyond the smallest effect, and a call is not slower."""
        slower = self.call is None or self.call.side(SMALLEST_EFFECT) == "above"
        return not self.refused and not slower and self.gain > 1 + SMALLEST_EFFECT


def changes_of(records: Records) -> dict[str, str]:
    """Return the change that each tried mode stands for, by the settings of the run."""
    settings = next((run.settings for run in records_of(records, Run)), {})
    said = settings.get("trials") or []
    return dict(each.split(": ", 1) for each in said) if isinstance(said, list) else {}


def tried_changes(records: Records) -> list[TriedChange]:
    """Return the changes that were tried, the one that gains most first."""
    changes, judged = changes_of(records), verdict(records)
    others = [mode for mode in judged.steady.values if mode not in changes]
    usual = next((mode for mode in others if mode != judged.steady.base), judged.steady.base)
    costs = _costs(judged)
    plain = _outcome(records, judged, usual, "", usual)
    tried = [
        replace(
            _outcome(records, judged, mode, change, usual),
            before=plain,
            gain=costs.get(usual, inf) / costs.get(mode, inf),
        )
        for mode, change in changes.items()
    ]
    return sorted(tried, key=lambda each: (not each.helps, bool(each.refused), -each.gain))


def _costs(judged: OwnVerdict) -> dict[str, float]:
    """Return the seconds of a first pass and `CALLS` warm calls of each mode that has both."""
    first, warm = judged.first.values, judged.steady.values
    return {mode: first[mode] + CALLS * warm[mode] for mode in warm if mode in first}


def _outcome(records: Records, judged: OwnVerdict, mode: str, change: str, usual: str) -> TriedChange:
    if mode not in judged.steady.values:
        return TriedChange(mode, change, usual, refused=judged.refused.get(mode, "not timed"))
    cell = join_evidence(cells(records, Time))
    rows = [record.modes[mode] for record in records_of(records, Compilations) if mode in record.modes]
    return TriedChange(
        mode,
        change,
        usual,
        ratio_of(cell, mode, usual, steady) if mode != usual else None,
        judged.first.values.get(mode),
        judged.compiles.get(mode),
        sum(rows[0].breaks.values()) if rows else None,
    )


def sentences(records: Records) -> list[str]:
    """Return what to change, and what it gains; that nothing helps; or nothing where no change was tried."""
    tried = tried_changes(records)
    if not tried:
        return []
    of_all = f"Of {text.count_noun(len(tried), 'change')} tried"
    best = tried[0]
    if not best.helps:
        return [f"{of_all}, none gains beside {best.usual}."]
    said = text.join_words(list(_gains(best)))
    return [f"{of_all}, this gains most: {best.change}. Beside {best.usual}, {said}."]


def _gains(best: TriedChange) -> Iterator[str]:
    """Yield what a change gains beside the usual mode: compilations, breaks, the first pass, and a call."""
    before = best.before or best
    for noun, now, then in (
        ("compilation", best.compiles, before.compiles),
        ("graph break", best.breaks, before.breaks),
    ):
        if now is not None and then is not None and now < then:
            yield f"it has {text.count_noun(now, noun)} instead of {then:,}"
    if before.first and best.first and best.first < LESS * before.first:
        yield f"the first pass takes {text.seconds(best.first)} instead of {text.seconds(before.first)}"
    if best.call:
        alike = best.call.side(SMALLEST_EFFECT) == "tie"
        yield "a call is as fast" if alike else f"a call takes {text.estimate(best.call)} the time"


def suggestions(records: Records) -> list[str]:
    """Return which changes are worth a try by what a run was told, and the option that tries them; none if it did."""
    settings = next((run.settings for run in records_of(records, Run)), {})
    if not settings.get("framework") or settings.get("trials"):
        return []
    trials, told = find_engine(str(settings["framework"])).trials, records_of(records, Compilations)
    places = [trial.name for trial in trials.modes(told, settings, remedies=False)]
    asked = [trial.change for trial in trials.modes(told, settings, remedies=True) if trial.name not in places]
    return [f"Worth a try: {'; '.join(asked)}. --remedies measures what a change gains."] if asked else []


def rows(tried: Sequence[TriedChange]) -> list[tuple[str, ...]]:
    """Return a header and a row for each change, as the page shows them."""
    header = ("mode", "change", f"a call ÷ {tried[0].usual}", "first pass", "compiles", "graph breaks", "outcome")
    return [header, *(_row(each) for each in tried)]


def _row(each: TriedChange) -> tuple[str, ...]:
    outcome = each.refused or ("gains" if each.helps else "gains nothing")
    counts = ("" if number is None else f"{number:,}" for number in (each.compiles, each.breaks))
    call = text.estimate(each.call) if each.call else ""
    return each.mode, each.change, call, text.seconds(each.first), *counts, outcome
