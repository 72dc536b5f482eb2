"""The verdict on a user's function from its records: which mode costs least once warm, for one run, and in memory.

Read `OwnVerdict` and `verdict` first. The parts after it make the sentence, then judge modes that were only glimpsed in
a process that did not finish, and last state three claims about one function (`OWN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from math import ceil, fsum, isfinite
from statistics import median
from typing import Any, Literal

from compare import text
from compare.claims.base import SMALLEST_EFFECT, Claim, Effect, Finding, Regime, Verdict, beyond, not_measured
from compare.claims.base import Side as ClaimSide
from compare.claims.c5_memory import bytes_held
from compare.claims.evidence import (
    Evidence,
    Read,
    cells,
    exclusion_sentences,
    first_run,
    join_evidence,
    steady,
)
from compare.claims.regimes import BreakEven, break_even, course
from compare.claims.threads import CANNOT_TELL, at_threads, busy_sentence, more_processes, threads_asked
from compare.records.cells import Compilations, Glimpse, Memory, Parity, Time, TimeRow
from compare.records.record import DYNAMIC, WRITTEN, OfModes, Record, Records, kind_of, records_of
from compare.stats import LEAST, Interval, Side

WAITS = 0.1
"""The share of its wall seconds from which on a step is said to wait."""
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


@dataclass(frozen=True)
class OwnVerdict:
    """The verdict in one sentence, and its parts; `of_base` is the steady time of each mode ÷ that of the base.

    `first` compares first runs from nothing, and `cached` those that find compiled code of an earlier process.
    `answered` is whether the times say what to do. `wrong` has the times of modes that disagree. `glimpsed` has modes
    whose process did not finish, so that their results were not compared.
    """

    sentence: str
    steady: Contest
    first: Contest
    cached: Contest
    memory: Contest
    break_even: BreakEven | None
    of_base: Mapping[str, Interval]
    compiles: Mapping[str, int]
    refused: Mapping[str, str]
    disagree: bool
    answered: bool = True
    wrong: Mapping[str, tuple[float, Interval | None]] = field(default_factory=dict)
    glimpsed: Mapping[str, GlimpsedMode] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an interval is `[estimate, low, high]`, if unbounded `[estimate, None, None]`."""
        return {**_plain(self), "smallest_effect": SMALLEST_EFFECT}


@dataclass(frozen=True, repr=False)
class MeasuredFunction:
    """The measurements of one function in `modes`; its `records` are like those of the suite."""

    name: str
    modes: tuple[str, ...]
    records: tuple[Record, ...]

    @cached_property
    def by_threads(self) -> Mapping[int, MeasuredFunction]:
        """The measurements on each number of threads that was asked for, in that order."""
        numbers = threads_asked(self.records)
        if len(numbers) == 1:
            return {numbers[0]: self}
        apart = {number: at_threads(self.records, number) for number in numbers}
        return {number: MeasuredFunction(self.name, self.modes, records) for number, records in apart.items()}

    @cached_property
    def verdict(self) -> OwnVerdict:
        """The verdict: which mode costs least once warm, for one run, and in memory; break-even and refused modes.

        On several numbers of threads it is that on the first, and its sentence compares all.
        """
        if len(self.by_threads) == 1:
            return verdict(self.records)
        verdicts = {number: measured.verdict for number, measured in self.by_threads.items()}
        first = next(iter(verdicts.values()))
        return replace(
            first,
            sentence=_of_threads(verdicts),
            disagree=any(each.disagree for each in verdicts.values()),
            answered=all(each.answered for each in verdicts.values()),
        )


