"""Fresh processes that answer about a user's function, and the answers that are kept so that a comparison can go on.

A worker has a limit of time; the last words of one that was ended count too. A comparison has a folder in the user's
cache, named by all that its answers depend on: the file, the subject, its situation, and versions. There is a journal
for each engine, beside the code that its processes have compiled. The folder is removed when the comparison ends, or
when nobody has resumed it for `DAYS` days.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from compare import text
from compare.engines import process, words
from compare.engines.mode import user_name
from compare.errors import (
    CompareError,
    FunctionError,
    InputsError,
    OverrunError,
    ResultsError,
    WorkerError,
    explain_user_error,
    is_users,
)
from compare.instruments.standard import TOLERANCES
from compare.instruments.timing import COLD
from compare.plans.comparison import ComparisonPlan
from compare.records import journal, results
from compare.records.cells import Call, Glimpse, GlimpseRow, Parity, ParityRow, Time, TimeRow
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.own import Bisection, FunctionFault, FunctionLook
from compare.records.record import Failure, Record, Status, error_of, kind_of, records_of
from compare.records.results import to_json, unfold
from compare.run.environment import cache_folder, code_digest, environment
from compare.run.processes import WaitingWorkers, ask
from compare.run.progress import Reporter
from compare.run.worker import failure
from compare.steps import CallTimes, FirstCall, Told
from compare.subjects.subject import LIMIT, Subject
from graphs.files import write_file

DAYS = 14
JOURNALS = f"*/{results.RESULTS}"
TRACES = "compiler_trace"
"""The folder of the traces that a framework's compiler leaves, with one for each mode."""
FREE = ("processes", "limit", "command", "folder", "numbers")
"""The fields of a situation in which a resumed comparison may differ."""

R = TypeVar("R", bound=Record)
Notice = Callable[[str], None]


# What is wrong with a user's file or function, on its way from the worker that has met it ---------------------------


def answer_or_fault(function: str, find: Callable[[], R]) -> R | FunctionFault:
    """Return a worker's finding on the function, or its fault as the answer."""
    try:
        with explain_user_error(function):
            return find()
    except CompareError as error:
        return FunctionFault(str(error), error.exit_code)


def check_answer(answer: Record, function: str) -> Any:
    """Return a worker's answer about a user's function. Raises CompareError, with its exit code, for a fault."""
    if isinstance(answer, FunctionFault):
        raise (InputsError if answer.code == InputsError.exit_code else FunctionError)(answer.error)
    if error := error_of(answer):
        raise FunctionError(f"{function}: {error}")
    return answer


def answer(kind: type[R], function: str, arguments: Mapping[str, Any], limit: float = LIMIT) -> R:
    """Return the answer of a fresh worker about a user's function.

    Raises CompareError, with its exit code, for a fault of the user's file, function or calls.
    """
    job = Job(kind_of(kind), size=function, asked=arguments)
    try:
        record = ask(job, limit)
    except WorkerError as error:
        raise FunctionError(f"{function}: {error}") from None
    reply: R = check_answer(record, function)
    return reply


# What a process tells before there is an answer ---------------------------------------------------------------------


@dataclass
class Account:
    """The messages so far of a job's process about its modes."""

    subject: Subject
    calls: list[FirstCall] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def hear(self, told: Told) -> list[str]:
        """Note a message; return the sentences that it is worth."""
        if isinstance(told, CallTimes):
            self.seconds = dict(told.seconds)
            return list(_ratios(self.subject, self.seconds))
        if not isinstance(told, FirstCall):
            return []
        self.calls.append(told)
        which = "the first call" if told.calls == 1 else f"the first of {told.calls:,} calls"
        said = f"{self.subject.label(told.mode)}: {which} took {text.seconds(told.seconds)}"
        return [said] if told.number == 1 else []

    def first(self, mode: str) -> GlimpseRow | None:
        """Return the first calls of a mode so far; None if it has not begun."""
        begun = [call for call in self.calls if call.mode == mode]
        if not begun:
            return None
        ended = [call.seconds for call in begun if call.number]
        return GlimpseRow("ok", None, begun[0].calls, ended, self.seconds.get(mode))

    def has_run(self, mode: str) -> bool:
        """Return whether all first calls of a mode have ended."""
        first = self.first(mode)
        return first is not None and len(first.first) == first.calls

    def glimpse(self, job: Job, label: str) -> Glimpse | None:
        """Return the record of the messages so far; None where no call has ended."""
        label_of = self.subject.label
        rows = {label_of(mode): first for mode in job.modes if (first := self.first(mode)) and first.first}
        place = {
            "workload": job.workload,
            "size": job.size,
            "eager": label_of(self.subject.base),
            "mode": job.mode,
        }
        return Glimpse(**place, modes=rows, label=label, environment=environment()) if rows else None  # type: ignore[arg-type]


