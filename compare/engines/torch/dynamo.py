"""PyTorch's compilers: the modes that compile a loss, and how often they may compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import optree

from compare.engines.base import Mode
from compare.engines.step import Function
from compare.engines.torch import told
from compare.records.record import WRITTEN

EXPORT = Mode("export", usual=False, traces=True)
AS_WRITTEN = Mode(WRITTEN, usual=False, suite=False)
GRAPHS = "aot_eager"
"""The backend of `torch.compile` that makes graphs but no kernels."""
OPTIONS: dict[Mode, dict[str, Any]] = {
    Mode("compile"): {},
    Mode("compile-dynamic", relaxes=True): {"dynamic": True},
    Mode("reduce-overhead", suite=False): {"mode": "reduce-overhead"},
    Mode("max-autotune", suite=False): {"mode": "max-autotune"},
    Mode("aot-eager", suite=False): {"backend": GRAPHS},
}
"""The modes of `torch.compile`, with its options."""

KEPT = 10_000
MANY = {"recompile_limit": 1000, "accumulated_recompile_limit": 10_000}


def compile_loss(mode: Mode, loss: Function, **options: Any) -> Function:
    """Return the loss compiled in a mode, on its first call; `options` are those of `torch.compile`."""
    import torch

    if mode is EXPORT:
        return _export(loss)
    compiled: Function = torch.compile(loss, **{**OPTIONS[mode], **options})
    return compiled


def capture_graphs(mode: Mode, function: Function) -> Function | None:
    """Return the function as graphs of both passes, run op by op; None for an export, which has no other kernels."""
    return None if mode is EXPORT else compile_loss(mode, function, fullgraph=True, backend=GRAPHS)


def pieces(function: Function) -> Function:
    """Return the function in as many graphs as it needs, run op by op."""
    return compile_loss(next(iter(OPTIONS)), function, backend=GRAPHS)


def _export(loss: Function) -> Function:
    """Return the loss as programs, one exported per structure and shapes of the arguments, on first use."""
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
    """Count graph breaks with their lines, and keep more compile records than the last 64."""
    from torch._dynamo.utils import set_compilation_metrics_limit

    set_compilation_metrics_limit(KEPT)
    told.listen()


def unlimit_recompiles() -> None:
    """Raise the recompile limits, so that a workload may compile for each of its shapes."""
    import torch._dynamo

    for name, many in MANY.items():
        setattr(torch._dynamo.config, name, many)


def forget() -> None:
    """Drop compiled code and counts."""
    import torch

    torch._dynamo.reset()
    told.forget()


@contextmanager
def eagerly(met: Callable[[], None]) -> Iterator[None]:
    """A context in which nothing compiles; `met` is called for each call that would be compiled otherwise."""
    import torch
    from torch._dynamo import eval_frame

    asked = vars(eval_frame).get("_callback_from_stance")

    def noting(callback: Any) -> Any:
        if callback not in (None, False):
            met()
        return asked(callback) if asked else None

    with torch.compiler.set_stance("force_eager"):
        if asked:  # private to Dynamo, so it may be missing
            vars(eval_frame)["_callback_from_stance"] = noting
        try:
            yield
        finally:
            if asked:
                vars(eval_frame)["_callback_from_stance"] = asked


@contextmanager
def anew() -> Iterator[None]:
    """A context that begins without compiled code in memory or on the disk, and without counts."""
    from torch._inductor.utils import fresh_cache

    forget()
    with fresh_cache():
        yield
