"""The journal of a comparison: the answers of finished processes, kept so that a stopped one can be resumed.

A comparison has a folder in the user's cache, named by all that its answers depend on: the file, the subject, its
situation, and versions. There is a journal for each engine, beside the code that its processes have compiled. The
folder is removed when the comparison ends, or when nobody has resumed it for `DAYS` days.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from compare.errors import CompareError, ResultsError, is_users
from compare.own.plan import ComparisonPlan
from compare.records import journal, results
from compare.records.cells import Glimpse
from compare.records.job import Job
from compare.records.journal import Journal
from compare.records.own import FunctionLook
from compare.records.record import Failure, Record, records_of
from compare.records.results import unfold
from compare.run import product
from compare.run.environment import cache_folder

DAYS = 14
JOURNALS = f"*/{results.RESULTS}"
FREE = ("processes", "limit", "command", "folder", "numbers")
"""The fields of a situation in which a resumed comparison may differ."""

Notice = Callable[[str], None]


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


def files() -> dict[str, str]:
    """Return digests of the user's files that this process has loaded."""
    loaded = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    return {file: _digest(Path(file)) for file in loaded if isinstance(file, str) and is_users(file)}


def _place(plans: Sequence[ComparisonPlan]) -> Path:
    asked = [_identity(plan) for plan in plans]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
    return cache_folder() / "compare" / digest[:16]


def _identity(plan: ComparisonPlan) -> dict[str, Any]:
    """Return all that the answers to a plan depend on."""
    subject, situation = plan.subject, plan.situation
    asked = {name: value for name, value in asdict(situation).items() if name not in FREE}
    places = [place.rpartition(":")[0] for place in (subject.function, subject.inputs)]
    return {
        **subject.to_dict(),
        **asked,
        "apart": situation.apart and subject.adapter.is_reference,
        "files": {str(Path(file).absolute()): _digest(Path(file)) for file in places if file},
        "versions": [product.code(), platform.python_version(), version("numpy"), subject.adapter.version],
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
