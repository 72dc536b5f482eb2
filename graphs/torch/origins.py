"""Where a value of the user's got its dtype, read from the user's own lines; looked for when an error is told."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from graphs.errors import user_frame


def origin(value: Any, dtype: str) -> str:
    """`float64 since model.py:13, q = x / scale`: the assignment that gave `value` the dtype; "" where unknown.

    The value is a variable of the function that runs now. An assignment whose right side reads another variable of the
    dtype only passes it on, and that one is looked at. Of `q = q / scale` the earlier `q` is gone, which may have
    had the dtype already: `at the latest` says so.
    """
    frame = user_frame()
    name = None if frame is None else next((key for key, held in frame.f_locals.items() if held is value), None)
    if frame is None or name is None:
        return ""
    assigned = dict(_assignments(frame))
    made, latest = None, ""
    while name in assigned:
        made = assigned.pop(name)
        read = [part.id for part in ast.walk(made.value) if isinstance(part, ast.Name)] if made.value else []
        if name in read or isinstance(made, ast.AugAssign):
            latest, name = " at the latest", None
            break
        name = next((key for key in read if _name_of(frame.f_locals.get(key)) == dtype), None)
    if made is None or name is not None:  # or it is an argument: then the caller made it so
        return ""
    file = frame.f_code.co_filename
    return f"{dtype} since {Path(file).name}:{made.lineno}{latest}, {linecache.getline(file, made.lineno).strip()}"


def _name_of(value: Any) -> str:
    return getattr(getattr(value, "dtype", None), "name", "")


Assignment = ast.Assign | ast.AugAssign | ast.AnnAssign


def _assignments(frame: FrameType) -> Iterator[tuple[str, Assignment]]:
    """The assignments to plain names above the line that runs, in its function, in their order."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return
    first, last = frame.f_code.co_firstlineno, frame.f_lineno
    inside = [node for node in ast.walk(tree) if isinstance(node, Assignment) and first <= node.lineno < last]
    for node in sorted(inside, key=lambda node: node.lineno):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
