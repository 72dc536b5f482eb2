"""Which code is the user's, and how a line of it is called."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import Any

from compare.measure.start import PACKAGES
from graphs.errors import is_internal

_HERE = str(Path(__file__).resolve().parent.parent) + os.sep
_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARY = tuple({str(Path(sysconfig.get_path(name)).resolve()) + os.sep for name in _PATHS})


def wrote(filename: str) -> bool:
    """Whether a file is neither ours nor Python's nor that of an installed package; what is typed in is the user's."""
    if is_internal(filename) or filename.startswith(("<frozen", _HERE)):
        return False
    return not str(Path(filename).resolve()).startswith(_LIBRARY)


def defined(value: Any) -> bool:
    """Whether the class of a value is the user's."""
    module = type(value).__module__
    if module in sys.builtin_module_names or module.partition(".")[0] in PACKAGES:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return module == "__main__" or (file is not None and wrote(file))


def line(frame: FrameType) -> str:
    """`mine.py:12`, the line that a frame is at."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
