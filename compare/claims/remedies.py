"""What changes to a user's code have gained: each was tried as a mode beside the others, and the best is told.

A change gains in warm calls, in the first pass, or in both. They are weighed by the seconds of a first pass and `CALLS`
warm calls, so that a minute of compiling is not forgotten for a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from msgspec import structs

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.contests import ratio_of
from compare.claims.evidence import cells, join_evidence, steady
from compare.claims.verdict import OwnVerdict, verdict
from compare.engines import Engine, find_engine
from compare.records.cells import Compilations, Parity, Time
from compare.records.own import AROUND, Bisection, BisectionRow, GraphTrial
from compare.records.record import OfModes, Record, Records, Run, records_of
from compare.stats import Interval

CALLS = 1000
"""The number of warm calls that are weighed beside a first pass."""
LESS = 0.8
"""The ratio below which seconds and bytes, which are measured once, are said to be less."""
DEAR = 2.0
"""The ratio of times from which on a call is too dear for the memory that it spares, and a first pass for no cache."""
CHEAPER = 2 / 3
"""The ratio of first passes from which on a place is told that has most of the gain."""
DEAR_FIRST = 5.0
"""The seconds of a first pass from which on it is told what kept code would save."""


@dataclass(frozen=True)
class TriedChange:
    """A change of a user's code, and its mode beside `usual`, the mode without it.

    `before` is what the usual mode has. `call` is the steady time ÷ that of `usual`; `first` is the seconds of the
    first pass, `weighed` those that count, and `cached` those where code was found; `memory` are the bytes of a step.
    `refused` is why the mode was not timed, "" if it was. `gain` is the seconds of a first pass and `CALLS` calls of
    the usual mode ÷ its own, and `until` the calls after which the usual mode has cost less, where it ever has.
    """

    mode: str
    change: str
    usual: str
    call: Interval | None = None
    first: float | None = None
    weighed: float | None = None
    compiles: int | None = None
    breaks: int | None = None
    memory: float | None = None
    cached: float | None = None
    before: TriedChange | None = None
    refused: str = ""
    gain: float = 0.0
    until: float = inf

    @property
    def helps(self) -> bool:
        """Whether it costs less than the usual mode, and a call is not slower; or as much, and a call is faster."""
        if self.refused or self.call is None or self._slower:
            return False
        is_faster = self.call.side(SMALLEST_EFFECT) == "below"
        return self.gain > (1 - SMALLEST_EFFECT if is_faster else 1 + SMALLEST_EFFECT)

    @property
    def trades(self) -> bool:
        """Whether it costs less than the usual mode though a call is slower: by less than twice the time."""
        if self.refused or self.call is None or self.call.estimate >= DEAR:
            return False
        return self._slower and self.gain > 1 + SMALLEST_EFFECT

    @property
    def _slower(self) -> bool:
        return self.call is None or self.call.side(SMALLEST_EFFECT) == "above"

    @property
    def spares(self) -> bool:
        """Whether a step takes clearly fewer bytes than in the usual mode, and a call less than twice the time."""
        if self.refused or not (self.call and self.memory and self.before and self.before.memory):
            return False
        return self.memory < LESS * self.before.memory and self.call.estimate < DEAR


def changes_of(records: Records) -> dict[str, str]:
    """Return the change that each tried mode stands for, by the settings of the run."""
    said = _settings(records).get("trials") or []
    return dict(each.split(": ", 1) for each in said) if isinstance(said, list) else {}


def without_trials(records: Records) -> tuple[Record, ...]:
    """Return the records without the modes that were tried, which the answer on the user's own modes leaves out."""
    tried = changes_of(records)
    return tuple(
        structs.replace(record, modes={mode: row for mode, row in record.modes.items() if mode not in tried})
        if isinstance(record, OfModes) and tried
        else record
        for record in records
        if not (isinstance(record, OfModes) and tried and set(record.modes) <= set(tried))
    )


