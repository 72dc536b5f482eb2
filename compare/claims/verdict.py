"""The verdict on a user's function from its records: which mode costs least once warm, for one run, and in memory.

Read `OwnVerdict` and `verdict` first. The parts after it give advice, then judge modes that were only glimpsed in a
process that did not finish, and last state three claims about one function (`OWN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from math import ceil, fsum, isfinite
from statistics import median
from typing import Any

from compare import text
from compare.claims.base import (
    NOT_MEASURED,
    SMALLEST_EFFECT,
    Claim,
    Effect,
    Finding,
    Label,
    Regime,
    Verdict,
    beyond,
    not_measured,
)
from compare.claims.base import Side as ClaimSide
from compare.claims.c5_memory import bytes_held
from compare.claims.contests import CLEAR, Contest, contest, outcome_text, ratio_of
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
from compare.claims.threads import (
    CANNOT_TELL,
    at_threads,
    busy_sentence,
    disturbance_sentence,
    more_processes,
    threads_asked,
)
from compare.records.cells import Compilations, Glimpse, Memory, Parity, Time, TimeRow
from compare.records.record import DYNAMIC, WRITTEN, OfModes, Record, Records, kind_of, records_of
from compare.stats import LEAST, Interval

WAITS = 0.1
"""The share of its wall seconds from which on a step is said to wait."""


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
            sentence=" ".join(_of_threads(verdicts)),
            disagree=any(each.disagree for each in verdicts.values()),
            answered=all(each.answered for each in verdicts.values()),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer, and on several numbers of threads whether it changes before the answer on each."""
        verdicts = {number: measured.verdict for number, measured in self.by_threads.items()}
        return _of_threads(verdicts) if len(verdicts) > 1 else (self.verdict.sentence,)


def _of_threads(verdicts: Mapping[int, OwnVerdict]) -> tuple[str, ...]:
    """Return whether the answer changes with the number of threads, and the answer on each."""
    words = {number: text.count_noun(number, "thread") for number in verdicts}
    kinds = {(each.steady.outcome, frozenset(each.steady.leaders)) for each in verdicts.values()}
    if len(kinds) > 1:
        outcomes = [
            outcome_text(verdict.steady, where) or f"{where}, no answer"
            for number, verdict in verdicts.items()
            for where in [f"with {words[number]}"]
        ]
        change = f"The answer changes with the threads: {'; '.join(outcomes)}."
    else:
        change = f"The answer is the same with {text.join_words([*words.values()])}."
    return change, *(f"With {words[number]}: {each.sentence}" for number, each in verdicts.items())


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
    return _Judgement(records).verdict()


