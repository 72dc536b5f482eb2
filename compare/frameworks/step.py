"""An arm of a framework as a training step that the harness can run, and what came of compiling it."""

from __future__ import annotations

from typing import Any

from compare.engines.step import Step
from compare.frameworks.base import Framework, Observed
from compare.workloads.base import Case


class FrameworkStep(Step):
    """A case in a framework: its loss as the mode takes it, and its data as the framework's arrays."""

    def __init__(self, framework: Framework, arm: str, case: Case) -> None:
        self.framework = framework
        self.mode = framework.mode(arm)
        loss = case.loss
        if self.mode.rewritten:
            loss = case.scanned or case.static_loss or case.loss
        function = framework.build(arm, loss, case.argnum)
        examples = tuple(framework.arrays(example) for example in case.examples)
        super().__init__(function, framework.arrays(case.params), examples)
        self._before = framework.observed(function)

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The loss and the gradients of the parameters, computed."""
        result = super().__call__(*example)
        self.framework.wait(result)
        return result

    def numpy(self, result: Any) -> Any:
        """A result as NumPy arrays."""
        return self.framework.numpy(result)

    @property
    def observed(self) -> Observed:
        """What the framework tells of this step: what it told before the step was built is another's."""
        return self.framework.observed(self.function).since(self._before)

    @property
    def compiles(self) -> int:
        """The compilations so far."""
        return len(self.observed.compilations)

    @property
    def compile_seconds(self) -> float:
        """The seconds they took, as far as the framework tells them."""
        return sum(made.seconds or 0.0 for made in self.observed.compilations)
