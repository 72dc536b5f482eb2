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
from compare.lengths.models import Stream
from compare.workloads.base import Example
from static.shapes import Boundaries, power_of_two

Compilation = Literal["never", "each shape", "once"]
Padding = Literal["none", "powers of two", "optimal buckets", "the maximum", "the longest in the batch"]
Batching = Literal["one by one", "padded", "on the fly"]
Group = tuple[int, ...]
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
    def held(self) -> int:
        """Bytes of the graphs in the cache: their structure, constants and arenas of all sizes."""
        reports = [executable.report() for executable in self.jitted.executables.values()] if self.jitted else []
        return sum(r.structure_bytes + r.constant_bytes + r.arena_bytes + r.result_bytes for r in reports)


@dataclass(frozen=True)
class Strategy:
    """A combination of the factors, and what makes an arm of it."""

    name: str
    compilation: Compilation
    padding: Padding
    batching: Batching
    build: Callable[[Stream], Arm]

    @property
    def engine(self) -> str:
        """dynamic or static."""
        return "dynamic" if self.compilation == "never" else "static"


# One by one -----------------------------------------------------------------------------------------------------


def _alone(stream: Stream) -> tuple[Group, ...]:
    return tuple((i,) for i in range(len(stream.lengths)))


def _one(examples: Sequence[Example]) -> Example:
    return examples[0]


def _with_mask(examples: Sequence[Example]) -> Example:
    return (*examples[0], np.ones(len(examples[0][0]), np.bool_))


def _dynamic(stream: Stream) -> Arm:
    return Arm(stream, _alone(stream), dynamic.value_and_grad(stream.model.loss), stream.lengths, _one)


def _exact(stream: Stream) -> Arm:
    jitted = static.jit(static.value_and_grad(stream.model.loss), limit=None)
    return Arm(stream, _alone(stream), jitted, stream.lengths, _one, jitted)


def _symbolic(stream: Stream) -> Arm:
    return _any_length(stream, stream.model.loss)


def _scanned(stream: Stream) -> Arm:
    if stream.model.scanned is None:
        raise UnsupportedError(f"{stream.model.name} has no loop over the length that could be one op")
    return _any_length(stream, stream.model.scanned)


def _any_length(stream: Stream, loss: Step) -> Arm:
    dims = (None, *[("T",)] * len(stream.examples[0]))
    jitted = static.jit(static.value_and_grad(loss), shapes="symbolic", dims=dims, limit=None)
    return Arm(stream, _alone(stream), jitted, stream.lengths, _one, jitted)


def _padded(stream: Stream, boundary: Callable[[str, int], int], buckets: Sequence[int] | None) -> Arm:
    dims = (None, *[("T",)] * (len(stream.examples[0]) + 1))
    step = static.value_and_grad(stream.model.masked)
    jitted = static.jit(step, shapes="bucket", dims=dims, buckets=buckets, limit=None, check=False)
    sizes = tuple(boundary("T", length) for length in stream.lengths)
    return Arm(stream, _alone(stream), jitted, sizes, _with_mask, jitted)


def _powers(stream: Stream) -> Arm:
    return _padded(stream, power_of_two, None)


def _optimal(stream: Stream) -> Arm:
    """As many buckets as powers of two take, so that their places alone differ."""
    count = len({power_of_two("T", length) for length in stream.lengths})
    return _bounded(stream, static.buckets.optimal(stream.lengths, count))


def _maximum(stream: Stream) -> Arm:
    return _bounded(stream, (max(stream.lengths),))


def _bounded(stream: Stream, buckets: Sequence[int]) -> Arm:
    return _padded(stream, Boundaries(buckets), buckets)


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


def _batch_sizes(stream: Stream) -> tuple[int, ...]:
    return tuple(len(group) * max(stream.lengths[i] for i in group) for group in stream.batches)


def _dynamic_batches(stream: Stream) -> Arm:
    return Arm(stream, stream.batches, dynamic.value_and_grad(stream.model.batched), _batch_sizes(stream), collated)


def _static_batches(stream: Stream) -> Arm:
    dims = (None, *[("B", "T")] * (len(stream.examples[0]) + 1))
    loss = stream.model.batched_scanned or stream.model.batched
    jitted = static.jit(static.value_and_grad(loss), shapes="symbolic", dims=dims, limit=None)
    return Arm(stream, stream.batches, jitted, _batch_sizes(stream), collated, jitted)


def _on_the_fly(stream: Stream) -> Arm:
    def loss(params: Any, *examples: Example) -> Any:
        with dynamic.batched():
            return graphs.mean(graphs.stack([stream.model.loss(params, *example) for example in examples]))

    sizes = tuple(sum(stream.lengths[i] for i in group) for group in stream.batches)
    return Arm(stream, stream.batches, dynamic.value_and_grad(loss), sizes, tuple)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy("dynamic", "never", "none", "one by one", _dynamic),
            Strategy("dynamic, padded batches", "never", "the longest in the batch", "padded", _dynamic_batches),
            Strategy("dynamic, batched on the fly", "never", "none", "on the fly", _on_the_fly),
            Strategy("static, exact", "each shape", "none", "one by one", _exact),
            Strategy("static, symbolic", "once", "none", "one by one", _symbolic),
            Strategy("static, symbolic scan", "once", "none", "one by one", _scanned),
            Strategy("static, powers of two", "each shape", "powers of two", "one by one", _powers),
            Strategy("static, optimal buckets", "each shape", "optimal buckets", "one by one", _optimal),
            Strategy("static, the maximum", "once", "the maximum", "one by one", _maximum),
            Strategy("static, padded batches", "once", "the longest in the batch", "padded", _static_batches),
        )
    }
)
"""The nine ways people take inputs of varying length, and static graphs on padded batches, which completes factors."""