def _of_threads(verdicts: Mapping[int, OwnVerdict]) -> str:
    """Return whether the answer changes with the number of threads, and the answer on each."""
    words = {number: text.count_noun(number, "thread") for number in verdicts}
    kinds = {(each.steady.outcome, frozenset(each.steady.leaders)) for each in verdicts.values()}
    if len(kinds) > 1:
        outcomes = [
            _outcome(verdict.steady, where) or f"{where}, no answer"
            for number, verdict in verdicts.items()
            for where in [f"with {words[number]}"]
        ]
        change = f"The answer changes with the threads: {'; '.join(outcomes)}."
    else:
        change = f"The answer is the same with {text.join_words([*words.values()])}."
    return " ".join([change, *(f"With {words[number]}: {each.sentence}" for number, each in verdicts.items())])


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return [value.estimate, *(value.bounds() or (None, None))]
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def verdict(records: Records) -> OwnVerdict:
    """Compute the verdict from the records of one function."""
    times, memories = _all_evidence(records, Time), _all_evidence(records, Memory)
    # of processes that timed steady state; if there is none yet, of the cold processes
    timed = [cell if cell.processes else replace(cell, processes=cell.cold) for cell in times]
    warm = contest(timed[0], steady) if times else Contest(base=_base(records))
    busy = busy_sentence(records)
    if busy and len(warm.values) < 2:  # an answer would need more processes that were not disturbed
        warm = Contest("cannot tell", base=warm.base)
    first = contest(times[0].start, first_run, once=bool(times[0].cold)) if times else Contest()
    cached = contest(times[0], first_run) if times and times[0].cold else Contest()
    memory = contest(memories[0], bytes_held) if memories else Contest()
    if len({record.counted for record in records_of(records, Memory)}) > 1:
        memory = Contest(values=memory.values)  # bytes of NumPy's buffers and bytes of malloc cannot be compared
    even = _break_even(timed[0], warm, first) if times else None
    rows = {mode: row for record in records_of(records, Parity) for mode, row in record.modes.items()}
    refused = {mode: f"{row.status}: {row.reason}" for mode, row in rows.items() if row.status != "ok"}
    ratios = {mode: ratio_of(timed[0], mode, timed[0].base, steady) for mode in timed[0].static_modes} if times else {}
    of_base = {mode: ratio for mode, ratio in ratios.items() if ratio is not None}
    start = times[0].start if times else None
    compiles = {mode: max(r.compiles for r in start.of(mode)) for mode in first.values} if start else {}
    stream = start is not None and any(r.stream for process in start.processes for r in process.values())
    more = more_processes(times[0], records) if times else ""
    advice = _advice(warm, first, even, of_base.values(), more)
    idle = [
        mode for record in records_of(records, Compilations) for mode, row in record.modes.items() if row.share == 0
    ]
    waiting = _waiting(records)
    wrong = _wrong(records, [mode for mode, row in rows.items() if row.status == "disagree"])
    left = {mode: reason for mode, reason in refused.items() if mode not in wrong}
    warnings = [f"{mode[0].upper()}{mode[1:]} disagrees{refused[mode].removeprefix('disagree')}." for mode in wrong]
    seen = glimpse_modes(records, [*rows])
    early = glimpse_sentence(seen, _base(records))
    if warm.leaders:
        alone = (
            f"of the times, only that of {warm.leaders[0]} counts" if wrong else f"only {warm.leaders[0]} was measured"
        )
    else:
        alone = early or ("no mode was measured that agrees" if wrong else "nothing was measured")
    sentence = _sentence(advice, warm, first, memory, left, idle, waiting, early, alone, stream=stream)
    sentence = " ".join(filter(None, [busy, *warnings, sentence]))
    disagree = any(row.status == "disagree" for row in rows.values())
    answered = warm.outcome != "cannot tell" or (bool(advice) and not advice.startswith(CANNOT_TELL))
    return OwnVerdict(
        sentence, warm, first, cached, memory, even, of_base, compiles, refused, disagree, answered, wrong, seen
    )


def _wrong(records: Records, modes: Sequence[str]) -> dict[str, tuple[float, Interval | None]]:
    """Return the steady seconds, and their ratio to the base, of modes that disagree but were timed nevertheless."""
    times = _all_evidence(records, Time, wrong=True) if modes else []
    means = times[0].means(steady) if times else {}
    return {mode: (means[mode], ratio_of(times[0], mode, times[0].base, steady)) for mode in modes if mode in means}


