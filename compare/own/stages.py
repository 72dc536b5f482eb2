"""What follows once a function was looked at: the jobs in their order, what drops out, and one run of it all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from compare.instruments.time.measure import COLD
from compare.instruments.watch import ARMS as LEDGERS
from compare.own.question import REPEATS, Question
from compare.own.verdict import verdict
from compare.records import cells
from compare.records.breakdowns import Ledger, SourceLines
from compare.records.cells import Compilations, Memory, MemoryArm, Parity, Time
from compare.records.job import Job
from compare.records.own import FunctionLook
from compare.records.record import Arm, Failure, OfArms, Record, Records, of
from compare.run.progress import Reporter
from compare.words import text

Execute = Callable[[Job], list[Record]]
"""Runs a job, and gives the records that it leaves."""
TOGETHER: tuple[type[OfArms], ...] = (Parity, Compilations, Memory, Ledger, SourceLines)
"""Kinds that become one record of a run."""


def plan(question: Question, answers: Records) -> list[Job]:
    """The jobs of a comparison in their order, as far as answers say: first looks, times, and what follows these."""
    right, source = admitted(question, answers), source_of(answers)
    later = (
        [*planned(question, right, source), *_further(question, source, answers, right)] if question.processes else []
    )
    return [*question.first_jobs(), *later]


def source_of(answers: Records) -> str:
    """Where other workers find function and calls, if the first has put them there."""
    return next((look.source for look in of(answers, FunctionLook) if look.source), "")


def planned(question: Question, arms: Sequence[str], source: str = "") -> list[Job]:
    """The times of these arms, process after process."""
    processes = _processes(question, source)
    return [question.time_job(group, process, source) for process in processes for group in question.groups(arms)]


def _processes(question: Question, source: str) -> list[int]:
    repeats = question.processes or (REPEATS if question.adapter.is_reference else 0)
    return [*([COLD] if source and question.starts_cold else []), *range(COLD + 1, COLD + 1 + repeats)]


def timed(
    question: Question, source: str, first: Records, execute: Execute, reporter: Reporter, expected: int = 0
) -> list[Record]:
    """What follows the records of the first look: times of each process, then memory and the lines of the step.

    An arm that was refused, that reached its limit, or that cost a process its life is not asked again. None is where
    the base is not right itself. What is known is told after each process. The reporter expects some jobs already.
    """
    right, answers, lost = admitted(question, first), list[Record](), set[str]()
    for words in _first_calls(question, first):
        reporter.notice(words)
    processes, jobs = _processes(question, source), planned(question, right, source)
    further = _further(question, source, first, right)
    reporter.pace.expect([*jobs[expected:], *further])
    for _ in range(len(jobs), expected):
        reporter.skip()
    ran = 0
    for process in processes:
        for arms in question.groups(right):
            answer = execute(question.time_job(arms, process, source))
            answers += answer
            lost |= _lost(answer, arms)
            right = [arm for arm in admitted(question, [*first, *answers]) if not lost & {arm, question.base}]
            ran += 1
        for words in _so_far(question, [*first, *answers], process - COLD, question.processes):
            reporter.notice(words)
    for _ in jobs[ran:]:
        reporter.skip()
    return [*answers, *(record for job in further for record in execute(job))]


def admitted(question: Question, answers: Records) -> list[str]:
    """The arms that the gate lets through, and those whose process has told nothing of them."""
    compared = [*of(answers, Parity), *of(answers, Time)]
    gate = cells.admitted(compared, question.mode(question.base), wrong=not question.adapter.is_reference)
    return [arm for arm in question.arms if gate.arms and question.mode(arm) not in {*gate.refused, *gate.ended}]


def _lost(answer: Records, arms: Sequence[str]) -> set[str]:
    """Of a process that was lost, the arm that it names, or the last."""
    failures = of(answer, Failure) if not of(answer, Time) else []
    named = {arm for arm in arms if any(f" in {arm}" in failure.error for failure in failures)}
    return named or set((arms[1:][-1:] or arms) if failures else ())


def _further(question: Question, source: str, first: Records, right: Sequence[str]) -> list[Job]:
    """Memory of each arm, and what takes a step apart; nothing where the first processes have found that as well.

    An arm whose memory no counter sees has none. With `apart` these are also bytes over time, the ladder and the parts
    of time; the ladder also `beside` a framework, whose compiler does at once what rungs tell apart. The last two
    compare the base with the first mode that compiles, so that neither is asked for where that was refused; parts are
    those of a step with a gradient.
    """
    if not question.adapter.is_reference or not right:
        return []
    arms = tuple(right)

    def job(kind: str, which: tuple[str, ...] = arms, process: int | None = None) -> Job:
        return question.job_of(kind, which, process, source)

    both = set(question.adapter.arms[:2]) <= set(right)
    climbs, taken_apart = both and (question.apart or question.beside), both and question.apart
    gradient = any(look.settings.get("gradient") for look in of(first, FunctionLook))
    ledgers = [job("ledger", (arm,)) for arm in arms if question.apart and arm in LEDGERS]
    clocked = [*(["ladder", "threads"] if climbs else []), *(["parts"] if taken_apart and gradient else [])]
    memories = [job("memory", (arm,)) for arm in arms if not question.adapter.mode(arm).uncounted]
    return [job("lines"), *ledgers, *(job(kind, process=0) for kind in clocked), *memories]


def _first_calls(question: Question, first: Records) -> Iterator[str]:
    """`first pass over the calls, with nothing compiled before: compile 32 s, eager 21 ms`, where that is known."""
    if question.adapter.is_reference or not question.processes:
        return
    took = verdict(list(merged(first))).first.values
    if len(took) > 1:
        each = ", ".join(f"{mode} {text.seconds(seconds)}" for mode, seconds in took.items())
        yield f"first pass over the calls, with nothing compiled before: {each}"


def _so_far(question: Question, answers: Records, done: int, processes: int) -> Iterator[str]:
    """What is known after some of the processes: `after 1 of 5 processes: a call of compile takes 0.84× eager's`."""
    if not 0 < done < processes or question.adapter.is_reference:
        return
    so_far = verdict(list(merged(answers)))
    for mode, ratio in so_far.of_base.items():
        bounds = f" {text.interval(ratio.low, ratio.high)}" if ratio.bounded else ""
        yield (
            f"after {done} of {processes} processes: a call of {mode} takes "
            f"{text.ratio(ratio.estimate)}{bounds} the time of {so_far.steady.base}"
        )


# One run of what several processes left -----------------------------------------------------------------------------


def merged(records: Records) -> Iterator[Record]:
    """The records, those of a kind as one but for times. What a process refused stands, else what the first found.

    A mode that was ended at its limit and came through later, with compiled code in its cache, came through.
    """
    together = {kind: replace(some[0], arms=cells.together(some)) for kind in TOGETHER if (some := of(records, kind))}
    gate = together.get(Parity)
    rows = {} if gate is None else {mode: row for mode, row in gate.arms.items() if row.status != "ok"}
    bad = {mode: Arm(row.status, row.reason) for mode, row in rows.items()}
    for told in records:
        record = together.pop(type(told), None) if isinstance(told, OfArms) and type(told) in TOGETHER else told
        if isinstance(record, Parity):
            record.agree = all(row.status == "unsupported" for row in bad.values())
        elif isinstance(record, Memory):
            record.add({mode: MemoryArm(row.status, row.reason) for mode, row in bad.items()})
        elif isinstance(record, Time):  # which is a worker's own, and stays as it is
            others = {mode: row for mode, row in bad.items() if mode not in record.arms}
            record = replace(record, arms={**record.arms, **others})
        if record is not None and not isinstance(record, FunctionLook):
            yield record
