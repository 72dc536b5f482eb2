"""What a process tells before there is an answer: for who waits, and for the answer where the process comes to none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from compare.own.question import Question
from compare.records.cells import Glimpse, GlimpseArm
from compare.records.job import Job
from compare.records.record import Records, of
from compare.run.environment import environment
from compare.steps import CallTimes, FirstCall, Told
from compare.words import text


@dataclass
class Account:
    """What the process of a job has told of its arms so far."""

    question: Question
    calls: list[FirstCall] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def hear(self, told: Told) -> list[str]:
        """Note what is told; the sentences that it is worth."""
        if isinstance(told, CallTimes):
            self.seconds = dict(told.seconds)
            return list(_ratios(self.question, self.seconds))
        if not isinstance(told, FirstCall):
            return []
        self.calls.append(told)
        which = "the first call" if told.calls == 1 else f"the first of {told.calls:,} calls"
        said = f"{self.question.mode(told.mode)}: {which} took {text.seconds(told.seconds)}"
        return [said] if told.number == 1 else []

    def first(self, arm: str) -> GlimpseArm | None:
        """What an arm had come to that has begun."""
        begun = [call for call in self.calls if call.mode == arm]
        if not begun:
            return None
        ended = [call.seconds for call in begun if call.number]
        return GlimpseArm("ok", None, begun[0].calls, ended, self.seconds.get(arm))

    def has_run(self, arm: str) -> bool:
        """Whether all first calls of an arm have ended."""
        first = self.first(arm)
        return first is not None and len(first.first) == first.calls

    def glimpse(self, job: Job, label: str) -> Glimpse | None:
        """The record of it; None where no call has ended."""
        mode = self.question.mode
        rows = {mode(arm): first for arm in job.arms if (first := self.first(arm)) and first.first}
        place = {"workload": job.workload, "size": job.size, "eager": mode(self.question.base), "arm": job.arm}
        return Glimpse(**place, arms=rows, label=label, environment=environment()) if rows else None  # type: ignore[arg-type]


def _ratios(question: Question, seconds: Mapping[str, float]) -> Sequence[str]:
    base = question.base
    return [
        f"a call of {question.mode(arm)} takes {text.ratio(each / seconds[base])} the time of {question.mode(base)}: "
        "in one process, with no interval, and not compared yet"
        for arm, each in seconds.items()
        if arm != base and base in seconds
    ]


@dataclass(frozen=True)
class Glimpsed:
    """The seconds of the first calls of a mode that nothing has compared, how many of all ended, and of a call then."""

    first: float
    ended: int
    calls: int
    call: float | None


def glimpsed(records: Records, compared: Sequence[str]) -> dict[str, Glimpsed]:
    """The modes of which there is nothing but a glimpse, the last there is."""
    rows = {mode: row for glimpse in of(records, Glimpse) for mode, row in glimpse.arms.items() if mode not in compared}
    return {mode: Glimpsed(fsum(row.first), len(row.first), row.calls, row.call) for mode, row in rows.items()}


def sentence(modes: Mapping[str, Glimpsed], base: str) -> str:
    """`before anything was compared, the first call of eager took 9 ms and that of compile 8 s`; "" of no modes."""
    if not modes:
        return ""
    took = [f"{_calls(each)} of {mode} took {text.seconds(each.first)}" for mode, each in modes.items()]
    of_base = [f"a call of {mode} {ratio} that of {base}" for mode in modes if (ratio := ratio_of(modes, mode, base))]
    then = f"; then {text.listed(of_base)} in one process, with no interval" if of_base else ""
    right = [mode for mode in modes if mode != base]
    unknown = f"; whether {text.listed(right)} gives what {base} gives is not known" if right else ""
    return f"before anything was compared, {text.listed(took)}{then}{unknown}"


def ratio_of(modes: Mapping[str, Glimpsed], mode: str, base: str) -> str:
    """`0.959×` that of the base; "" where a call of either was not timed."""
    top, bottom = (modes[name].call if name in modes else None for name in (mode, base))
    return text.ratio(top / bottom) if mode != base and top and bottom else ""


def _calls(each: Glimpsed) -> str:
    if each.calls == 1:
        return "the first call"
    return (
        f"the {each.calls:,} first calls" if each.ended == each.calls else f"{each.ended} of {each.calls:,} first calls"
    )
