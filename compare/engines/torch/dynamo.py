"""Dynamo's reports of its compilations.

Reasons, graph breaks and Dynamo's limit are told each with the user's line.
"""

from __future__ import annotations

import ast
import itertools
import json
import linecache
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from compare.engines.base import Engine
from compare.engines.process import patch_namespace
from compare.engines.step import Compilation, Observations
from compare.errors import is_library, is_users
from compare.records.own import CompileEvent
from compare.records.record import group_by

KEPT = 10_000
"""The number of compile records that are kept."""
CAPTURES = "_higher_order_ops"
"""The folder of PyTorch's ops of functions."""
MANY = {"recompile_limit": 1000, "accumulated_recompile_limit": 10_000}


@contextmanager
def eager_stance(engine: Engine) -> Iterator[None]:
    """A context in which Dynamo's stance lets nothing compile; the engine's `compiles` notes what would have.

    PyTorch itself captures the functions of an op such as `torch.cond`, which eager code needs, and which is let.
    """
    import torch
    from torch._dynamo import eval_frame

    asked = vars(eval_frame).get("_callback_from_stance")

    def noting(callback: Any) -> Any:
        if CAPTURES in sys._getframe(2).f_code.co_filename:
            return callback
        engine.compiles |= callback not in (None, False)
        return asked(callback) if asked else None

    instead = {"_callback_from_stance": noting} if asked else {}  # private to Dynamo, so it may be missing
    with torch.compiler.set_stance("force_eager"), patch_namespace(vars(eval_frame), instead):
        yield


def listen() -> None:
    """Count graph breaks with their lines, and keep more compile records than the last 64."""
    from torch._dynamo.utils import counters, set_compilation_metrics_limit

    set_compilation_metrics_limit(KEPT)
    for name in COUNTED:
        if not isinstance(counters[name], Breaks):
            counters[name] = Breaks()


def forget() -> None:
    """Drop compiled code and counts."""
    import torch
    import torch._dynamo.utils as dynamo

    torch._dynamo.reset()
    dynamo.clear_compilation_metrics()
    dynamo.counters.clear()
    dynamo.graph_break_reasons.clear()
    listen()


FIRST = "the first call of a piece of the graph"
LIMIT = "Dynamo recompile limit exceeded"
DYNAMO = "torch/_dynamo/"
COMPILERS = ("torch/_functorch/", "torch/_inductor/", "torch/fx/")
"""The folders of the compilers behind Dynamo."""
COUNTED = ("graph_break", "unimplemented")
"""Dynamo's counters of untraced code: the second has branches on values, which break a graph as well."""

_GUARD = re.compile(r"^\d+/\d+: ")
_PLACE = re.compile(r'# File "([^"]+)", line (\d+), in \w+, code: (.*)')
_TRACED = re.compile(r'File "([^"]+)", line (\d+), in \w+\n\s*(.*)')
_CALLED = re.compile(r"Line: (\d+), Name: .*, Filename: (.*)")
_RESUMED = re.compile(r"torch_dynamo_resume_in_\w+_at_(\d+)")
_ARGUMENT = re.compile(r"\bargs\[(\d+)\]")
_FILE_NAME, _MODULE_NAME = re.compile(r"\bfilename: `([^`]+)`"), re.compile(r"\bmodule: ([\w.]+), qualname: ")
_DISABLED = re.compile(r"\bdisable\(\)`d function\n.*<(?:function|bound method) ([\w.]+)")
_HINT = re.compile(r"^\s*Hint: (.*)$", re.MULTILINE)
_PAGE = re.compile(r"please visit: (\S+)")
Where = tuple[str, int, str]
"""A file, a line number, and the line's code."""


class Breaks(Counter[str]):
    """A counter in Dynamo's place, whose `at` counts each reason by the user's line, and the library it is in or "".

    The line is that which Dynamo traces, else the one that runs. Code of a compiler at work is not counted: Dynamo
    looks at that too where a backward pass is compiled late.
    """

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[str, Counter[tuple[str, str]]] = {}

    def __setitem__(self, reason: str, count: int) -> None:
        (line, between), traced = _running(sys._getframe(1)), _traced_places()
        if not any(folder in file for folder in COMPILERS for file in between):
            library = _library_file(traced[-1][0] if traced else "") or _library_file(_skipped_file(reason))
            self.at.setdefault(reason, Counter())[_innermost(traced) or line, library] += count - self[reason]
            super().__setitem__(reason, count)


