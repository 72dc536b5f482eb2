"""Where a function of a test stands, as error messages name it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def line_of(function: Callable[..., Any], offset: int = 0) -> str:
    """`test_module.py:12` for the line `offset` lines below the one where a function starts."""
    code = function.__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno + offset}"
