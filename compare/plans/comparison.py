"""The plan of a comparison as data, subject × mode × instrument × process × cold or warm, and its execution.

The jobs after the first look depend on its answers. A mode that was refused, that reached its limit, or that ended its
process is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compare import engines, text
from compare.claims.verdict import verdict
from compare.engines import OWN, find_engine, of_imports
from compare.engines.graphduel.standin import FRAMEWORK
from compare.errors import InputsError
from compare.instruments.rounds import ClockName, clock_name, rotate
from compare.instruments.timing import COLD
from compare.records import cells
from compare.records.cells import Parity, Time
from compare.records.job import Budget, Job
from compare.records.own import FunctionLook, merge_records
from compare.records.record import Failure, Records, kind_of, records_of
from compare.run.environment import usual_threads
from compare.run.executors import MOST_WAITING, groups
from compare.run.runner import Runner, Wanted
from compare.stats import LEAST
from compare.subjects import origin
from compare.subjects.subject import OURS, REPEATS, Asked, Modes, Situation, Subject, defines, words_of


@dataclass(frozen=True)
class ComparisonPlan:
    """The jobs of a comparison. Fresh workers find function and calls at `source`; without one each job looks anew."""

    subject: Subject
    situation: Situation
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values, for the worker that looks at the function."""
        return {"subject": self.subject.to_dict(), "situation": asdict(self.situation)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ComparisonPlan:
        """Return the plan that `to_dict` wrote."""
        return cls(Subject.from_dict(values["subject"]), Situation(**values["situation"]))

    def within(self, **situation: Any) -> ComparisonPlan:
        """Return the plan with other values of its situation."""
        return replace(self, situation=replace(self.situation, **situation))

    @property
    def clock_name(self) -> ClockName:
        """Return the name of the clock by which times are judged."""
        return clock_name(
            self.situation.device,
            has_events=self.subject.adapter.has_events,
            threads=self.situation.threads,
        )

    def groups(self, modes: Sequence[str], *, compares: bool = False) -> list[Modes]:
        """Return the groups of modes that share a process that times, or one that `compares` modes with the base."""
        alone, threads = not self.subject.adapter.is_reference, 1 if compares else self.situation.threads
        sharing = groups(kind_of(Time), modes, alone=alone, threads=threads)
        elsewhere = all(self.subject.adapter.traits(group[-1]).python for group in sharing)
        return [(self.subject.base,), *sharing] if elsewhere and self.subject.base in modes else sharing

    @property
    def starts_cold(self) -> bool:
        """Return whether first calls are timed once before any code is on the disk, where later processes find it."""
        adapter = self.subject.adapter
        keeps = self.subject.beside or any(adapter.traits(mode).keeps for mode in self.subject.modes)
        return keeps and adapter.is_reference

    @property
    def processes(self) -> list[int]:
        """Return the numbers of the processes that time."""
        repeats = self.situation.processes or (REPEATS if self.subject.adapter.is_reference else 0)
        return [*([COLD] if self.source and self.starts_cold else []), *range(COLD + 1, COLD + 1 + repeats)]

    def first(self) -> list[Job]:
        """Return the jobs that describe the function and compare its modes; in a framework they count bytes too."""
        if not self.subject.adapter.is_reference:
            return [
                self.time(modes, COLD if self.situation.processes else None)
                for modes in self.groups(self.subject.modes, compares=True)
            ]
        look = Job(kind_of(FunctionLook), size=self.subject.function, seed=self.situation.seed, asked=self.to_dict())
        return [replace(look, title=look.label, threads=self.situation.threads)]

    def times(self, modes: Sequence[str]) -> list[Job]:
        """Return the jobs that time these modes, process by process."""
        return [self.time(group, process) for process in self.processes for group in self.turn(modes, process)]

    def widened(self, first: Records) -> ComparisonPlan:
        """Return the plan with the further modes that the first look asks for."""
        return replace(self, subject=self.subject.widened(first, self.situation.tries))

    def turn(self, modes: Sequence[str], process: int) -> list[Modes]:
        """Return the groups of modes in their order in time; if they share no process, each is first in some turn.

        Modes that the first look added have as many processes as an interval needs, and no more.
        """
        ended = self.subject.tried if process > COLD + LEAST else ()
        together = self.groups([mode for mode in modes if mode not in ended])
        return list(rotate(together, process)) if together and self.situation.threads > 1 else together

    def time(self, modes: Modes, process: int | None) -> Job:
        """Return the job that times modes in one process; COLD finds no compiled code, and None does everything.

        A job whose function lies in a bundle is like that of any workload.
        """
        job = self.job(kind_of(Time), modes, process)
        if self.subject.adapter.is_reference:
            cache = {"cache": "cold" if process == COLD else "warm"} if self.source and self.starts_cold else {}
            return replace(job, asked=cache)
        budget = Budget(rounds=15, least=5, seconds=self.situation.seconds * len(modes), block_seconds=0.03)
        return replace(job, mode=modes[-1], budget=budget, asked=self.to_dict())

    def further(self, first: Records, modes: Modes) -> list[Job]:
        """Return the jobs of memory and of a step's analysis; [] in a framework, whose first processes count already.

        A mode whose memory no counter sees has no memory job. With `apart` there are also bytes over time, the ladder
        and the parts of time; the ladder also `beside` a framework, whose compiler does at once what the rungs do one
        by one. Ladder and parts compare the base with the first mode that compiles, so they are left out where that
        was refused; parts need a step with a gradient.
        """
        if not self.subject.adapter.is_reference or not modes:
            return []
        both = set(self.subject.adapter.mode_names[:2]) <= set(modes)
        climbs, taken_apart = both and (self.situation.apart or self.subject.beside), both and self.situation.apart
        gradient = any(look.settings.get("gradient") for look in records_of(first, FunctionLook))
        ledgers = [mode for mode in modes if self.situation.apart and mode in engines.ours()]
        clocked = [*(["ladder", "threads"] if climbs else []), *(["parts"] if taken_apart and gradient else [])]
        memories = [mode for mode in modes if not self.subject.adapter.traits(mode).uncounted]

        def each(kind: str, which: Sequence[str]) -> list[Job]:
            return [self.job(kind, group) for group in groups(kind, which)]

        rungs = [self.job(kind, modes, process=0) for kind in clocked]
        return [self.job("lines", modes), *each("ledger", ledgers), *rungs, *each("memory", memories)]

    def job(self, kind: str, modes: Modes, process: int | None = None) -> Job:
        """Return a job of that kind; if few seconds are asked for, its blocks are short, so that they suffice."""
        budget = Budget(
            seconds=self.situation.seconds, block_seconds=min(Budget.block_seconds, self.situation.seconds / 20)
        )
        title = _title(self.subject, kind, modes, process)
        seed = self.situation.seed
        threads = self.situation.threads if kind == kind_of(Time) else 1  # the other clocks are those of a thread
        place = {"source": self.source, "seed": seed, "threads": threads}
        return self.subject.job(kind, process, modes, **place, budget=budget, title=title)

    def whole(self, answers: Records) -> list[Job]:
        """Return all jobs in order, as far as the answers determine them."""
        right, with_source = admitted_modes(self.subject, answers), replace(self, source=source_of(answers))
        later = [*with_source.times(right), *with_source.further(answers, tuple(right))]
        return [*self.first(), *(later if self.situation.processes else [])]


def plans_of(
    engines: Sequence[str], function: str, inputs: str = "", modes: Asked = None,
    *, gradient: bool | None = None, allow_effects: bool = False, **situation: Any,
) -> list[ComparisonPlan]:  # fmt: skip
    """Return the plan for a file in each engine, first the one whose program it is: others start from its numbers.

    Raises InputsError for modes that none has, and where an engine cannot run a file of that framework.
    """
    imported = of_imports(origin.source(function))
    ordered = sorted(dict.fromkeys(engines), key=lambda name: name != imported)
    beside = len(ordered) > 1
    for name in ordered if beside else ():
        _check_engine(name, engines, imported, function)
    written = None if modes is None else words_of(modes)
    chosen = {name: _modes_among(name, written) if beside else written for name in ordered}
    unknown = [mode for mode in written or () if not any(mode in names for names in chosen.values() if names)]
    if unknown:
        raise InputsError(f"none of {', '.join(ordered)} has a mode {unknown[0]!r}")
    plans = []
    for name in ordered:
        stands_in = name == OWN and imported == FRAMEWORK
        asked = chosen[name] if written is not None else OURS if stands_in and beside else None
        subject = Subject.of_file(function, inputs, name, asked or None, gradient=gradient)
        subject = replace(subject, allow_effects=allow_effects, beside=beside, stands_in=stands_in)
        plans.append(ComparisonPlan(subject, Situation(**situation)))
    return plans


def _check_engine(name: str, engines: Sequence[str], imported: str | None, function: str) -> None:
    if name != (imported or OWN) and not (name == OWN and imported == FRAMEWORK):
        raise InputsError(
            f"--engines {','.join(engines)}: {function.rpartition(':')[0]} is written for "
            f"{find_engine(imported or OWN).title}, which {find_engine(name).title} cannot run; our engine runs files "
            f"of PyTorch's beside their own: --engines {FRAMEWORK},{OWN}"
        )


def _modes_among(name: str, modes: Sequence[str] | None) -> list[str] | None:
    """Return the modes that an engine has, by any of their names or as words; None for None."""
    if modes is None:
        return None
    engine = find_engine(name)
    return [mode for mode in modes if defines(engine, mode)]


def _title(subject: Subject, kind: str, modes: Modes, process: int | None) -> str:
    """Return the user's name of a job: `times of compile, process 2`, `memory of compile`."""
    if kind != kind_of(Time):
        return f"{kind} of {text.join_words([subject.label(mode) for mode in modes])}"
    others = [mode for mode in modes if mode != subject.base] or [subject.base]
    labels = text.join_words(list(map(subject.label, others)))
    if process == COLD:
        return f"first calls of {labels}"
    return f"times of {labels}" + (f", process {process}" if process else "")


def source_of(answers: Records) -> str:
    """Return the source where other workers find function and calls, if the first has put them there; else ""."""
    return next((look.source for look in records_of(answers, FunctionLook) if look.source), "")


def admitted_modes(subject: Subject, answers: Records) -> list[str]:
    """Return the modes that the gate admits, and those whose process has told nothing of them."""
    compared = [*records_of(answers, Parity), *records_of(answers, Time)]
    gate = cells.admit_modes(compared, subject.label(subject.base), wrong=not subject.adapter.is_reference)
    return [mode for mode in subject.modes if gate.modes and subject.label(mode) not in {*gate.refused, *gate.ended}]


# How it goes on -------------------------------------------------------------------------------------------------------


def look(plan: ComparisonPlan, runner: Runner) -> ComparisonPlan:
    """Run the first jobs; return the plan, with the further modes that they ask for.

    If all modes that compile were ended at their limit, the base gets a process alone.
    """
    records = runner.journal.records
    runner.jobs(_stop_slow_modes(plan, runner, plan.first()))
    bases = [time for time in records_of(records, Time) if plan.subject.label(plan.subject.base) in time.modes]
    if not (plan.subject.adapter.is_reference or bases):
        _one_more(plan, runner, (plan.subject.base,))
    wider = plan.widened(records)
    added = wider.subject.modes[len(plan.subject.modes) :]
    for mode in () if plan.subject.adapter.is_reference else added:  # whose first look has compared them
        _one_more(wider, runner, (wider.subject.base, mode))
    return wider


def _one_more(plan: ComparisonPlan, runner: Runner, modes: Modes) -> None:
    job = plan.time(modes, COLD if plan.situation.processes else None)
    runner.reporter.pace.expect([job])
    runner.jobs(_stop_slow_modes(plan, runner, [job]))


def follow(plan: ComparisonPlan, runner: Runner, expected: int = 0) -> None:
    """Run the jobs after the first look: times of each process, then memory and the lines of the step.

    None runs where the base is not right itself. Results so far are told after each process. The reporter already
    expects `expected` jobs.
    """
    reporter, first = runner.reporter, list(runner.journal.records)
    for words in _first_calls(plan, first):
        reporter.notice(words)
    right = admitted_modes(plan.subject, first)
    jobs, further = plan.times(right), plan.further(first, tuple(right))
    reporter.pace.expect([*jobs[expected:], *further])
    for _ in range(len(jobs), expected):
        reporter.skip()
    runner.jobs(_stop_slow_modes(plan, runner, _times(plan, runner, len(jobs))))
    runner.pool.ahead(further)
    runner.jobs((job, {}) for job in further)


def _times(plan: ComparisonPlan, runner: Runner, expected: int) -> Iterator[Job]:
    """Yield the time jobs of the modes that are still right, process by process; skip the rest of `expected`."""
    records, lost, starting = runner.journal.records, set[str](), list[Job]()
    right, count = admitted_modes(plan.subject, records), 0
    for process in plan.processes:
        turn = plan.turn(right, process)
        first = plan.time(turn[0], process) if turn else None
        if first not in starting:
            starting = _next_jobs(plan, right, process)
            runner.pool.ahead(starting)
        for modes in turn:
            before = len(records)
            yield plan.time(modes, process)
            lost |= _lost_modes(records[before:], modes)
            right = [mode for mode in admitted_modes(plan.subject, records) if not lost & {mode, plan.subject.base}]
            count += 1
        for words in _so_far(plan, records, process - COLD):
            runner.reporter.notice(words)
    for _ in range(count, expected):
        runner.reporter.skip()


def _next_jobs(plan: ComparisonPlan, right: Sequence[str], process: int) -> list[Job]:
    """Return the time jobs of a process and of those after it whose workers start at once, one for each core."""
    jobs = list[Job]()
    for each in range(process, plan.processes[-1] + 1):
        turn = [plan.time(modes, each) for modes in plan.turn(right, each)]
        if jobs and len(jobs) + len(turn) > min(MOST_WAITING, usual_threads()):
            break
        jobs += turn
    return jobs


def _stop_slow_modes(plan: ComparisonPlan, runner: Runner, jobs: Iterable[Job]) -> Iterator[Wanted]:
    """Yield the jobs, and say after each whether a mode that was ended at its limit is tried again."""
    for job in jobs:
        before = len(runner.journal.records)
        yield job, {}
        if not all(
            row.whole for time in records_of(runner.journal.records[before:], Time) for row in time.modes.values()
        ):
            mode, limit = plan.subject.label(job.modes[-1]), plan.situation.limit
            then = "tried once more, with the code that it has left" if job.process == COLD else "not timed"
            said = f"{mode} had not come through its first calls in {limit:.0f} s (--limit): it is {then}"
            runner.reporter.notice(said)


def _lost_modes(answer: Records, modes: Sequence[str]) -> set[str]:
    """Return the mode that a lost process names, or its last one; empty if the process was not lost."""
    failures = records_of(answer, Failure) if not records_of(answer, Time) else []
    named = {mode for mode in modes if any(f" in {mode}" in failure.error for failure in failures)}
    return named or set((modes[1:][-1:] or modes) if failures else ())


def _first_calls(plan: ComparisonPlan, first: Records) -> Iterator[str]:
    """Yield `first pass over the calls, with nothing compiled before: compile 32 s, eager 21 ms`, if known."""
    if plan.subject.adapter.is_reference or not plan.situation.processes:
        return
    took = verdict(list(merge_records(first))).first.values
    if len(took) > 1:
        each = ", ".join(f"{mode} {text.seconds(seconds)}" for mode, seconds in took.items())
        yield f"first pass over the calls, with nothing compiled before: {each}"


def _so_far(plan: ComparisonPlan, answers: Records, done: int) -> Iterator[str]:
    """Yield the ratios after some of the processes: `after 1 of 5 processes: a call of compile takes 0.84× eager's`."""
    if not 0 < done < plan.situation.processes or plan.subject.adapter.is_reference:
        return
    so_far = verdict(list(merge_records(answers)))
    for mode, ratio in so_far.of_base.items():
        bounds = f" {text.interval(ratio.low, ratio.high)}" if ratio.bounded else ""
        yield (
            f"after {done} of {plan.situation.processes} processes: a call of {mode} takes "
            f"{text.ratio(ratio.estimate)}{bounds} the time of {so_far.steady.base}"
        )
