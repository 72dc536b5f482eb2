"""Which graphduel runs: the files of its packages, its tape, and a digest of its code, equal on every host."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from compare.run.start import PACKAGES

TAPE = "dynamic._native"
"""The compiled part of the dynamic engine, where there is one."""
NO_TAPE = "none: the loops of the tape run in Python"


def files() -> dict[str, str]:
    """The file that each package is imported from in this process, and that of the compiled tape."""
    imported = {name: str(Path(_origin(name)).resolve()) for name in PACKAGES}
    built = find_spec(TAPE)
    return {**imported, TAPE: str(Path(built.origin).resolve()) if built and built.origin else NO_TAPE}


def differences(expected: Mapping[str, str]) -> list[str]:
    """What this process imports from elsewhere than another one, whose `files` are given."""
    own = files()
    return [f"{name} is {own[name]} here and {there} there" for name, there in expected.items() if own[name] != there]


@cache
def code() -> str:
    """A digest of the Python files of the packages: equal where the same graphduel is installed, wherever that is."""
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
