"""The strategies for inputs of varying length: padding, batching and compilation, each a factor of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

import dynamic
import graphs
import static
from compare.errors import UnsupportedError
from compare.instruments.lengths import layouts
from compare.instruments.lengths.layouts import Group, Layout
from compare.instruments.lengths.models import Stream
from compare.workloads.base import Example

Compilation = Literal["never", "each shape", "once"]
Padding = Literal["none", "powers of two", "optimal buckets", "the maximum", "the longest in the batch"]
Batching = Literal["one by one", "padded", "on the fly"]
Step = Callable[..., Any]


@dataclass(frozen=True)
class Arm:
    """A strategy ready to run over a stream: `step(params, *what the call is given)` for each group of examples.

    The loss of a call is the mean over the examples of its group, and its gradients are those of that mean. `sizes` are
    the elements computed for each group.
    """

    stream: Stream
    groups: tuple[Group, ...]
    step: Step
    sizes: tuple[int, ...]
    given: Callable[[Sequence[Example]], tuple[Any, ...]]
    jitted: static.Jitted | None = None

    def __call__(self, index: int) -> tuple[Any, Any]:
        """The mean loss of a group, and its gradients; padding and stacking belong to the call."""
        examples = [self.stream.examples[i] for i in self.groups[index]]
        result: tuple[Any, Any] = self.step(self.stream.params, *self.given(examples))
        return result

    def epoch(self) -> None:
        """Every group once."""
        for index in range(len(self.groups)):
            self(index)

    @property
    def compiles(self) -> int:
        """The graphs compiled so far."""
        return self.jitted.stats.compiles if self.jitted else 0

    @property
    def plans(self) -> dict[int, int]:
        """The bytes of each graph in the cache, by the size it is for: structure, constants, arenas and results.

        A graph of symbolic sizes has size 0, and arenas of all sizes that it met.
        """
        found = {}
        for executable in self.jitted.executables.values() if self.jitted else ():
            size, report = executable.graph.inputs[-1].spec.shape[-1], executable.report()
            held = report.structure_bytes + report.constant_bytes + report.arena_bytes + report.result_bytes
            found[size if isinstance(size, int) else 0] = held
        return found


@dataclass(frozen=True)
class Strategy:
    """A combination of the factors, what makes an arm of it, and what it makes of any lengths in batches of a size."""

    name: str
    compilation: Compilation
    padding: Padding
    batching: Batching
    build: Callable[[Stream], Arm]
    layout: Callable[[Sequence[int], int], Layout] = layouts.eager

    @property
    def engine(self) -> str:
        """dynamic or static."""
        return "dynamic" if self.compilation == "never" else "static"


def _arm(
    stream: Stream, layout: Callable[[Sequence[int], int], Layout], step: Step, given: Any, jitted: Any = None
) -> Arm:
    laid = layout(stream.lengths, stream.batch)
    return Arm(stream, laid.groups, step, laid.sizes, given, jitted)


# One by one -----------------------------------------------------------------------------------------------------


def _one(examples: Sequence[Example]) -> Example:
    return examples[0]


def _with_mask(examples: Sequence[Example]) -> Example:
    return (*examples[0], np.ones(len(examples[0][0]), np.bool_))


def _dynamic(stream: Stream) -> Arm:
    return _arm(stream, layouts.eager, dynamic.value_and_grad(stream.model.loss), _one)


def _exact(stream: Stream) -> Arm:
    jitted = static.jit(static.value_and_grad(stream.model.loss), limit=None)
    return _arm(stream, layouts.exact, jitted, _one, jitted)


def _symbolic(stream: Stream) -> Arm:
    return _any_length(stream, stream.model.loss)


def _scanned(stream: Stream) -> Arm:
    if stream.model.scanned is None:
        raise UnsupportedError(f"{stream.model.name} has no loop over the length that could be one op")
    return _any_length(stream, stream.model.scanned)


def _any_length(stream: Stream, loss: Step) -> Arm:
    dims = (None, *[("T",)] * len(stream.examples[0]))
    jitted = static.jit(static.value_and_grad(loss), shapes="symbolic", dims=dims, limit=None)
    return _arm(stream, layouts.symbolic, jitted, _one, jitted)


def _padded(stream: Stream, layout: Callable[[Sequence[int], int], Layout], buckets: Sequence[int] | None) -> Arm:
    dims = (None, *[("T",)] * (len(stream.examples[0]) + 1))
    step = static.value_and_grad(stream.model.masked)
    jitted = static.jit(step, shapes="bucket", dims=dims, buckets=buckets, limit=None, check=False)
    return _arm(stream, layout, jitted, _with_mask, jitted)


def _powers(stream: Stream) -> Arm:
    return _padded(stream, layouts.powers, None)


def _optimal(stream: Stream) -> Arm:
    return _padded(stream, layouts.optimal, layouts.buckets(stream.lengths))


def _maximum(stream: Stream) -> Arm:
    return _padded(stream, layouts.maximum, (max(stream.lengths),))


# In batches -----------------------------------------------------------------------------------------------------


def collated(examples: Sequence[Example]) -> tuple[Any, ...]:
    """A batch padded with zeros to its longest example, and the mask of what is no padding: [B, T] each."""
    lengths = np.array([len(example[0]) for example in examples])
    mask = np.arange(lengths.max()) < lengths[:, None]
    columns = []
    for column in zip(*examples, strict=True):
        batch = np.zeros(mask.shape, column[0].dtype)
        batch[mask] = np.concatenate(column)
        columns.append(batch)
    return (*columns, mask)


def _dynamic_batches(stream: Stream) -> Arm:
    return _arm(stream, layouts.batches, dynamic.value_and_grad(stream.model.batched), collated)


def _static_batches(stream: Stream) -> Arm:
    dims = (None, *[("B", "T")] * (len(stream.examples[0]) + 1))
    loss = stream.model.batched_scanned or stream.model.batched
    jitted = static.jit(static.value_and_grad(loss), shapes="symbolic", dims=dims, limit=None)
    return _arm(stream, layouts.compiled_batches, jitted, collated, jitted)


def _on_the_fly(stream: Stream) -> Arm:
    def loss(params: Any, *examples: Example) -> Any:
        with dynamic.batched():
            return graphs.mean(graphs.stack([stream.model.loss(params, *example) for example in examples]))

    return _arm(stream, layouts.gathered, dynamic.value_and_grad(loss), tuple)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy("dynamic", "never", "none", "one by one", _dynamic, layouts.eager),
            Strategy(
                "dynamic, padded batches",
                "never",
                "the longest in the batch",
                "padded",
                _dynamic_batches,
                layouts.batches,
            ),
            Strategy("dynamic, batched on the fly", "never", "none", "on the fly", _on_the_fly, layouts.gathered),
            Strategy("static, exact", "each shape", "none", "one by one", _exact, layouts.exact),
            Strategy("static, symbolic", "once", "none", "one by one", _symbolic, layouts.symbolic),
            Strategy("static, symbolic scan", "once", "none", "one by one", _scanned, layouts.symbolic),
            Strategy("static, powers of two", "each shape", "powers of two", "one by one", _powers, layouts.powers),
            Strategy(
                "static, optimal buckets", "each shape", "optimal buckets", "one by one", _optimal, layouts.optimal
            ),
            Strategy("static, the maximum", "once", "the maximum", "one by one", _maximum, layouts.maximum),
            Strategy(
                "static, padded batches",
                "once",
                "the longest in the batch",
                "padded",
                _static_batches,
                layouts.compiled_batches,
            ),
        )
    }
)
"""The nine ways people take inputs of varying length, and static graphs on padded batches, which completes factors."""
