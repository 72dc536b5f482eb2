"""What Dynamo tells of what it compiled: reasons, graph breaks and its limit, each with the line of the user's."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from compare.engines.step import Compilation, Observed
from compare.errors import is_users

FIRST = "the first call of a piece of the graph"
LIMIT = "Dynamo recompile limit exceeded"
COUNTED = ("graph_break", "unimplemented")
"""Where Dynamo counts what it does not trace: a branch on a value, which breaks a graph as well, is in the second."""

_GUARD = re.compile(r"^\d+/\d+: ")
_PLACE = re.compile(r'# File "([^"]+)", line (\d+), in \w+, code: (.*)')
_TRACED = re.compile(r'File "([^"]+)", line (\d+), in \w+\n\s*(.*)')
_CALLED = re.compile(r"Line: (\d+), Name: .*, Filename: (.*)")
_RESUMED = re.compile(r"torch_dynamo_resume_in_\w+_at_(\d+)")
Where = tuple[str, int, str]
"""A file, a line and its code."""


class Breaks(Counter[str]):
    """Counts as Dynamo does, and keeps the line of the user's that ran when a reason came first."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, str] = {}

    def __setitem__(self, reason: str, count: int) -> None:
        self.lines.setdefault(reason, _running(sys._getframe(1)))
        super().__setitem__(reason, count)


def listen() -> None:
    """From now on Dynamo counts where lines are kept."""
    from torch._dynamo.utils import counters

    for name in COUNTED:
        if not isinstance(counters[name], Breaks):
            counters[name] = Breaks()


def forget() -> None:
    """Drop what was counted."""
    import torch._dynamo.utils as dynamo

    dynamo.clear_compilation_metrics()
    dynamo.counters.clear()
    dynamo.graph_break_reasons.clear()
    listen()


def observed() -> Observed:
    """What Dynamo recorded in this process: compilations, graph breaks by reason, and where it met its limit."""
    from torch._dynamo.utils import counters, get_compilation_metrics, graph_break_reasons

    # a backward pass that is compiled when it is first needed is recorded once more
    records = [metrics for metrics in get_compilation_metrics() if metrics.is_forward is not False]
    compiled = [_compilation(metrics) for metrics in records if metrics.graph_op_count is not None]
    limits = [_limit(metrics) for metrics in records if (metrics.fail_reason or "").startswith(LIMIT)]
    traced = {
        reason.reason: _innermost((frame.filename, frame.lineno or 0, frame.line or "") for frame in reason.user_stack)
        for reason in graph_break_reasons
    }
    breaks = Counter[str]()
    for counter in map(counters.get, COUNTED):
        ran = counter.lines if isinstance(counter, Breaks) else {}
        for reason, count in (counter or {}).items():  # two reasons that differ in what is left out are one
            breaks[_break(reason, traced.get(reason) or ran.get(reason, ""))] += count
    return Observed(compiled, breaks, limits)


def _compilation(metrics: Any) -> Compilation:
    reason = _reason(metrics)
    return Compilation(f"{reason or FIRST}{_place(metrics)}", metrics.entire_frame_compile_time_s)


def _reason(metrics: Any) -> str:
    """What failed of what the code was compiled for: Dynamo's words, without numbers of its own and without lines.

    "" for what had not been compiled before.
    """
    said = _GUARD.sub("", (metrics.recompile_reason or "").partition("\n")[0]).partition("  # ")[0]
    said = " ".join(said.split())
    try:
        ast.parse(said, mode="eval")
    except SyntaxError:
        return said
    return f"no longer {said}" if said else ""


def _place(metrics: Any) -> str:
    """` (step.py:12: x = x * scale)`, the line of the user's that a guard is of, whose function it is, or that ran."""
    traced = [(file, int(line), code) for file, line, code in _TRACED.findall(metrics.recompile_reason or "")]
    function = [_first_line(metrics)] if metrics.co_filename else []
    calls = [match.groups() for match in map(_CALLED.fullmatch, metrics.stack_trace or ()) if match]
    ran = [(file, int(line), linecache.getline(file, int(line))) for line, file in calls]
    place = _innermost(traced) or _innermost(function) or _innermost(ran)
    return f" ({place})" if place else ""


def _first_line(metrics: Any) -> Where:
    """Where the piece begins: at its function, or at the line after which a broken graph goes on."""
    file, name = metrics.co_filename, metrics.co_name or ""
    if (resumed := _RESUMED.fullmatch(name)) is None:
        return file, metrics.co_firstlineno, name
    line = int(resumed[1])
    return file, line, linecache.getline(file, line)


def _break(reason: str, line: str) -> str:
    """What Dynamo calls it, and the last line that it names: `Data-dependent branching (mine.py:25: if x > 0:)`.

    Where it names none, `line` is that of the user's.
    """
    places = [_written(*place) for place in _PLACE.findall(reason)] or ([line] if line else [])
    return reason.partition("\n")[0].strip() + (f" ({places[-1]})" if places else "")


def _innermost(places: Iterable[Where]) -> str:
    """The last that is in a file of the user's; "" where none is."""
    users = [place for place in places if is_users(place[0])]
    return _written(*users[-1]) if users else ""


def _running(frame: FrameType | None) -> str:
    """The innermost line of the user's that runs."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    file = frame.f_code.co_filename
    return _written(file, frame.f_lineno, linecache.getline(file, frame.f_lineno))


def _written(file: str, line: Any, code: str) -> str:
    return f"{Path(file).name}:{line}: {code.strip()}"


def _limit(metrics: Any) -> str:
    import torch

    limit = torch._dynamo.config.recompile_limit
    return f"the recompile limit of {limit}: {_reason(metrics)}; torch._dynamo.config.recompile_limit raises it"
