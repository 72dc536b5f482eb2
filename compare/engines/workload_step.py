"""A step of a workload in a framework: called as the harness calls the steps of our engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compare.engines import heap
from compare.engines.arms import masked_dims
from compare.engines.base import Framework, Function, Observed
from compare.errors import UnsupportedError
from compare.workloads.base import Case, Example
from graphs import tree
from static.call.policies import axis_names, named_sizes, pad_axes

PADDED = "-padded"
"""Ends the name of an arm that meets every example padded to the longest."""


class BuiltStep:
    """A step that a framework has built, and its calls. A call returns when the result is computed."""

    def __init__(self, framework: Framework, run: Function, examples: Sequence[Example]) -> None:
        self.framework, self.run, self.examples = framework, run, examples
        self.before = framework.observed(run)
        self.live = heap.live()

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The value and the gradients, as the framework's arrays."""
        result: tuple[Any, Any] = self.run(*example)
        self.framework.wait(result)
        return result

    @property
    def observed(self) -> Observed:
        """What the framework tells of this step."""
        return self.framework.observed(self.run).since(self.before)

    @property
    def compiles(self) -> int:
        """The compilations so far."""
        return len(self.observed.compilations)

    def computed(self, lengths: Sequence[int]) -> int:
        """The elements computed in an epoch of examples of these useful lengths: more where the arm pads."""
        return sum(lengths)


class WorkloadStep(BuiltStep):
    """One arm of a case in a framework: parameters stand before each example."""

    def __init__(self, framework: Framework, arm: str, case: Case) -> None:
        padded = arm.endswith(PADDED)
        mode = arm.removesuffix(PADDED)
        loss = case.masked if padded else framework.loss(mode, case)
        if loss is None:
            raise UnsupportedError(f"{arm}: the workload has no masked loss: padding would change its result")
        given = longest(case) if padded else case.examples
        run = framework.build(mode, loss, case.argnum)
        self.params = framework.arrays(case.params)
        super().__init__(framework, run, tuple(map(framework.arrays, given)))
        self.longest = max(case.lengths) if padded else 0

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The loss and the gradients of the parameters, as the framework's arrays."""
        return super().__call__(self.params, *example)

    def computed(self, lengths: Sequence[int]) -> int:
        """See the base."""
        return self.longest * len(lengths) or sum(lengths)


def longest(case: Case) -> tuple[Example, ...]:
    """Every example with its mask, padded to the longest."""
    dims = masked_dims(case)[1:]
    masked = [case.masked_example(index) for index in range(len(case.examples))]
    names = axis_names(dims, masked[0])
    sizes = [named_sizes(tree.leaves(example), names) for example in masked]
    largest = {name: max(size[name] for size in sizes) for name in sizes[0]}

    def padded(example: Example) -> Example:
        leaves, structure = tree.flatten(example)
        wide = [pad_axes(leaf, axes, largest) for leaf, axes in zip(leaves, names, strict=True)]
        found: Example = tree.unflatten(structure, wide)
        return found

    return tuple(map(padded, masked))
