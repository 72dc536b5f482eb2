"""Write files atomically: the whole content beside the earlier file, which it then replaces in one step.

A save that fails at any byte (a full disk, a value that cannot be written, a killed process) leaves the earlier file as
it was. The journal of a run is appended to in parts and has its own function: `append` in
`compare/records/results.py`.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO


def write_file(path: str | Path, content: bytes, mode: int | None = None) -> Path:
    """Write `content` to a file atomically, as `replacement` does. Returns its path."""
    with replacement(path, mode) as file:
        file.write(content)
    return Path(path)


@contextmanager
def replacement(path: str | Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at `path` when the block ends without an error.

    Missing folders are made. The file has the permissions `mode`, by default those of the earlier file. A symbolic link
    stays a link, and the file it points to is replaced. A pipe or a device is written into, because it must not be
    replaced. Raises OSError, which names `path`.
    """
    place = Path(os.path.realpath(path))
    beside = place.with_name(f".graphduel-{secrets.token_hex(8)}")  # nobody can guess it; a long name has room for it
    try:
        if place.exists() and not place.is_file():
            with place.open("wb") as file:
                yield file
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        earlier = _permissions(place)
        try:
            with open(beside, "xb", opener=partial(os.open, mode=mode or 0o666)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # some disks are known to be full only now
            if earlier is not None and mode is None:
                beside.chmod(earlier)
            beside.replace(place)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        if error.filename in (None, str(beside), str(place)):
            error.filename = str(path)
            del error.filename2  # None would be shown
        raise


def _permissions(place: Path) -> int | None:
    """The permissions of a file; None where there is none. Raises PermissionError for a write-protected file."""
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return None
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    return mode
