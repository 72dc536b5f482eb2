"""What the rungs are: what each adds to which, and how its step is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import dynamic
from compare.engines.graphduel import steps
from compare.engines.graphduel.steps import CompiledStep, GraphStep
from compare.workloads.base import Case
from static.passes import pipeline

TAPE, REPLAY, NATIVE = "tape", "replay", "native"
_RESTRUCTURED = pipeline.SIMPLIFY + pipeline.RESTRUCTURE + pipeline.SIMPLIFY


class RungDefinition(NamedTuple):
    """A rung: the one it is compared with, what it adds to that, and how a case is made a step of it.

    A block of calls runs `within` a context, which is entered before the clock starts.
    """

    base: str | None
    adds: str
    build: Callable[[Case], GraphStep]
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


def _tape(case: Case) -> GraphStep:
    return steps.build("dynamic", case)


def _compiled(passes: Sequence[pipeline.Pass], arena: bool) -> Callable[[Case], GraphStep]:
    return lambda case: CompiledStep(case, passes=passes, arena=arena)


RUNGS: Mapping[str, RungDefinition] = {
    TAPE: RungDefinition(None, "the dynamic engine as it is", _tape),
    "pool": RungDefinition(TAPE, "memory of earlier results reused", _tape, dynamic.pool),
    REPLAY: RungDefinition(
        TAPE, "the same kernels in a fixed graph: nothing recorded", _compiled(pipeline.REPLAY, False)
    ),
    "simplify": RungDefinition(REPLAY, "folding, common subexpressions, algebra", _compiled(pipeline.SIMPLIFY, False)),
    "plan": RungDefinition("simplify", "an arena that results are written into", _compiled(pipeline.SIMPLIFY, True)),
    "restructure": RungDefinition(
        "plan", "products and sums in another order, steps batched", _compiled(_RESTRUCTURED, True)
    ),
    "fuse": RungDefinition(
        "restructure",
        "elementwise groups in blocks",
        _compiled(_RESTRUCTURED + pipeline.FUSE + pipeline.CLEAN, True),
    ),
    "contract": RungDefinition("fuse", "sums of products as products: all passes", _compiled(pipeline.DEFAULT, True)),
    NATIVE: RungDefinition("contract", "machine code for this graph: other kernels too", steps.native),
}
SAME_KERNELS = ("pool", REPLAY)
"""The rungs that call exactly the kernels that the tape calls."""