def tried_changes(records: Records) -> list[TriedChange]:
    """Return the changes that were tried, the one that gains most first; [] where the mode without them was not timed.

    The mode without them is the first that compiles among the others, else the base.
    """
    changes, judged = changes_of(records), verdict(records)
    others = [mode for record in records_of(records, Parity) for mode in record.modes if mode not in changes]
    usual = next((mode for mode in others if mode != judged.steady.base), judged.steady.base)
    usual = judged.steady.base if usual in judged.refused else usual
    if usual not in judged.steady.values:
        return []
    first, warm = _first_passes(records, judged), judged.steady.values
    costs = {mode: first[mode] + CALLS * warm[mode] for mode in warm if mode in first}
    plain = replace(_outcome(records, judged, usual, "", usual), weighed=first.get(usual))
    tried = [
        replace(
            _outcome(records, judged, mode, change, usual),
            weighed=first.get(mode),
            before=plain,
            gain=costs.get(usual, inf) / costs.get(mode, inf),
            until=_even(first, warm, usual, mode),
        )
        for mode, change in changes.items()
    ]
    return sorted(tried, key=_rank(tried))


def _even(first: Mapping[str, float], warm: Mapping[str, float], usual: str, mode: str) -> float:
    """Return the calls after which the usual mode has cost as much as another, whose calls are slower; inf for none."""
    if mode not in first or usual not in first or warm[mode] <= warm[usual]:
        return inf
    return (first[usual] - first[mode]) / (warm[mode] - warm[usual])


def _rank(tried: Sequence[TriedChange]) -> Callable[[TriedChange], tuple[Any, ...]]:
    """Return the key by which changes are sorted: those that help, and the one that gains most first.

    A first pass is measured once, so that gains near the largest are level: of these the ones come first whose calls
    are about as fast as the fastest, and of these the one that leaves the fewest graphs and breaks, in the order in
    which they were tried.
    """
    most, order = max((each.gain for each in tried if each.helps), default=inf), [each.mode for each in tried]
    level = [each for each in tried if each.helps and each.gain >= LESS * most]
    fastest = min((each.call.estimate for each in level if each.call), default=inf)

    def key(each: TriedChange) -> tuple[Any, ...]:
        slower = each.call is not None and LESS * each.call.estimate > fastest
        pieces = (each.compiles or 0) + (each.breaks or 0)
        near = (0, slower, pieces, order.index(each.mode)) if each in level else (1, 0, 0, -each.gain)
        return not each.helps, not each.trades, bool(each.refused), *near

    return key


def _settings(records: Records) -> Mapping[str, Any]:
    return next((run.settings for run in records_of(records, Run)), {})


def _first_passes(records: Records, judged: OwnVerdict) -> Mapping[str, float]:
    """Return the seconds of a first pass of each mode that count.

    They are its seconds of the processor, if these were read for all: on the wall it is measured once.
    """
    first, start = judged.first.values, join_evidence(cells(records, Time)).start
    spent = {mode: max(row.processor or 0.0 for row in start.of(mode)) for mode in first if start.of(mode)}
    return spent if all(spent.get(mode) for mode in first) else first


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
        first=judged.first.values.get(mode),
        compiles=judged.compiles.get(mode),
        breaks=sum(rows[0].breaks.values()) if rows else None,
        memory=judged.memory.values.get(mode),
        cached=judged.cached.values.get(mode),
    )


# The words ------------------------------------------------------------------------------------------------------------


def sentences(records: Records) -> list[str]:
    """Return what to change, and what it gains; that nothing helps; or nothing where no change was tried."""
    if not changes_of(records):
        return []
    tried = tried_changes(records)
    number = len(changes_of(records))
    of_all = text.count_noun(number, "change")
    if not tried:
        return [f"Of {of_all} tried, none could be weighed: the mode without them was not timed."]
    best = tried[0]
    most = f"It gains most of {of_all} tried." if number > 1 else "No other change was tried."
    most = most if best.helps or number == 1 else f"None of {of_all} tried gains without a price."
    said = [" ".join((_gain(best), *_beside_base(records, best), most))] if best.helps or best.trades else []
    spares = [each for each in tried if each.spares and not (said and each is best)]
    if spares:
        said.append(_gain(min(spares, key=lambda each: each.memory or inf)))
    none = f"Of {of_all} tried, none gains" if number > 1 else "The change that was tried gains nothing"
    return [
        *(said or [f"{none} beside {best.usual}."]),
        *_bargains(records, best.mode if said else ""),
        *_cache_saving(_engine(records), best.before or best),
        *_by_hand(records),
    ]


