"""Kernels on disk: object code, named by a hash of its source, in a folder that nobody else can write to.

A cached kernel is code that will run. So it is read only from a folder and a file that belong to this user and that no
other user may write. `GRAPHDUEL_NATIVE_CACHE` names the folder, or says `off`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphs.files import write_file

SWITCH = "GRAPHDUEL_NATIVE_CACHE"
MAGIC = b"graphduel native 1\n"


def folder() -> Path | None:
    """Return the folder of cached kernels, None where nothing is cached."""
    said = os.environ.get(SWITCH, "")
    if said == "off" or os.name != "posix":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(said or Path(base, "graphduel", "native")).expanduser()
    except RuntimeError:  # neither HOME nor an entry in passwd says where a user is at home: as in a container
        return None


def key(recipes: Iterable[Any], target: tuple[str, ...]) -> str:
    """Return the key of these kernels on this machine, made by this emitter and this LLVM."""
    parts = [_maker(), *target, *map(repr, recipes)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def _maker() -> str:
    import llvmlite

    digest = hashlib.sha256(llvmlite.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """Return the object code stored under this key, None where there is none that can be trusted."""
    place = folder()
    if place is None or not _is_private(place):
        return None
    try:
        with (place / name).open("rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            kept = file.read()
    except OSError:
        return None
    digest, code = kept[len(MAGIC) : len(MAGIC) + 32], kept[len(MAGIC) + 32 :]
    is_whole = kept.startswith(MAGIC) and hashlib.sha256(code).digest() == digest
    return code if is_whole else None


def save(name: str, code: bytes) -> None:
    """Store object code under a key, whole or not at all; an error of the file system is ignored."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(place):
            return
        write_file(place / name, MAGIC + hashlib.sha256(code).digest() + code, mode=0o600)


def _is_private(place: Path) -> bool:
    """Whether a path is a folder that belongs to this user and that nobody else may write to."""
    try:
        status = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_ours(status)


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
