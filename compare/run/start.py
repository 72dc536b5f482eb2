"""The start of a worker by `python -P .../compare/run/start.py`, which imports nothing from the current folder.

Before anything else it takes a block of memory of random size, so that later blocks lie at random places
(`compare.run.environment`).

`-P` keeps the current folder, and the folder of this file, off the path. The four packages are then looked for beside
the one that this file is in, and nowhere else: whatever else is on the path cannot hide them.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from runpy import run_module
from types import ModuleType

LAYOUT = "GRAPHDUEL_LAYOUT"
"""The variable with a worker's layout: the bytes of its first block, a colon, and a filler of any length."""
PACKAGES = ("graphs", "static", "dynamic", "compare")
HOME = str(Path(__file__).resolve().parent.parent.parent)


class PackageFinder:
    """Finds the packages of graphduel beside this one."""

    @staticmethod
    def find_spec(name: str, _: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a package of ours by name; None for other names."""
        return PathFinder.find_spec(name, [HOME], target) if name in PACKAGES else None


def keep_to_home() -> None:
    """Make this process import graphduel's packages from this one place only."""
    if PackageFinder not in sys.meta_path:
        sys.meta_path.insert(0, PackageFinder)


def layout() -> tuple[int, int] | None:
    """Return the bytes of a worker's first block and of its environment's filler; None where it has no layout."""
    heap, colon, filler = os.environ.get(LAYOUT, "").partition(":")
    return (int(heap), len(filler)) if colon else None


if __name__ == "__main__":
    gc.disable()  # what a start loads is no garbage; `compare.run.worker` enables it before the job
    _kept = bytearray((layout() or (0, 0))[0])
    keep_to_home()

    run_module("compare.run.worker", run_name="__main__")