def _beside_base(records: Records, best: TriedChange) -> Iterator[str]:
    """Yield by how much a call is slower than in the base even with a change, or is faster only with it."""
    judged = verdict(records)
    ratio, before = (judged.of_base.get(mode) for mode in (best.mode, best.usual))
    if ratio and before:
        side, usual = ratio.side(SMALLEST_EFFECT), before.side(SMALLEST_EFFECT)
        words = "Even so" if side == "above" else "With it" if side == "below" != usual else ""
        yield from [f"{words} a call takes {text.estimate(ratio)} the time of {judged.steady.base}."] if words else []


def _bargains(records: Records, claimed: str) -> Iterator[str]:
    """Yield the place that has most of what compiling gains in a warm call, for much less of a first pass.

    That of the `claimed` mode has just been told.
    """
    judged, changes = verdict(records), changes_of(records)
    warm, first, base = judged.steady.values, judged.first.values, judged.steady.base
    gains = {mode: warm[base] - warm[mode] for mode in warm if mode != base and mode in first}
    most = max(gains, key=lambda mode: gains[mode], default=base)
    if most == base or gains[most] < SMALLEST_EFFECT * warm[base]:
        return
    cheap = [mode for mode in gains if gains[mode] > LESS * gains[most] and first[mode] < CHEAPER * first[most]]
    places = {place.rpartition(" ")[0] for place in _settings(records).get("places") or ()}
    at_places = [mode for mode in cheap if mode in changes and mode.removesuffix("-optimizer") in places]
    if at_places:
        least = min(at_places, key=lambda mode: first[mode])
        share, wait = gains[least] / gains[most], first[least] / first[most]
        said = "That is" if least == claimed else f"{text.begin_sentence(changes[least])}:"
        yield f"{said} {share:.0%} of what {most} gains, for {wait:.0%} of its first pass."


def _gain(change: TriedChange) -> str:
    """Return a change and what it gains beside the usual mode, and how long that pays where calls are slower."""
    said = f"{text.begin_sentence(change.change)}. Beside {change.usual}: {', '.join(_gains(change))}."
    return f"{said} It pays up to {text.count_noun(round(change.until), 'call')}." if change.trades else said


def _gains(best: TriedChange) -> Iterator[str]:
    """Yield what a change gains beside the usual mode: compilations, breaks, the first pass, a call, and memory."""
    before = best.before or best
    for noun, now, then in (
        ("compilation", best.compiles, before.compiles),
        ("graph break", best.breaks, before.breaks),
    ):
        if now is not None and then is not None and now < then:
            yield f"{text.count_noun(now, noun)} instead of {then:,}"
    if before.first and best.first and best.first < LESS * before.first:
        yield f"the first pass {text.seconds(best.first)} instead of {text.seconds(before.first)}"
    elif before.weighed and best.weighed and best.weighed < LESS * before.weighed:
        least = text.seconds(best.weighed)
        yield f"the first pass {least} of the processor instead of {text.seconds(before.weighed)}"
    if best.call:
        alike = best.call.side(SMALLEST_EFFECT) == "tie"
        yield "a call as fast" if alike else f"a call {text.estimate(best.call)} the time"
    if best.spares and best.memory and before.memory:
        yield f"{text.ratio(best.memory / before.memory)} the memory"


def _cache_saving(engine: Engine | None, usual: TriedChange) -> Iterator[str]:
    """Yield what a first pass takes that finds compiled code, which any process may be given, where it takes less."""
    keeps, first, cached = engine and engine.trials.keeps, usual.first, usual.cached
    if keeps and first and cached and first > max(DEAR_FIRST, DEAR * cached):
        yield f"{keeps}: the first pass takes {text.seconds(cached)} instead of {text.seconds(first)}."