def _ratios(subject: Subject, seconds: Mapping[str, float]) -> Sequence[str]:
    base = subject.base
    return [
        f"a call of {subject.label(mode)} takes {text.ratio(each / seconds[base])} the time of "
        f"{subject.label(base)}: in one process, with no interval, and not compared yet"
        for mode, each in seconds.items()
        if mode != base and base in seconds
    ]


# A fresh process for each job ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workers:
    """The function that an executor runs for a job: a fresh process, with compiled code in the plan's folder.

    If a first process does not end, a glimpse of its messages is kept.
    """

    plan: ComparisonPlan
    reporter: Reporter
    journal: Answers
    waiting: WaitingWorkers = field(default_factory=WaitingWorkers)

    def ahead(self, jobs: Sequence[Job]) -> None:
        """Start a worker for each of several jobs, and return when all of them wait for their turn."""
        answered = {record.label for record in self.journal.earlier}
        left = {job.title: self._equip(job) for job in jobs if job.title not in answered}
        self.waiting.start(left, self.plan.situation.limit)

    def __call__(self, job: Job, limit: float) -> Record:
        """Return the record of a worker, also where it was ended at its limit; a failure where it left none.

        Raises FunctionError where the first worker gave no answer and no compiled mode is to blame, and CompareError
        for a fault of the user's file or function.
        """
        job, account, arrived = self._equip(job), Account(self.plan.subject), list[Record]()
        worker = self.waiting.take(job.title)

        def hear(told: Told | Record) -> None:
            """Note a message or the answer, which counts at once: its process may take seconds to end."""
            arrived.append(told) if isinstance(told, Record) else self._hear(job, account, told)

        try:
            return self._checked(worker.ask(limit, hear) if worker else ask(job, limit, hear), job)
        except WorkerError as error:
            answer = self._loss_record(job, account, error)
            self._keep_glimpse(job, account)
            return self._checked(answer, job)
        except KeyboardInterrupt:
            if arrived and not isinstance(arrived[0], Failure):
                self.journal.keep(self._checked(arrived[0], job))
            else:
                self._keep_glimpse(job, account)
            raise

    def _checked(self, answer: Record, job: Job) -> Record:
        """Return the answer under the title of its job."""
        if not isinstance(answer, Failure):
            check_answer(answer, self.plan.subject.function).label = job.title
        return answer

    def _keep_glimpse(self, job: Job, account: Account) -> None:
        """Keep a glimpse of a first process in a framework, or that of an earlier start."""
        if self.plan.subject.adapter.is_reference or job.process not in (COLD, None):
            return
        if glimpse := account.glimpse(job, job.title):
            self.journal.keep(glimpse)
        else:
            self.journal.take_glimpse(job)

    def _hear(self, job: Job, account: Account, told: Told) -> None:
        """Show a worker's message; sentences only on first calls without code on the disk."""
        self.reporter.hear(told)
        said = account.hear(told)
        if not self.plan.subject.adapter.is_reference and job.process in (COLD, None):
            for words in said:
                self.reporter.notice(words)

    def _equip(self, job: Job) -> Job:
        """Return the job with its worker's environment, and whether it compares.

        Modes that may not find code that another mode has compiled have a cache each, and a first process has an empty
        one, also where a stopped one has left some code.
        """
        situation, engine = self.plan.situation, self.plan.subject.adapter
        folder = Path(situation.folder)
        cache = folder / (words.folder(job.mode) if job.mode else "code" if job.modes else "look")
        if job.mode and job.process in (COLD, None):
            shutil.rmtree(cache, ignore_errors=True)
        counts = not engine.is_reference and job.process in (COLD, None) and situation.device == "cpu"
        counting = process.heap_environment(folder) if counts else {}
        asked = job.asked if job.source else {**job.asked, "checks": not self._has_compared(job)}
        traces = situation.apart and job.mode and job.process in (COLD, None) and engine.traced_into
        keeps = traces and engine.traced_into not in os.environ  # a user's own folder stays theirs
        trace = {engine.traced_into: str(folder / TRACES / cache.name)} if keeps else {}
        variables = engine.variables(job.mode or "", cache, situation.device, job.threads, {**trace, **counting})
        python = engine.traits(job.mode).python if job.mode else ""
        return replace(job, asked=asked, variables=variables, python=python)

    def _has_compared(self, job: Job) -> bool:
        """Return whether an earlier process has compared the job's mode: the first may have given no answer."""
        labels = [self.plan.subject.label(mode) for mode in job.modes[-1:]]
        rows = [parity.modes.get(label) for parity in records_of(self.journal.records, Parity) for label in labels]
        return any(row is not None and row.status in ("ok", "disagree") for row in rows)

    def _loss_record(self, job: Job, account: Account, error: WorkerError) -> Record:
        """Return the record in the place of an answer that a worker did not give.

        The user's function first runs eager: if its process ends there, the function is at fault.
        """
        compiled = [user_name(self.plan.subject.adapter, mode) for mode in job.modes[1:]]
        in_compiled = compiled and error.step.endswith(f" in {compiled[-1]}")
        at_first = not job.source and job.process in (COLD, None) and not in_compiled
        if at_first and not account.has_run(self.plan.subject.base):
            raise FunctionError(f"{self.plan.subject.function}: {error}") from None
        first, overran = account.first(job.modes[-1]), isinstance(error, OverrunError)
        cut = overran and not at_first
        return self._overrun_record(job, first) if cut and first else failure(job, str(error), overran=overran)

    def _overrun_record(self, job: Job, first: GlimpseRow) -> Time:
        """Return the record of a mode whose process was ended at its limit: `3 of 8 calls in 300 s`."""
        plan, subject = self.plan, self.plan.subject
        reason = f"{len(first.first)} of {first.calls} calls in {plan.situation.limit:.0f} s"
        status: Status = "unsupported"
        head = {**job.head, "eager": subject.label(subject.base), "process": job.process or 0}
        stream = [Call(0, seconds, True, True) for seconds in first.first]
        label = subject.label(job.modes[-1])
        row = TimeRow(status, reason, whole=False, stream=stream)
        cache: Any = None if job.process is None else "cold" if job.process == COLD else "warm"
        time = Time(**head, modes={label: row}, cache=cache, clock=plan.clock_name)
        head.pop("process")
        refused = {label: ParityRow(status, reason, None, None, TOLERANCES["float32"])}
        time.beside = [to_json(Parity(**head, agree=True, modes=refused, same_graph=None, kernel_calls={}))]
        return time


