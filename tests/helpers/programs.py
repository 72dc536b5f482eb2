"""Functions of a row of text: each has a file and lines, as a user's has."""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Callable
from typing import Any


def program(row: str, arguments: str = "x") -> Callable[..., Any]:
    """The function of a row: the lines of its body with ` | ` between them, and what it returns.

    It reads `math` and the names of the module that calls this, and is named by its row.
    """
    made = function(text_of(row, arguments), {"math": math, **sys._getframe(1).f_globals})
    made.__name__ = row
    return made


def text_of(row: str, arguments: str = "x") -> str:
    """The text of the function `f` of a row."""
    *lines, result = row.split(" | ")
    return "\n    ".join([f"def f({arguments}):", *lines, f"return {result}\n"])


def function(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function `f` of a text."""
    file = f"program_{abs(hash(text))}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    made: Callable[..., Any] = names["f"]
    return made
