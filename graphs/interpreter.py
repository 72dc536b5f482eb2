"""Check the Python interpreter: the packages import only in the main interpreter of a process with the global lock."""

import sys
from importlib import import_module
from typing import Any


def check() -> None:
    """Raise ImportError in a sub-interpreter, and where the global lock is off."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "graphduel relies on CPython's global lock, which is off; start Python with PYTHON_GIL=1 or -X gil=1"
        )
    if not _is_main():
        raise ImportError(
            "graphduel is not for sub-interpreters, since NumPy and the compiled tape have one state for a process; "
            "use threads or processes"
        )


def _is_main() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # of CPython 3.13, and before
        try:
            interpreters: Any = import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


check()