# The answers that are kept --------------------------------------------------------------------------------------------


def unkept(_: str) -> None:
    """A notice that nobody reads."""


@contextmanager
def open_folder(plans: Sequence[ComparisonPlan], notice: Notice = unkept, *, resume: bool = False) -> Iterator[Path]:
    """A context with the folder of a comparison: removed if the block succeeds, kept with its answers if it does not.

    So results are saved inside the block. `notice` says that something is kept.
    Without `resume` the folder starts empty, and also if the user's files have changed; `notice` says that.
    If another process makes the same comparison, or nothing can be written, the folder is a temporary one. Raises
    CompareError if a comparison is to be resumed that another process is making.
    """
    with ExitStack() as stack:
        try:
            folder = _place(plans)
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(journal.hold_lock(folder, unkept))
        except (OSError, CompareError) as error:
            if resume:
                said = str(error).partition(";")[0]
                raise CompareError(f"cannot go on: {said}; wait until that has ended, or leave out --resume") from error
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphduel-")))
        else:
            _prune(folder)
            reason = _reason(folder) if resume else ""
            if reason:
                notice(f"{reason}: the comparison begins anew")
            if reason or not resume:
                _empty(folder)
        try:
            yield folder
        except BaseException:
            if any(path.stat().st_size for path in folder.glob(JOURNALS)):
                notice("what has ended is kept: the same command with --resume goes on")
            else:
                _empty(folder)
            raise
        _empty(folder)
    with suppress(OSError):
        folder.rmdir()


