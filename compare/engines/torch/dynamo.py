"""PyTorch's compilers: what they make of a loss, and what they tell of that: reasons, graph breaks, their limit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from traceback import FrameSummary
from typing import Any

import optree

from compare.engines.base import Mode
from compare.engines.step import Compilation, Function, Observed

EXPORT = Mode("export", usual=False, traces=True)
OPTIONS: dict[Mode, dict[str, Any]] = {
    Mode("compile"): {},
    Mode("compile-dynamic", relaxes=True): {"dynamic": True},
    Mode("reduce-overhead", suite=False): {"mode": "reduce-overhead"},
    Mode("max-autotune", suite=False): {"mode": "max-autotune"},
}
"""The modes of `torch.compile`."""

GRAPHS = "aot_eager"
"""The backend that stops before kernels are made."""
FIRST = "the first call of a piece of the graph"
LIMIT = "Dynamo recompile limit exceeded"
KEPT = 10_000
MANY = {"recompile_limit": 1000, "accumulated_recompile_limit": 10_000}

_GUARD = re.compile(r"^\d+/\d+: ")
_PLACE = re.compile(r'# File "([^"]+)", line (\d+), in \w+, code: (.*)')
_usual: dict[str, int] = {}


def made(mode: Mode, loss: Function, **options: Any) -> Function:
    """The loss, compiled in a mode when it is first called; `options` are those of `torch.compile`."""
    import torch

    if mode is EXPORT:
        return _exported(loss)
    compiled: Function = torch.compile(loss, **OPTIONS[mode], **options)
    return compiled


def captured(mode: Mode, function: Function) -> Function | None:
    """The function as graphs of both passes, run op by op; None for an export, which has no other kernels."""
    return None if mode is EXPORT else made(mode, function, fullgraph=True, backend=GRAPHS)


def pieces(function: Function) -> Function:
    """The function in as many graphs as it takes, run op by op."""
    return made(next(iter(OPTIONS)), function, backend=GRAPHS)


def _exported(loss: Function) -> Function:
    """A program for each structure and shapes of the arguments, exported when it is first needed."""
    import torch

    class Module(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return loss(*args)

    programs: dict[Any, Any] = {}

    def run(*args: Any) -> Any:
        arguments: Any = args
        leaves, structure = optree.tree_flatten(arguments)
        key = (structure, *((x.shape, x.dtype) if isinstance(x, torch.Tensor) else x for x in leaves))
        if key not in programs:
            programs[key] = torch.export.export(Module(), args, strict=True).module()
        return programs[key](*args)

    return run


def listen() -> None:
    """Compile as often as a workload has shapes, and keep more records of it than the last 64."""
    import torch._dynamo
    from torch._dynamo.utils import set_compilation_metrics_limit

    for name, many in MANY.items():
        _usual.setdefault(name, getattr(torch._dynamo.config, name))
        setattr(torch._dynamo.config, name, many)
    set_compilation_metrics_limit(KEPT)


def forget() -> None:
    """Drop what is compiled and what was counted."""
    import torch
    import torch._dynamo.utils as dynamo

    torch._dynamo.reset()
    dynamo.clear_compilation_metrics()
    dynamo.counters.clear()
    dynamo.graph_break_reasons.clear()


def bounded() -> None:
    """Compile as often as a process does that has set nothing."""
    import torch._dynamo

    for name, usual in _usual.items():
        setattr(torch._dynamo.config, name, usual)


def observed() -> Observed:
    """What Dynamo recorded in this process: compilations, graph breaks by reason, and where it met its limit."""
    from torch._dynamo.utils import counters, get_compilation_metrics, graph_break_reasons

    # a backward pass that is compiled when it is first needed is recorded once more
    records = [metrics for metrics in get_compilation_metrics() if metrics.is_forward is not False]
    compiled = [_compilation(metrics) for metrics in records if metrics.graph_op_count is not None]
    limits = [_limit(metrics) for metrics in records if (metrics.fail_reason or "").startswith(LIMIT)]
    # a branch on a value, which breaks a graph as well, is counted among what is not implemented
    counted = Counter(counters["graph_break"]) + Counter(counters["unimplemented"])
    lines = {reason.reason: _users_line(reason.user_stack) for reason in graph_break_reasons}
    breaks = Counter[str]()
    for reason, count in counted.items():  # two reasons that differ in what is left out are one
        breaks[_break(reason, lines.get(reason, ""))] += count
    return Observed(compiled, breaks, limits)


def _compilation(metrics: Any) -> Compilation:
    reason = _reason(metrics)
    return Compilation(f"{reason}{_function(metrics)}" if reason else FIRST, metrics.entire_frame_compile_time_s)


def _function(metrics: Any) -> str:
    """The user's function that was compiled again: ` (step.py:12: loss)`; "" for one of PyTorch's."""
    file = metrics.co_filename
    return f" ({_written(file, metrics.co_firstlineno, metrics.co_name)})" if file and not _is_torchs(file) else ""


def _reason(metrics: Any) -> str:
    """The guard that failed, without the number of the compilation that it belongs to."""
    return _GUARD.sub("", " ".join((metrics.recompile_reason or "").split()))


def _break(reason: str, line: str) -> str:
    """What Dynamo calls it, and the last line that it names: `Data-dependent branching (mine.py:25: if x > 0:)`.

    Where it names none, `line` is that of the user's.
    """
    places = [_written(*place) for place in _PLACE.findall(reason)] or ([line] if line else [])
    return reason.partition("\n")[0].strip() + (f" ({places[-1]})" if places else "")


def _users_line(stack: Iterable[FrameSummary]) -> str:
    """The innermost line of a stack that is not PyTorch's own; "" where all are."""
    users = [frame for frame in stack if not _is_torchs(frame.filename)]
    return _written(users[-1].filename, users[-1].lineno, users[-1].line or "") if users else ""


def _is_torchs(file: str) -> bool:
    import torch

    return file.startswith(str(Path(torch.__file__).parent))


def _written(file: str, line: Any, code: str) -> str:
    return f"{Path(file).name}:{line}: {code.strip()}"


def _limit(metrics: Any) -> str:
    import torch

    limit = torch._dynamo.config.recompile_limit
    return f"the recompile limit of {limit}: {_reason(metrics)}; torch._dynamo.config.recompile_limit raises it"