def _all_evidence(records: Records, kind: type[OfModes], *, wrong: bool = False) -> list[Evidence]:
    """Return the evidence of all engines joined into one, in a list; an empty list if there is none."""
    cells_of_all = cells(records, kind, wrong=wrong)
    return [join_evidence(cells_of_all)] if cells_of_all else []


def _base(records: Records) -> str:
    return next((record.base for kind in (Parity, Glimpse) for record in records_of(records, kind)), DYNAMIC)


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


def _break_even(cell: Evidence, warm: Contest, first: Contest) -> BreakEven | None:
    """Return after how many calls the mode that is fastest once warm has cost less than the fastest to start."""
    if warm.outcome in ("alone", "not measured") or not (warm.leaders and first.leaders):
        return None
    fast, early = warm.leaders[0], first.leaders[0]
    if early == DYNAMIC and fast != DYNAMIC:  # with a framework, the user's starting point is its eager mode
        early = warm.base
    if not {fast, early} <= set(first.values):
        return None  # its first run was ended at a limit
    if fast == early and warm.outcome == "wins":
        return BreakEven("at once", 1.0)
    if early in warm.leaders:
        return BreakEven("cannot tell")
    # warm.ratios are early / fast, and the rule asks for fast / early
    return break_even(course(cell, fast), course(cell, early), warm.ratios[early].inverse)


def _sentence(
    advice: str,
    warm: Contest,
    first: Contest,
    memory: Contest,
    refused: Mapping[str, str],
    idle: Sequence[str],
    waiting: Sequence[str],
    early: str,
    alone: str,
    *,
    stream: bool,
) -> str:
    """Join the parts of the verdict: advice, the winners once warm, at first and in memory, and modes not timed."""
    run = "the first pass over the inputs" if stream else "the first call"
    parts = [
        advice,
        _outcome(warm, "once warm"),
        _outcome(first, f"for {run}"),
        _outcome(memory, "in memory", less="needs {} less memory than", more="needs {} more memory than"),
    ]
    if warm.outcome in ("alone", "not measured"):
        parts = [alone]
    if early not in parts:
        parts.append(early)
    if refused:
        left = [f"{mode} ({reason.partition(':')[0]})" for mode, reason in refused.items()]
        parts.append(f"not timed: {text.join_words(left)}")
    parts += waiting
    if idle:
        parts.insert(0, f"nothing of the step ran compiled in {text.join_words(idle)}")
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)


def _waiting(records: Records) -> list[str]:
    """Return a sentence for each mode whose calls wait in every process, with their wall and processor seconds."""
    rows: dict[str, list[TimeRow]] = {}
    for record in records_of(records, Time):
        for mode, row in record.modes.items():
            if row.status == "ok" and row.blocks and row.wall is not None:
                rows.setdefault(mode, []).append(row)
    said = []
    for mode, each in rows.items():
        if min(row.waits or 0.0 for row in each) > WAITS:
            wall = median(row.wall or 0.0 for row in each)
            own = median(block for row in each for block in row.blocks)
            spent = f"{text.seconds(wall)} on the wall and {text.seconds(own)} of the processor"
            said.append(f"a call of {mode} takes {spent}: it waits, for a clock, a file, a device or another process")
    return said


def _advice(warm: Contest, first: Contest, even: BreakEven | None, of_base: Iterable[Interval], more: str = "") -> str:
    """Return the advice: `stay eager`, or `compile it with static-exact if it runs more than 213 times [200, 240]`.

    `more` is that on several threads an interval holds 1, which is no answer.
    """
    base = warm.base
    if warm.outcome in ("alone", "not measured") or base not in warm.values:
        return ""
    if base not in warm.leaders and warm.leaders[0] == DYNAMIC:
        return f"use {DYNAMIC}, which compiles nothing"
    written = next((mode for mode in warm.values if mode.endswith(WRITTEN)), None)
    if base not in warm.leaders:
        started = first.leaders[:1] in ((base,), (DYNAMIC,))
        how = "leave it as it is written" if warm.leaders[0] == written else f"compile it with {warm.leaders[0]}"
        return f"{how}{_break_even_text(even) if started else ''}"
    if warm.outcome == "wins":
        return f"leave out what the file compiles, and stay {base}" if written else f"stay {base}"
    if warm.processes < LEAST:
        return ""  # `_without_interval` gives the ratio that was seen
    if more:
        return more
    if all(ratio.bounded and ratio.low >= 1 / (1 + SMALLEST_EFFECT) for ratio in of_base):
        return f"stay {base}: no mode is more than {SMALLEST_EFFECT:.0%} faster"
    return f"{CANNOT_TELL} whether a mode is more than {SMALLEST_EFFECT:.0%} faster than {base}"


