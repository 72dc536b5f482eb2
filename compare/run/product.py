"""The identity of the running graphduel: the files of its packages, its tape, and a digest of its code.

The digest is equal on every host with the same code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from compare.run.start import PACKAGES

TAPE = "dynamic._native"
"""The compiled part of the dynamic engine, which may be missing."""
NO_TAPE = "none: the loops of the tape run in Python"


def files() -> dict[str, str]:
    """Return the file from which this process imports each package, and the file of the compiled tape."""
    imported = {name: str(Path(_origin(name)).resolve()) for name in PACKAGES}
    built = find_spec(TAPE)
    return {**imported, TAPE: str(Path(built.origin).resolve()) if built and built.origin else NO_TAPE}


def differences(expected: Mapping[str, str]) -> list[str]:
    """Return the packages that this process imports from other files than another process, given its `files`."""
    own = files()
    return [f"{name} is {own[name]} here and {there} there" for name, there in expected.items() if own[name] != there]


@cache
def code() -> str:
    """Return a digest of the packages' Python files, equal wherever the same graphduel is installed."""
    digest = hashlib.sha256()
    for name in PACKAGES:
        folder = Path(_origin(name)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def _origin(name: str) -> str:
    spec = find_spec(name)
    return (spec and spec.origin) or "nowhere"
