"""Which ops of a call of PyTorch's run outside of what Dynamo has compiled, as its profiler sees them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from compare.engines.step import BoundCall

OP, BACKWARD, SEED = "aten::", "autograd::engine", "aten::ones_like"
"""How ops and backward passes begin, and the op that a backward pass begins with."""
RAN = "AOTDispatcher Runtime Wrapper Prologue"
"""What stands in a frame that has a graph."""
GRAPH = ("CompiledFunction", "## Call CompiledFxGraph")
"""How the graph of a frame begins, where it is told: one of a frame that needs no gradient is not, without Inductor."""

COMPILES = "(dynamo_timed)"
"""How the work of the compiler ends, where the call compiles: its ops are none of the step's."""


def outside(call: BoundCall) -> int:
    """How many ops of the forward pass run outside of compiled code. Of an eager call that is all of them."""
    import torch

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells when it starts and stops
    with torch.autograd.profiler.profile(use_kineto=False) as seen, call.within():
        call.run()
    events: list[Any] = list(seen.function_events or ())
    told = {id(around) for event in events if event.name.startswith(GRAPH) for around in _around(event)}
    untold = {id(event.cpu_parent) for event in events if event.name == RAN} - told
    return sum(
        event.name.startswith(OP)
        and event.name != SEED
        and not any(_covers(around, untold) for around in _around(event))
        for event in events
    )


def _covers(around: Any, untold: set[int]) -> bool:
    """Whether what runs inside of an event is part of an op, of a backward pass, of a graph or of compiling."""
    return id(around) in untold or around.name.startswith((OP, BACKWARD, *GRAPH)) or around.name.endswith(COMPILES)


def _around(event: Any) -> Iterator[Any]:
    while (event := event.cpu_parent) is not None:
        yield event
