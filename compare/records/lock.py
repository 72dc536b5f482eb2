"""A lock on the folder of a run, held by the process that writes its records, so that no other does meanwhile.

The operating system releases it when its holder ends, however that ends. The file names the holder for people
alone: whether the lock is held is asked of the operating system. The library filelock empties the file as it asks, so
that who is refused could not say whose it is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compare.errors import CompareError
from compare.records import machines

NAME = ".lock"
_FAR = 1 << 30  # the byte that Windows locks, which nobody reads


@contextmanager
def held(folder: Path, notice: Callable[[str], None]) -> Iterator[None]:
    """The lock on a folder, inside; its file is gone afterwards.

    Raises CompareError that names the holder where there is one, and OSError where no file can be made. Where the file
    system knows no locks, `notice` is called with a sentence on that, and there is no lock.
    """
    path = folder / NAME
    file = _taken(path, notice)
    if file is None:
        raise CompareError(
            f"{folder} is being written by {_holder(path)}; wait until that has ended, or choose another --out"
        )
    try:
        holder = {
            "pid": os.getpid(),
            "host": machines.label(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with suppress(OSError):  # a disk that is full takes no name, and the lock is held all the same
            os.ftruncate(file, 0)
            os.write(file, json.dumps(holder).encode())
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open; one that stays is locked by nobody
            path.unlink()
        os.close(file)


def _taken(path: Path, notice: Callable[[str], None]) -> int | None:
    """The open file, locked; None where somebody else has the lock."""
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
        os.close(file)  # its holder has just ended and taken the file away: what is locked here has no name


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
    """`process 12 on this host since 2030-01-02T03:04:05+00:00`, as far as the file says."""
    holder: Any = None
    with suppress(OSError, ValueError):
        holder = json.loads(path.read_text(encoding="ascii"))
    if not isinstance(holder, dict) or not all(
        isinstance(holder.get(name), (int, str)) for name in ("pid", "host", "since")
    ):
        return "another process"
    where = "this host" if holder["host"] == machines.label() else f"another host ({holder['host']})"
    return f"process {holder['pid']} on {where} since {holder['since']}"
