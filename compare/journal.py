"""The journal of a run: its results file, open to append to, and the records that are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compare import results
from compare.errors import CompareError, ResultsError
from compare.results import Key, Record

IDENTITY = ("preset", "seed")
"""The settings that make another run where they differ; processes, cells and comparisons may be added to one."""


@dataclass
class Journal:
    """Where the records of a run go, and those it has."""

    path: Path
    records: list[Record] = field(default_factory=list)

    def keep(self, record: Record) -> None:
        """Append a record to the file, and to those at hand."""
        results.append(self.path, record)
        self.records.append(record)

    @property
    def done(self) -> set[Key]:
        """The jobs that have their record."""
        return results.done_jobs(self.records)

    @property
    def lost(self) -> list[Record]:
        """The last failure of each job that has no record."""
        last = {results.key(r["job"]): r for r in self.records if r["kind"] == "failure"}
        return [record for key, record in last.items() if key not in self.done]

    @property
    def headers(self) -> list[Record]:
        """The line of each start."""
        return [record for record in self.records if record["kind"] == "run"]


def opened(
    directory: Path,
    settings: Mapping[str, Any],
    resume: bool,
    notice: Callable[[str], None] = results.silent,
) -> Journal:
    """The journal of a run with these settings in a directory, which is made ready to append to.

    Raises ResultsError when the directory holds another run, and CompareError when it cannot be written, or holds
    anything and no run is resumed.
    """
    path = directory / results.RESULTS
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not resume and any(directory.iterdir()):
            raise CompareError(f"{directory} is not empty; go on with it by --resume, or choose another --out")
        results.create(path)
        journal = Journal(path, results.read(path, notice, strict=True))
        results.repair(path)
    except OSError as error:
        raise CompareError(f"cannot write to {directory}: {error.strerror}; choose another --out") from error
    _check_same(path, journal.headers, settings)
    return journal


def _check_same(path: Path, headers: Iterable[Record], settings: Mapping[str, Any]) -> None:
    for earlier in (header["settings"] for header in headers):
        for name in IDENTITY:
            if earlier.get(name) != settings[name]:
                raise ResultsError(
                    f"{path} is a run with {name} {earlier.get(name)}, not {settings[name]}; "
                    f"resume it with that {name}, or choose another --out"
                )
