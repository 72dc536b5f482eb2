"""Where prices are kept: a file in the user's cache for each pair of arms and each machine, measured once.

They are measured anew where graphduel's code, a library or the machine has changed, or a user says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from compare.errors import CompareError
from compare.records import machines
from compare.records.record import Environment
from compare.run import product
from compare.run.environment import environment
from compare.words.text import counted

P = TypeVar("P")
Say = Callable[[str], None]


def machine(found: Environment | None = None) -> machines.Fingerprint:
    """What must be equal for prices to hold: the machine, its libraries, and the code of graphduel; this one's here."""
    print_ = machines.fingerprint(environment() if found is None else found)
    return {**{name: value for name, value in print_.items() if name != "commit"}, "code": product.code()}


@dataclass(frozen=True)
class Kept(Generic[P]):
    """The prices of a pair of arms: how they are read, written and measured.

    `load` raises CompareError for a file that holds no prices of this machine and code. `takes` says how long measuring
    takes, in words.
    """

    arm: str
    load: Callable[[Path], P]
    save: Callable[[P, Path], None]
    measure: Callable[[], P]
    takes: str

    def place(self, here: Mapping[str, Any]) -> Path:
        """The file in the cache of the user: the code may change in it, the machine may not."""
        lasting = {name: value for name, value in here.items() if name != "code"}
        digest = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()[:12]
        return _cache() / f"{self.arm}-{digest}.json"

    def prices(self, path: Path | None, say: Say, *, anew: bool = False) -> P:
        """Those in a file, by default one in the cache; measured, and written there, if there are none or `anew`.

        Raises CompareError for a file that the user names and that is of another machine; one in the cache is replaced.
        """
        place = path or self.place(machine())
        if place.exists() and not anew:
            try:
                known = self.load(place)
            except CompareError as error:
                if path is not None:
                    raise
                say(f"{error}")
            else:
                say(f"Prices of this machine: {_shown(place)}, {age(place)} old; --calibrate measures them anew.")
                return known
        say(f"Measuring the prices of {self.arm} on this machine, {self.takes}, once ...")
        found = self.measure()
        place.parent.mkdir(parents=True, exist_ok=True)
        self.save(found, place)
        say(f"Kept in {_shown(place)}.")
        return found


def age(path: Path) -> str:
    """How long ago a file was written, in words."""
    minutes = max(0.0, time.time() - path.stat().st_mtime) / 60
    for unit, length in (("day", 24 * 60), ("hour", 60)):
        if minutes >= length:
            return counted(int(minutes / length), unit)
    return counted(int(minutes), "minute")


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return Path(root or "~/.cache").expanduser() / "graphduel" / "advice"


def _shown(path: Path) -> str:
    try:
        return f"~/{path.absolute().relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)