def dynamo_observations(codes: Sequence[CodeType]) -> Observations:
    """Return Dynamo's records of this process: compilations, graph breaks by reason, and where it met its limit.

    `codes` are those of a function and of what it wraps, the innermost last. If Dynamo compiled a library's wrapper,
    the compilation names the innermost instead.
    """
    import torch
    from torch._dynamo.utils import get_compilation_metrics

    # a backward pass that compiles on first need has a second record
    records = [metrics for metrics in get_compilation_metrics() if metrics.is_forward is not False]
    backward = group_by((m for m in get_compilation_metrics() if m.is_forward is False), lambda m: str(m.compile_id))
    compiled = [
        _compilation(metrics, backward.get(str(metrics.compile_id), ()), codes)
        for metrics in records
        if metrics.graph_op_count is not None
    ]
    limit = f"the recompile limit of {torch._dynamo.config.recompile_limit}"
    limits = [
        f"{limit}: {_reason(metrics)}; torch._dynamo.config.recompile_limit raises it"
        for metrics in records
        if (metrics.fail_reason or "").startswith(LIMIT)
    ]
    return Observations(compiled, _breaks(), limits)


def _breaks() -> Counter[str]:
    """Count graph breaks by reason and line.

    A line in the words of the reason comes first. Breaks at several lines count apart; breaks that differ only in
    omitted details count together.
    """
    from torch._dynamo.utils import counters

    breaks = Counter[str]()
    for counter in map(counters.get, COUNTED):
        at = counter.at if isinstance(counter, Breaks) else {}
        for reason, count in (counter or {}).items():
            for (line, library), times in (at.get(reason) or {("", ""): count}).items():
                breaks[_break(reason, line, library)] += times
    return breaks


def _traced_places() -> list[Where]:
    """Return the places in the stack of the code that Dynamo traces now, the innermost last.

    Where it handles an error of a function that it had inlined, the stack is that of the error, which reaches further.
    """
    from torch._guards import TracingContext

    try:
        frames = getattr(sys.exception(), "real_stack", None) or TracingContext.extract_stack()
        return [(frame.filename, frame.lineno or 0, frame.line or "") for frame in frames]
    except Exception:  # noqa: BLE001  (private to PyTorch: without it there is the line that runs)
        return []


def _skipped_file(reason: str) -> str:
    """Return the file of the function that a reason says Dynamo skips; "" where it tells none, or none is known."""
    if named := _FILE_NAME.search(reason):
        return named[1]
    if named := _MODULE_NAME.search(reason):
        return getattr(sys.modules.get(named[1]), "__file__", None) or ""
    named = _DISABLED.search(reason)
    top = named[1].partition(".")[0] if named else ""
    holders = [vars(module) for module in tuple(sys.modules.values()) if top in getattr(module, "__dict__", ())]
    modules = [sys.modules.get(str(getattr(space[top], "__module__", ""))) for space in holders]
    files = [file for module in modules if (file := getattr(module, "__file__", None))]
    return next((file for file in files if is_users(file)), next(filter(is_library, files), ""))


def _library_file(file: str) -> str:
    """Return a file of a library as the library's users know it, `torch/optim/optimizer.py`; "" for any other."""
    if not file or not is_library(file):
        return ""
    parts = Path(file).parts
    return "/".join(parts[parts.index("site-packages") + 1 :] if "site-packages" in parts else parts[-2:])