def _outcome(contest: Contest, where: str, less: str = "is {} faster than", more: str = "") -> str:
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
    leader, ratios = contest.leaders[0], contest.ratios
    other = _beside(contest, list(ratios))
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


def _break_even_text(even: BreakEven | None) -> str:
    """Return ` if it runs more than N times` with the interval; "" if the number of runs is not known."""
    if even is None or even.runs is None or even.verdict != "after":
        return ""
    low, high = (ceil(end) if end and isfinite(end) else None for end in (even.low, even.high))
    spread = f" {text.interval(low, high)}" if low and high and low < high else ""
    return f" if it runs more than {text.count_noun(ceil(even.runs), 'time')}{spread}"


# What a process told that came to no answer --------------------------------------------------------------------------


@dataclass(frozen=True)
class GlimpsedMode:
    """A mode of a process that did not finish, whose results were not compared.

    `first` is the seconds of its first calls that ended, `ended` of `calls` in number; `call` is the seconds of a call
    after them, None if none was timed.
    """

    first: float
    ended: int
    calls: int
    call: float | None


def glimpse_modes(records: Records, compared: Sequence[str]) -> dict[str, GlimpsedMode]:
    """Return the modes that have a `Glimpse` record and are not among `compared`; the last glimpse counts."""
    rows = {
        mode: row
        for glimpse in records_of(records, Glimpse)
        for mode, row in glimpse.modes.items()
        if mode not in compared
    }
    return {mode: GlimpsedMode(fsum(row.first), len(row.first), row.calls, row.call) for mode, row in rows.items()}


def glimpse_sentence(modes: Mapping[str, GlimpsedMode], base: str) -> str:
    """Return a sentence on seconds of first calls and ratios to the base, before any comparison; "" if empty."""
    if not modes:
        return ""
    took = [f"{_calls(each)} of {mode} took {text.seconds(each.first)}" for mode, each in modes.items()]
    of_base = [
        f"a call of {mode} {ratio} that of {base}" for mode in modes if (ratio := glimpse_ratio(modes, mode, base))
    ]
    then = f"; then {text.join_words(of_base)} in one process, with no interval" if of_base else ""
    right = [mode for mode in modes if mode != base]
    unknown = f"; whether {text.join_words(right)} gives what {base} gives is not known" if right else ""
    return f"before anything was compared, {text.join_words(took)}{then}{unknown}"


def glimpse_ratio(modes: Mapping[str, GlimpsedMode], mode: str, base: str) -> str:
    """Return the seconds of a call ÷ those of the base, as `0.959×`; "" if one of them was not timed."""
    top, bottom = (modes[name].call if name in modes else None for name in (mode, base))
    return text.ratio(top / bottom) if mode != base and top and bottom else ""


def _calls(each: GlimpsedMode) -> str:
    if each.calls == 1:
        return "the first call"
    return (
        f"the {each.calls:,} first calls" if each.ended == each.calls else f"{each.ended} of {each.calls:,} first calls"
    )


# The three things people say about the two engines, as claims about one function: what a report of it judges ---------


ZONE = f"{1 + SMALLEST_EFFECT:.2f}"


