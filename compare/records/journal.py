"""The journal of a run: its results file, open for appending, with its records; and the lock on its folder.

The process that writes the records holds the lock, so that no other process writes meanwhile. The operating system
releases the lock when its holder ends, for any reason, and is asked whether the lock is held; the lock file names the
holder only for people. The library filelock empties the file when it tries to lock, so a process that is refused could
not name the holder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compare.errors import CompareError, ResultsError
from compare.records import results
from compare.records.job import Job
from compare.records.record import Failure, Record, Run, Setting, host_label, records_of
from compare.records.results import unfold

FREE = ("at_once",)
"""The settings that may differ between two starts of one run."""


@dataclass
class Journal:
    """The results file of a run and the records in it; without a path, records are kept in memory only."""

    path: Path = Path()
    records: list[Record] = field(default_factory=list)

    def keep(self, record: Record) -> None:
        """Append a record, and the records beside it from the same worker, to the file and to `records`."""
        for each in unfold(record):
            if self.path.name:
                results.append(self.path, each)
            self.records.append(each)

    def has(self, job: Job) -> bool:
        """Whether a job has a record already, so that it need not run."""
        return job.name in results.done_jobs(self.records)

    @property
    def lost(self) -> list[Failure]:
        """The last failure of each job that has no record."""
        return results.lost_jobs(self.records)

    @property
    def headers(self) -> list[Run]:
        """The record of each start of the run."""
        return records_of(self.records, Run)


@contextmanager
def open_journal(
    directory: Path,
    settings: Mapping[str, Setting],
    resume: bool,
    notice: Callable[[str], None] = results.silent,
    *,
    overwrite: bool = False,
) -> Iterator[Journal]:
    """Open the journal of a run with these settings in a directory, which stays locked inside the block.

    With `overwrite`, a run in the directory is started anew; other files stay. Raises ResultsError if the directory
    holds a run with other settings, or a results file that is not ours. Raises CompareError if the directory cannot be
    written, is locked by another process, or is not empty and neither `resume` nor `overwrite` is given.
    """
    with ExitStack() as stack:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            stack.enter_context(hold_lock(directory, notice))
            if overwrite and results.has_some(directory):
                results.replace(directory / results.RESULTS, [])
                resume = True
            if not resume and any(entry.name != LOCK for entry in directory.iterdir()):
                raise CompareError(f"{directory} is not empty; go on with it by --resume, or choose another --out")
            if (directory / results.PACKED).exists():
                raise CompareError(
                    f"{directory / results.PACKED} is packed; unpack it with gunzip to go on with that run"
                )
            path = directory / results.RESULTS
            results.create(path)
            journal = Journal(path, results.read(path, notice))
            results.repair(path)
        except OSError as error:
            raise CompareError(f"cannot write to {directory}: {error.strerror}; choose another --out") from error
        for earlier in (header.settings for header in journal.headers):
            for name in (name for name in settings if name in earlier and name not in FREE):
                if earlier[name] != settings[name]:
                    raise ResultsError(
                        f"{journal.path} is a run with {name} {earlier[name]}, not {settings[name]}; "
                        f"resume it with that {name}, or choose another --out"
                    )
        yield journal


def settings(directory: Path) -> Mapping[str, Setting]:
    """Return the settings of the first start of the run in a directory; empty if there is no run yet.

    Raises ResultsError for a file that is not a results file.
    """
    path = directory / results.RESULTS
    headers = Journal(path, results.read(path)).headers if path.exists() else []
    return headers[0].settings if headers else {}


LOCK = ".lock"
_FAR = 1 << 30  # the byte that is locked on Windows, far beyond the end of the file


@contextmanager
def hold_lock(folder: Path, notice: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock on a folder inside the block; its file is removed afterwards.

    Raises CompareError, which names the holder, if another process holds the lock, and OSError if no file can be made.
    On a file system without locks, `notice` is called with a sentence on that, and the folder stays unlocked.
    """
    path = folder / LOCK
    file = _take_lock(path, notice)
    if file is None:
        raise CompareError(
            f"{folder} is being written by {_holder(path)}; wait until that has ended, or choose another --out"
        )
    try:
        holder = {
            "pid": os.getpid(),
            "host": host_label(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with suppress(OSError):  # a full disk cannot store the name, but the lock is held all the same
            os.ftruncate(file, 0)
            os.write(file, json.dumps(holder).encode())
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file; a file that stays is not locked
            path.unlink()
        os.close(file)


def _take_lock(path: Path, notice: Callable[[str], None]) -> int | None:
    """Open and lock the file, and return its descriptor; None if another process has the lock."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            os.close(file)
            return None
        except OSError as error:
            notice(f"{path.parent} cannot be locked ({error.strerror}): let no other run write into it")
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)  # its holder has just ended and removed the file: the file locked here has no name any more


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(path: Path) -> str:
    """Return the holder of the lock, as `process 12 on this host since 2030-01-02T03:04:05+00:00`, from its file."""
    holder: Any = None
    with suppress(OSError, ValueError):
        holder = json.loads(path.read_text(encoding="ascii"))
    if not isinstance(holder, dict) or not all(
        isinstance(holder.get(name), (int, str)) for name in ("pid", "host", "since")
    ):
        return "another process"
    where = "this host" if holder["host"] == host_label() else f"another host ({holder['host']})"
    return f"process {holder['pid']} on {where} since {holder['since']}"