def _compilation(metrics: Any, backward: Sequence[Any], codes: Sequence[CodeType]) -> Compilation:
    """Return a compilation by Dynamo's record of it, and the records of its backward pass if that compiled later."""
    reason, place = _reason(metrics) or FIRST, _place(metrics)
    wraps = any((outer.co_filename, outer.co_firstlineno) == _first_line(metrics)[:2] for outer in codes[:-1])
    if wraps and is_users((code := codes[-1]).co_filename):
        names = code.co_varnames
        reason = _ARGUMENT.sub(lambda match: names[int(match[1])] if int(match[1]) < len(names) else match[0], reason)
        place = _innermost([(code.co_filename, code.co_firstlineno, code.co_name)])
    later = sum((metrics.duration_us or 0) / 1e6 for metrics in backward)
    seconds = metrics.entire_frame_compile_time_s
    seconds = seconds if seconds is None else seconds + later
    return Compilation(reason + (f" ({place})" if place else ""), seconds, _phases([metrics, *backward]))


PHASES = {
    "Dynamo": "dynamo_cumulative_compile_time_us",
    "AOTAutograd": "aot_autograd_cumulative_compile_time_us",
    "Inductor": "inductor_cumulative_compile_time_us",
    "machine code": "triton_compile_time_us",
}
"""The phases of a compilation, each with the field of its microseconds, which include the phases after it. The last is
the wait for a C++ compiler, or for Triton on a GPU."""


def _phases(passes: Sequence[Any]) -> dict[str, float]:
    """Return the seconds of each phase by itself, over both passes; a backward pass is traced with its forward pass."""
    seconds = dict.fromkeys(PHASES, 0.0)
    for metrics in passes:
        spent = [(getattr(metrics, name, None) or 0) / 1e6 for name in PHASES.values()]
        for phase, own, inside in zip(PHASES, spent, [*spent[1:], 0.0], strict=True):
            seconds[phase] += max(0.0, own - inside) if own else 0.0
    return {phase: spent for phase, spent in seconds.items() if spent}


TRACE = "TORCH_TRACE"
"""The variable of the folder in which PyTorch keeps the trace of its compiler."""
MOST_EVENTS = 2000
"""The number of events of the compiler that are read, the longest."""
_TRACED_LINE = re.compile(r"^V\S+ \S+ (\d+) \S+\] (\{.*\})$")


def trace_events() -> list[CompileEvent]:
    """Return the phases of compilations of this process by the trace that PyTorch keeps, in the order they began."""
    folder = os.environ.get(TRACE)
    files = sorted(Path(folder).glob("*.log")) if folder else []
    return [event for file in files for event in read_trace(file.read_text("utf-8", "replace"), os.getpid())]


def read_trace(text: str, process: int) -> list[CompileEvent]:
    """Return the phases in the text of a trace that a process wrote, timed from the first; the longest, if many."""
    begun: dict[Any, list[Mapping[str, Any]]] = {}
    ended: list[CompileEvent] = []
    origin: float | None = None
    for event in _chromium_events(text, process):
        origin = event["ts"] if origin is None else origin
        stack = begun.setdefault((event.get("pid"), event.get("tid")), [])
        if event.get("ph") == "B":
            stack.append(event)
        elif event.get("ph") == "E" and stack and stack[-1]["name"] == event["name"]:
            first = stack.pop()
            start, seconds = (first["ts"] - origin) / 1e6, (event["ts"] - first["ts"]) / 1e6
            graph = str((first.get("args") or {}).get("compile_id") or "")
            ended.append(CompileEvent(str(event["name"]), max(0.0, start), max(0.0, seconds), graph))
    longest = sorted(ended, key=lambda event: -event.seconds)[:MOST_EVENTS]
    return sorted(longest, key=lambda event: (event.start, -event.seconds))


def _chromium_events(text: str, process: int) -> Iterator[Mapping[str, Any]]:
    """Yield the events in a trace: a line says what follows, and the lines of what follows begin with a tab."""
    lines = text.splitlines()
    for place, line in enumerate(lines):
        head = _TRACED_LINE.match(line) if "chromium_event" in line else None
        if head is None or int(head[1]) != process:
            continue
        payload = itertools.takewhile(lambda line: line.startswith("\t"), itertools.islice(lines, place + 1, None))
        with suppress(ValueError):
            event = json.loads("".join(payload))
            if isinstance(event, dict) and {"name", "ts"} <= event.keys():
                yield event


