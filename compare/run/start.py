"""How a worker starts, by `python -P .../compare/run/start.py`: nothing in the current folder is imported.

`-P` keeps the current folder, and the folder of this file, off the path. The four packages are then looked for beside
the one that this file is in, and nowhere else: whatever else is on the path cannot hide them.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from runpy import run_module
from types import ModuleType

PACKAGES = ("graphs", "static", "dynamic", "compare")
HOME = str(Path(__file__).resolve().parent.parent.parent)


class PackageFinder:
    """Finds the packages of graphduel beside this one."""

    @staticmethod
    def find_spec(name: str, _: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The package of that name, if it is one of ours."""
        return PathFinder.find_spec(name, [HOME], target) if name in PACKAGES else None


def keep_to_home() -> None:
    """From now on this process imports the packages of graphduel from one place alone."""
    if PackageFinder not in sys.meta_path:
        sys.meta_path.insert(0, PackageFinder)


if __name__ == "__main__":
    keep_to_home()

    run_module("compare.run.worker", run_name="__main__")