class _Judgement:
    """What the records of one function say: the costs of its modes, the modes that do not count, and the words."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.times = _evidence_of_all(records, Time)
        self.timed = self.times
        if self.times is not None and not self.times.processes:  # no steady state yet: that of the cold processes
            self.timed = replace(self.times, processes=self.times.cold)
        self.base = next((r.base for kind in (Parity, Glimpse) for r in records_of(records, kind)), DYNAMIC)
        self.rows = {mode: row for record in records_of(records, Parity) for mode, row in record.modes.items()}
        self.disagreeing = [mode for mode, row in self.rows.items() if row.status == "disagree"]
        self.refused = {mode: f"{row.status}: {row.reason}" for mode, row in self.rows.items() if row.status != "ok"}
        self.wrong = _wrong(records, self.disagreeing)
        self.glimpsed = glimpse_modes(records, [*self.rows])
        self.warm, self.first, self.cached, self.memory = self._contests()
        self.busy, self.disturbance = busy_sentence(records), disturbance_sentence(records)
        is_disturbed = self.busy or self.disturbance
        if is_disturbed and len(self.warm.values) < 2:  # an answer would need more processes that were not disturbed
            self.warm = Contest("cannot tell", base=self.warm.base)
        self.even = _break_even(self.timed, self.warm, self.first) if self.timed else None
        self.of_base = self._ratios_to_base()
        more = more_processes(self.times, records) if self.times else ""
        self.advice = _advice(self.warm, self.first, self.even, self.of_base.values(), more)

    def verdict(self) -> OwnVerdict:
        """Return the verdict, with its sentence."""
        start = self.times.start if self.times else None
        can_tell = self.warm.outcome != CANNOT_TELL
        return OwnVerdict(
            sentence=self._sentence(),
            steady=self.warm,
            first=self.first,
            cached=self.cached,
            memory=self.memory,
            break_even=self.even,
            of_base=self.of_base,
            compiles={mode: max(r.compiles for r in start.of(mode)) for mode in self.first.values} if start else {},
            refused=self.refused,
            disagree=bool(self.disagreeing),
            answered=can_tell or (bool(self.advice) and not self.advice.startswith(CANNOT_TELL)),
            wrong=self.wrong,
            glimpsed=self.glimpsed,
        )

    def _contests(self) -> tuple[Contest, Contest, Contest, Contest]:
        """Compare the modes once warm, for one run from nothing, for one that finds compiled code, and in memory."""
        held = _evidence_of_all(self.records, Memory)
        memory = contest(held, bytes_held) if held else Contest()
        if len({record.counted for record in records_of(self.records, Memory)}) > 1:
            memory = Contest(values=memory.values)  # bytes of NumPy's buffers and bytes of malloc cannot be compared
        if self.times is None or self.timed is None:
            return Contest(base=self.base), Contest(), Contest(), memory
        cached = contest(self.times, first_run) if self.times.cold else Contest()
        first = contest(self.times.start, first_run, once=bool(self.times.cold))
        return contest(self.timed, steady), first, cached, memory

    def _ratios_to_base(self) -> dict[str, Interval]:
        """Return the steady time of each compiled mode ÷ that of the base, where both were timed."""
        if self.timed is None:
            return {}
        ratios = {mode: ratio_of(self.timed, mode, self.timed.base, steady) for mode in self.timed.static_modes}
        return {mode: ratio for mode, ratio in ratios.items() if ratio is not None}

    def _sentence(self) -> str:
        """Say who is wrong, what to do, who wins once warm, at first and in memory, and which modes were not timed."""
        parts = [self.advice, *self._outcomes()]
        early = glimpse_sentence(self.glimpsed, self.base)
        if self.warm.outcome in ("alone", "not measured"):
            parts = [self._why_alone(early)]
        if early not in parts:
            parts.append(early)
        left = [f"{mode} ({why.partition(':')[0]})" for mode, why in self.refused.items() if mode not in self.wrong]
        if left:
            parts.append(f"not timed: {text.join_words(left)}")
        parts += _waiting(self.records)
        reports = records_of(self.records, Compilations)
        idle = [mode for report in reports for mode, row in report.modes.items() if row.share == 0]
        if idle:
            parts.insert(0, f"nothing of the step ran compiled in {text.join_words(idle)}")
        warnings = [f"{mode} disagrees{self.refused[mode].removeprefix('disagree')}" for mode in self.wrong]
        said = [f"{text.begin_sentence(part)}." for part in (*warnings, *parts) if part]
        return " ".join(filter(None, [self.busy, *said, self.disturbance]))

    def _outcomes(self) -> list[str]:
        """Return a sentence for each contest; "" for one without an outcome."""
        start = self.times.start.processes if self.times else ()
        is_stream = any(row.stream for process in start for row in process.values())
        run = "the first pass over the inputs" if is_stream else "the first call"
        return [
            outcome_text(self.warm, "once warm"),
            outcome_text(self.first, f"for {run}"),
            outcome_text(self.memory, "in memory", less="needs {} less memory than", more="needs {} more memory than"),
        ]

    def _why_alone(self, early: str) -> str:
        """Say why no modes are compared; `early` is what was glimpsed before any comparison."""
        if self.warm.leaders:
            leader = self.warm.leaders[0]
            return f"of the times, only that of {leader} counts" if self.wrong else f"only {leader} was measured"
        return early or ("no mode was measured that agrees" if self.wrong else "nothing was measured")


def _wrong(records: Records, modes: Sequence[str]) -> dict[str, tuple[float, Interval | None]]:
    """Return the steady seconds, and their ratio to the base, of modes that disagree but were timed nevertheless."""
    times = _evidence_of_all(records, Time, wrong=True) if modes else None
    if times is None:
        return {}
    means = times.means(steady)
    return {mode: (means[mode], ratio_of(times, mode, times.base, steady)) for mode in modes if mode in means}


def _evidence_of_all(records: Records, kind: type[OfModes], *, wrong: bool = False) -> Evidence | None:
    """Return the evidence of all engines joined into one; None if there is none."""
    cells_of_all = cells(records, kind, wrong=wrong)
    return join_evidence(cells_of_all) if cells_of_all else None


def _break_even(cell: Evidence, warm: Contest, first: Contest) -> BreakEven | None:
    """Return after how many calls the mode that is fastest once warm has cost less than the fastest to start."""
    if warm.outcome in ("alone", "not measured") or not (warm.leaders and first.leaders):
        return None
    fast, early = warm.leaders[0], first.leaders[0]
    if early == DYNAMIC and fast != DYNAMIC:  # with a framework, the user's starting point is its eager mode
        early = warm.base
    if not {fast, early} <= first.values.keys() & warm.values.keys():
        return None  # its first run was ended at a limit, or no block of it was timed
    if fast == early and warm.outcome == "wins":
        return BreakEven("at once", 1.0)
    if early in warm.leaders:
        return BreakEven("cannot tell")
    # warm.ratios are early / fast, and the rule asks for fast / early
    return break_even(course(cell, fast), course(cell, early), warm.ratios[early].inverse)


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
ONCE = f"a first run from nothing was measured once: a factor of more than {CLEAR:g} decides"


def _finder(kind: type[OfModes], read: Read, name: str, side: ClaimSide) -> Callable[[Records], Finding]:
    """Make the rule of the claim that static ÷ dynamic lies on `side` of 1, with the static mode that costs least."""

    def find(records: Records) -> Finding:
        measured = sorted(cells(records, kind), key=lambda cell: cell.base != DYNAMIC)  # our engines before a framework
        if not measured:
            return not_measured(kind_of(kind))
        once = read is first_run and bool(measured[0].cold)
        cell, left = measured[0].start if read is first_run else measured[0], exclusion_sentences(records, kind)
        best = cell.least(read)
        if best is None or not cell.of(cell.base):
            return Finding(NOT_MEASURED, ("only one engine was measured", *left))
        ratios = {mode: ratio_of(cell, mode, cell.base, read) for mode in cell.static_modes}
        costs, interval = f"{_cost(cell, best, read)}, {_cost(cell, cell.base, read)}", ratios[best]
        if interval is None:
            return Finding("inconclusive", ("too few numbers for an interval", costs, *left))
        regimes = tuple(
            Regime(mode, _label(ratio, side, once=once), ratio.estimate if ratio else None, ratio and _spread(ratio))
            for mode, ratio in ratios.items()
        )
        effect = Effect(f"{name}, static ÷ dynamic", interval.estimate, "ratio")
        label = _label(interval, side, once=once)
        why = (costs, *((ONCE,) if once and not interval.bounded else ()), *left)
        return Finding(label, why, effect, _spread(interval), regimes, side)

    return find


def _label(ratio: Interval | None, side: ClaimSide, *, once: bool) -> Label:
    """Return the label of the claim that a ratio lies on a side of 1; measured only `once`, it is open near 1."""
    if ratio is None or ratio.bounded or not once or 1 / CLEAR <= ratio.estimate <= CLEAR:
        return beyond(ratio, side)
    return "supported" if (ratio.estimate > 1) == (side == "above") else "refuted"


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
        "otherwise. The static engine is judged by its mode that costs least. A first run from nothing that was "
        f"measured once has no interval; there a factor of {CLEAR:g} decides. "
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
            find=_finder(Time, steady, "seconds once warm", "below"),
            reads=(Time, Parity),
        ),
        Claim(
            id="F2",
            title="For one run, dynamic is faster for this function",
            statement="Building the graph costs more than it saves when the function runs once over its inputs.",
            opposite="Tracing and compiling are cheap enough, or inputs alike enough, to pay back within one run.",
            measured="Seconds from nothing to the last of the inputs, build and compile included, static ÷ dynamic.",
            rule=_rule("above"),
            find=_finder(Time, first_run, "seconds for one run from nothing", "above"),
            reads=(Time, Parity),
        ),
        Claim(
            id="F3",
            title="Dynamic holds less memory for this function",
            statement="The static engine holds more bytes for this function: its structure, its plan, every shape.",
            opposite="A plan shares buffers between values, which the tape keeps until backward.",
            measured="The peak of a steady call above the baseline, with structure, plan and caches, static ÷ dynamic.",
            rule=_rule("above"),
            find=_finder(Memory, bytes_held, "bytes held", "above"),
            reads=(Memory, Parity),
        ),
    )
}
"""The three claims about one function, by id."""


def judge(records: Records) -> list[Verdict]:
    """Judge each claim in `OWN` by the records of one function."""
    return [claim.judge(records) for claim in OWN.values()]
