"""The journal of a run: its results file, open to append to, and the records that are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from compare.errors import CompareError, ResultsError
from compare.records import lock, results
from compare.records.job import Job
from compare.records.record import Failure, Record, Run, Setting, of
from compare.records.results import unfolded

FREE = ("at_once",)
"""The settings in which two starts of one run may differ."""


@dataclass
class Journal:
    """Where the records of a run go, and those it has."""

    path: Path
    records: list[Record] = field(default_factory=list)

    def keep(self, record: Record) -> None:
        """Append a record, and what its worker found beside it, to the file, and to those at hand."""
        for each in unfolded(record):
            results.append(self.path, each)
            self.records.append(each)

    def has(self, job: Job) -> bool:
        """Whether a job has its record, so that it need not run."""
        return job.name in results.done_jobs(self.records)

    @property
    def lost(self) -> list[Failure]:
        """The last failure of each job that has no record."""
        return results.lost(self.records)

    @property
    def headers(self) -> list[Run]:
        """The line of each start."""
        return of(self.records, Run)


@contextmanager
def opened(
    directory: Path,
    settings: Mapping[str, Setting],
    resume: bool,
    notice: Callable[[str], None] = results.silent,
    *,
    overwrite: bool = False,
) -> Iterator[Journal]:
    """The journal of a run with these settings in a directory; nobody else writes there inside the block.

    With `overwrite` the run begins anew in a directory that holds one, and touches nothing else in it.
    Raises ResultsError when the directory holds another run, or records that are none of ours, and CompareError when it
    cannot be written, is being written by another process, or holds anything and no run is resumed or written over.
    """
    with ExitStack() as stack:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock.held(directory, notice))
            if overwrite and results.has_some(directory):
                results.replace(directory / results.RESULTS, [])
                resume = True
            journal = _read(directory, resume, notice)
        except OSError as error:
            raise CompareError(f"cannot write to {directory}: {error.strerror}; choose another --out") from error
        _check_same(journal.path, journal.headers, settings)
        yield journal


def settings(directory: Path) -> Mapping[str, Setting]:
    """The settings that the run in a directory began with; none where there is no run yet.

    Raises ResultsError for a file that is none of ours.
    """
    path = directory / results.RESULTS
    headers = Journal(path, results.read(path)).headers if path.exists() else []
    return headers[0].settings if headers else {}


def _read(directory: Path, resume: bool, notice: Callable[[str], None]) -> Journal:
    if not resume and any(entry.name != lock.NAME for entry in directory.iterdir()):
        raise CompareError(f"{directory} is not empty; go on with it by --resume, or choose another --out")
    if (directory / results.PACKED).exists():
        raise CompareError(f"{directory / results.PACKED} is packed; unpack it with gunzip to go on with that run")
    path = directory / results.RESULTS
    results.create(path)
    journal = Journal(path, results.read(path, notice))
    results.repair(path)
    return journal


def _check_same(path: Path, headers: Iterable[Run], settings: Mapping[str, Setting]) -> None:
    for earlier in (header.settings for header in headers):
        for name in (name for name in settings if name in earlier and name not in FREE):
            if earlier[name] != settings[name]:
                raise ResultsError(
                    f"{path} is a run with {name} {earlier[name]}, not {settings[name]}; "
                    f"resume it with that {name}, or choose another --out"
                )