def keep_traces(folder: Path, out: Path) -> None:
    """Copy the traces of compilers from the folder of a comparison to that of its results, in place of older ones."""
    shutil.rmtree(out / TRACES, ignore_errors=True)
    for traces in sorted(folder.glob(f"*/{TRACES}")):
        for file in filter(Path.is_file, traces.rglob("*")):
            write_file(out / TRACES / file.relative_to(traces), file.read_bytes())


def keep_graphs(records: Sequence[Record], out: Path) -> None:
    """Write the graphs that were slower compiled, or wrong, into the folder of results, a file each."""
    for record in records_of(records, Bisection):
        for mode, row in record.modes.items():
            if row.program:
                write_file(out / record.file(mode), row.program.encode())


@dataclass
class Answers(Journal):
    """The answers of a comparison's processes; those of an `earlier` start count once their job comes up.

    An answer is one line, so that all of it is kept, or nothing. If the file cannot be written the answer is still
    used, and without a folder there is no file. Failures have no line, so that a failed job is asked again.
    """

    earlier: list[Record] = field(default_factory=list)
    notice: Notice = unkept

    @classmethod
    def of(cls, folder: Path, notice: Notice) -> Answers:
        """Return the answers in a folder, without a last line that was not written to its end."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / results.RESULTS
        results.create(path)
        results.repair(path)
        return cls(path, [], results.read(path), notice)

    def keep(self, record: Record) -> None:
        """Append a record to the file, and all that it holds to the present records."""
        if self.path.name and not isinstance(record, Failure):
            try:
                results.append(self.path, record)
            except (OSError, ResultsError) as error:
                self.notice(f"not kept, so that --resume asks again: {error}")
        self.records += unfold(record)

    def has(self, job: Job) -> bool:
        """Return whether an earlier start has the answer to a job; if so, it joins the present records."""
        kept = [record for record in self.earlier if record.label == job.title and not isinstance(record, Glimpse)]
        self.records += kept
        return bool(kept)

    def take_glimpse(self, job: Job) -> None:
        """Add the last glimpse that an earlier start has of a job to the present records."""
        self.records += [glimpse for glimpse in records_of(self.earlier, Glimpse) if glimpse.label == job.title][-1:]


def loaded_files() -> dict[str, str]:
    """Return digests of the user's files that this process has loaded."""
    loaded = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    return {file: _digest(Path(file)) for file in loaded if isinstance(file, str) and is_users(file)}


def _place(plans: Sequence[ComparisonPlan]) -> Path:
    asked = [_identity(plan) for plan in plans]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
    return cache_folder() / "compare" / digest[:16]


def _identity(plan: ComparisonPlan) -> dict[str, Any]:
    """Return all that the answers to a plan depend on."""
    from importlib.metadata import version  # imported here: it is a tenth of a worker's start

    subject, situation = plan.subject, plan.situation
    asked = {name: value for name, value in asdict(situation).items() if name not in FREE}
    places = [place.rpartition(":")[0] for place in (subject.function, subject.inputs)]
    return {
        **subject.to_dict(),
        **asked,
        "apart": situation.apart and subject.adapter.is_reference,
        "files": {str(Path(file).absolute()): _digest(Path(file)) for file in places if file},
        "versions": [code_digest(), platform.python_version(), version("numpy"), subject.adapter.version],
    }


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError:
        return ""


def _reason(folder: Path) -> str:
    """Return why nothing in a folder can be resumed; "" where something can."""
    try:
        kept = [record for path in folder.glob(JOURNALS) for record in results.read(path)]
    except ResultsError as error:
        return str(error)
    looks = records_of(kept, FunctionLook)
    changed = [
        Path(file).name for look in looks for file, digest in look.files.items() if _digest(Path(file)) != digest
    ]
    if changed:
        return f"{changed[0]} is not what it was"
    return "" if kept else "no process of this file, these options and these versions has ended before"


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != journal.LOCK:
            entry.unlink(missing_ok=True)


def _prune(folder: Path) -> None:
    """Remove the folders that other comparisons left long ago."""
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if other != folder and time.time() - other.stat().st_mtime > DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
