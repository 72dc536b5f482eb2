"""What adapters of frameworks share: workloads over their functions, and steps that parameters are passed to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compare.engines.base import Engine
from compare.engines.cases import longest
from compare.engines.framework_tools import FrameworkTools
from compare.engines.step import Step
from compare.errors import UnsupportedError
from compare.workloads.base import Case

PADDED = "-padded"
"""Ends the name of an arm that meets every example padded to the longest."""


class WorkloadStep(Step):
    """One arm of a case: parameters stand before each example."""

    def __init__(self, engine: Engine, arm: str, case: Case) -> None:
        padded = arm.endswith(PADDED)
        mode = arm.removesuffix(PADDED)
        loss = case.masked if padded else engine.loss(mode, case)
        if loss is None:
            raise UnsupportedError(f"{arm}: the workload has no masked loss: padding would change its result")
        examples = longest(case) if padded else case.examples
        built = engine.build(mode, loss, case.argnum)
        params = engine.arrays(case.params)
        super().__init__(engine, built, tuple(map(engine.arrays, examples)), (params,))
        self.longest = max(case.lengths) if padded else 0

    def computed(self, lengths: Sequence[int]) -> int:
        """See the base."""
        return self.longest * len(lengths) or sum(lengths)


class Framework(Engine):
    """An engine of someone else's."""

    def step(self, arm: str, case: Case) -> WorkloadStep:
        """See the base; an arm that ends in PADDED meets every example padded."""
        return WorkloadStep(self, arm, case)

    def debugger(self, arm: str, users: Callable[[str], bool]) -> FrameworkTools:
        """See the base."""
        return FrameworkTools(self, arm, users)