def _contest(kind: type[OfModes], read: Read, name: str, side: ClaimSide) -> Callable[[Records], Finding]:
    """Make the rule of the claim that static ÷ dynamic lies on `side` of 1, with the static mode that costs least."""

    def find(records: Records) -> Finding:
        measured = sorted(cells(records, kind), key=lambda cell: cell.base != DYNAMIC)  # our engines before a framework
        if not measured:
            return not_measured(kind_of(kind))
        cell, left = measured[0].start if read is first_run else measured[0], exclusion_sentences(records, kind)
        best = cell.least(read)
        if best is None or not cell.of(cell.base):
            return Finding("inconclusive", ("only one engine was measured", *left))
        ratios = {mode: ratio_of(cell, mode, cell.base, read) for mode in cell.static_modes}
        costs, interval = f"{_cost(cell, best, read)}, {_cost(cell, cell.base, read)}", ratios[best]
        if interval is None:
            return Finding("inconclusive", ("too few numbers for an interval", costs, *left))
        regimes = tuple(
            Regime(mode, beyond(ratio, side), ratio.estimate if ratio else None, ratio and _spread(ratio))
            for mode, ratio in ratios.items()
        )
        effect = Effect(f"{name}, static ÷ dynamic", interval.estimate, "ratio")
        return Finding(beyond(interval, side), (costs, *left), effect, _spread(interval), regimes, side)

    return find


def ratio_of(cell: Evidence, top: str, bottom: str, read: Read) -> Interval | None:
    """Return `top / bottom`, paired if a process has both modes; for bytes, an exact ratio without width."""
    if read is not bytes_held:
        return cell.ratio(top, bottom, read) or cell.unpaired_ratio(top, bottom, read)
    over, under = cell.mean(top, read), cell.mean(bottom, read)
    return Interval(over / under, over / under, over / under) if over and under else None


def _cost(cell: Evidence, mode: str, read: Read) -> str:
    """Return a mode with its mean cost, as `static-exact 15.4 µs`."""
    mean = cell.mean(mode, read) or 0.0
    return f"{mode} {text.size(mean) if read is bytes_held else text.seconds(mean)}"


def _spread(interval: Interval) -> Interval | None:
    return interval if interval.bounded and interval.low < interval.high else None


def _rule(side: ClaimSide) -> str:
    zone, other = (ZONE, "below") if side == "above" else (f"1/{ZONE}", "above")
    return (
        f"Supported if the 95% interval of static ÷ dynamic lies {side} {zone}, refuted if {other} that, inconclusive "
        "otherwise or where only one engine was measured. The static engine is judged by its mode that costs least. "
        "Bytes are counted, not sampled: they have no interval."
    )


OWN: Mapping[str, Claim] = {
    claim.id: claim
    for claim in (
        Claim(
            id="F1",
            title="Once warm, static is faster for this function",
            statement="A graph built once runs this function faster than one recorded on every call.",
            opposite="Kernels are nearly all of its time, or its inputs change too much for a fixed graph.",
            measured="Seconds a call takes in steady state, static ÷ dynamic, in paired blocks.",
            rule=_rule("below"),
            find=_contest(Time, steady, "seconds once warm", "below"),
            reads=(Time, Parity),
        ),
        Claim(
            id="F2",
            title="For one run, dynamic is faster for this function",
            statement="Building the graph costs more than it saves when the function runs once over its inputs.",
            opposite="Tracing and compiling are cheap enough, or inputs alike enough, to pay back within one run.",
            measured="Seconds from nothing to the last of the inputs, build and compile included, static ÷ dynamic.",
            rule=_rule("above"),
            find=_contest(Time, first_run, "seconds for one run from nothing", "above"),
            reads=(Time, Parity),
        ),
        Claim(
            id="F3",
            title="Dynamic holds less memory for this function",
            statement="The static engine holds more bytes for this function: its structure, its plan, every shape.",
            opposite="A plan shares buffers between values, which the tape keeps until backward.",
            measured="The peak of a steady call above the baseline, with structure, plan and caches, static ÷ dynamic.",
            rule=_rule("above"),
            find=_contest(Memory, bytes_held, "bytes held", "above"),
            reads=(Memory, Parity),
        ),
    )
}
"""The three claims about one function, by id."""


def judge(records: Records) -> list[Verdict]:
    """Judge each claim in `OWN` by the records of one function."""
    return [claim.judge(records) for claim in OWN.values()]