CARRIED = "a value from before the break"
"""What Dynamo calls `___stack0`: a result, as of `item()`, with which the code behind a graph break goes on."""
_STACK = re.compile(r"___stack\d+")


def _reason(metrics: Any) -> str:
    """Return the guard that failed, in Dynamo's words without its numbers and lines; "" for a first compilation."""
    said = _GUARD.sub("", (metrics.recompile_reason or "").partition("\n")[0]).partition("  # ")[0]
    said = " ".join(said.split())
    try:
        ast.parse(said, mode="eval")
    except SyntaxError:
        return said
    return f"no longer {_STACK.sub(CARRIED, said)}" if said else ""


def _place(metrics: Any) -> str:
    """Return the user's line of a guard, of the compiled function, or that ran: `step.py:12: x = x * scale`."""
    traced = [(file, int(line), code) for file, line, code in _TRACED.findall(metrics.recompile_reason or "")]
    function = [_first_line(metrics)] if metrics.co_filename else []
    calls = [match.groups() for match in map(_CALLED.fullmatch, metrics.stack_trace or ()) if match]
    ran = [(file, int(line), linecache.getline(file, int(line))) for line, file in calls]
    return _innermost(traced) or _innermost(function) or _innermost(ran)


def _first_line(metrics: Any) -> Where:
    """Return where a compiled piece begins: at its function, or at the line after a graph break."""
    file, name = metrics.co_filename, metrics.co_name or ""
    if (resumed := _RESUMED.fullmatch(name)) is None:
        return file, metrics.co_firstlineno, name
    line = int(resumed[1])
    return file, line, linecache.getline(file, line)


NOT_YOURS = "That code is not yours: compile it by itself, or leave it out of what is compiled."


def _break(reason: str, line: str, library: str) -> str:
    """Return Dynamo's name of a break with its last line: `Data-dependent branching (mine.py:25: if x > 0:)`.

    Where Dynamo names no line, `line` is shown. Dynamo's first hint and its page follow, if there are any. A break in a
    file of a library, such as an optimizer's, names it, and the hint, which is for who wrote that, is left out.
    """
    places = [_source_line(*place) for place in _PLACE.findall(reason)] or ([line] if line else [])
    title = reason.partition("\n")[0].strip() + (f" in {library}" if library else "")
    said = advice(reason)
    if library:
        said = [NOT_YOURS, *(each for each in said if each.startswith("See "))]
    return "\n".join([title + (f" ({places[-1]})" if places else ""), *said])


def advice(said: str) -> list[str]:
    """Return Dynamo's first hint and its page, where its message has them."""
    hint, page = _HINT.search(said), _PAGE.search(said)
    return [*([hint[1].strip()] if hint else []), *([f"See {page[1]}"] if page else [])]


def sentence(error: BaseException) -> str:
    """Return Dynamo's error in a sentence or two: the untraced code, the user's line, and the advice."""
    said = str(error)
    title = said.strip().partition("\n")[0].rstrip(".")
    place = _innermost((file, int(line), code) for file, line, code in _TRACED.findall(said))
    words = f"{type(error).__name__}: {title}" + (f" ({place})" if place else "")
    return ". ".join([words, *(each.rstrip(".") for each in advice(said))])


def _innermost(places: Iterable[Where]) -> str:
    """Return the last place in a user's file, as `mine.py:25: code`; "" where there is none."""
    users = [place for place in places if is_users(place[0])]
    return _source_line(*users[-1]) if users else ""


def _running(frame: FrameType | None) -> tuple[str, list[str]]:
    """Return the innermost line of the user's that runs, and the files of the frames between it and Dynamo."""
    between: list[str] = []
    while frame is not None and not is_users(file := frame.f_code.co_filename):
        file = Path(file).as_posix()
        between = [] if DYNAMO in file else [*between, file]
        frame = frame.f_back
    if frame is None:
        return "", between
    return _source_line(file, frame.f_lineno, linecache.getline(file, frame.f_lineno)), between


def _source_line(file: str, line: Any, code: str) -> str:
    return f"{Path(file).name}:{line}: {code.strip()}"