def _by_hand(records: Records) -> list[str]:
    """Return what nobody can try for the user, where the compiler tells of such lines."""
    engine = _engine(records)
    rows = [row for record in records_of(records, Compilations) for row in record.modes.values()]
    shown = engine.trials.by_hand([reason for row in rows for reason in row.breaks]) if engine else ()
    return [f"Not tried: {words}." for words in shown]


def slow_graphs(records: Records) -> list[str]:
    """Return which graph of each mode is slower compiled or wrong, and which part of it; [] where none was sought."""
    return [
        _slow_graph(record, mode, row)
        for record in records_of(records, Bisection)
        for mode, row in record.modes.items()
    ]


def _slow_graph(record: Bisection, mode: str, row: BisectionRow) -> str:
    if row.status != "ok":
        return f"Which graph of {mode} is slower is not known: {row.reason}."
    all_of_them = text.count_noun(len(row.graphs), "graph")
    if not row.number or row.part is None:
        failed = "".join(f" Graph {n} did not run by itself: {each.failed}." for n, each in _failures(row.graphs))
        return f"None of {all_of_them} of {mode} is wrong by itself, or slower than in eager.{failed}"
    whole, part = row.graphs[row.number - 1], row.part
    at = f" ({whole.line})" if whole.line else ""
    called, shown = f"Graph {row.number} of {len(row.graphs)} of {mode}{at}", f"{record.file(mode)} in --out shows it."
    named = f"`{part.ops[0]}`" if len(part.ops) == 1 else f"{text.count_noun(len(part.ops), 'op')}, {_ends(part.ops)}"
    if whole.wrong:
        return f"{called} is wrong: {whole.wrong}. Its wrong part is {named}; {shown}"
    said = f"{called} takes {_times(whole)} the time of eager"
    if row.least and whole.lost < AROUND * row.least.lost:
        least = text.seconds(row.least.lost)
        return (
            f"{said}: {text.seconds(whole.lost)} more, of which a graph of one op on one number takes {least}; {shown}"
        )
    return f"{said}; its slow part is {named}, which takes {_times(part)}: {shown}"


def _failures(graphs: Sequence[GraphTrial]) -> list[tuple[int, GraphTrial]]:
    return [(number, each) for number, each in enumerate(graphs, 1) if each.failed]


def _ends(ops: Sequence[str]) -> str:
    return f"`{ops[0]}` to `{ops[-1]}`"


def _times(trial: GraphTrial) -> str:
    return text.estimate(Interval(*trial.ratio))


def suggestions(records: Records) -> list[str]:
    """Return which changes are worth a try by what a run was told, and the option that tries them; none if it did."""
    engine = _engine(records)
    if engine is None or changes_of(records):
        return []
    asked = [trial.change for trial in engine.trials.modes(records, _settings(records), remedies=True)]
    said = [f"Worth a try: {'; '.join(asked)}. --remedies measures what a change gains."] if asked else []
    return [*said, *_by_hand(records)]


def _engine(records: Records) -> Engine | None:
    """Return the framework of a run on a user's function."""
    name = _settings(records).get("framework")
    return find_engine(str(name)) if name else None


def rows(tried: Sequence[TriedChange]) -> list[tuple[str, ...]]:
    """Return a header and a row for each change, as the page shows them."""
    usual = tried[0].usual
    header = ("mode", "change", f"a call ÷ {usual}", "first pass", "compiles", "graph breaks", "memory", "outcome")
    return [header, *(_row(each) for each in tried)]


def _row(each: TriedChange) -> tuple[str, ...]:
    kinds = {"gains": each.helps, "gains at a price": each.trades, "spares memory": each.spares}
    outcome = each.refused or next((said for said, is_so in kinds.items() if is_so), "gains nothing")
    counts = ("" if number is None else f"{number:,}" for number in (each.compiles, each.breaks))
    call = text.estimate(each.call) if each.call else ""
    memory = text.size(each.memory) if each.memory else ""
    return each.mode, each.change, call, text.seconds(each.first), *counts, memory, outcome
