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
from compare.instruments.lengths.layouts import CallLayout, Group, Lengths, buckets, in_batches
from compare.instruments.lengths.models import Loss, Model, Stream
from compare.workloads.base import Example
from static.call.policies import Boundaries, power_of_two

Compilation = Literal["never", "each shape", "once"]
Padding = Literal["none", "powers of two", "optimal buckets", "the maximum", "the longest in the batch"]
Batching = Literal["one by one", "padded", "on the fly"]


@dataclass(frozen=True)
class ReadyStrategy:
    """A strategy ready to run over a stream: `step(params, *what the call is given)` for each group of examples.

    The loss of a call is the mean over the examples of its group, and its gradients are those of that mean. `sizes` are
    the elements computed for each group.
    """

    stream: Stream
    groups: tuple[Group, ...]
    sizes: tuple[int, ...]
    step: Callable[..., Any]
    arguments: Callable[[Sequence[Example]], tuple[Any, ...]]

    def __call__(self, index: int) -> tuple[Any, Any]:
        """The mean loss of a group, and its gradients; padding and stacking belong to the call."""
        examples = [self.stream.examples[i] for i in self.groups[index]]
        result: tuple[Any, Any] = self.step(self.stream.params, *self.arguments(examples))
        return result

    def epoch(self) -> None:
        """Every group once."""
        for index in range(len(self.groups)):
            self(index)

    @property
    def compiles(self) -> int:
        """The graphs compiled so far."""
        return self.step.stats.compiles if isinstance(self.step, static.Jitted) else 0

    @property
    def plans(self) -> dict[int, int]:
        """The bytes of each graph in the cache, by the size it is for: structure, constants, arenas and results.

        A graph of symbolic sizes has size 0, and arenas of all its sizes.
        """
        plans = {}
        for executable in self.step.executables.values() if isinstance(self.step, static.Jitted) else ():
            size, report = executable.graph.inputs[-1].spec.shape[-1], executable.report()
            held = report.structure_bytes + report.constant_bytes + report.arena_bytes + report.result_bytes
            plans[size if isinstance(size, int) else 0] = held
        return plans


@dataclass(frozen=True)
class Strategy:
    """A combination of the factors; `loss` is the function of a model that is run so."""

    name: str
    compilation: Compilation
    padding: Padding
    batching: Batching
    loss: Callable[[Model], Loss]

    @property
    def engine(self) -> str:
        """dynamic or static."""
        return "dynamic" if self.compilation == "never" else "static"

    @property
    def symbolic(self) -> bool:
        """Whether one graph serves all sizes as they are."""
        return self.compilation == "once" and self.padding != "the maximum"

    def build(self, stream: Stream) -> ReadyStrategy:
        """The arm over a stream. Raises UnsupportedError for a model without such a loss."""
        loss, laid = self.loss(stream.model), self.layout(stream.lengths, stream.batch)
        if self.engine == "dynamic":
            step: Callable[..., Any] = dynamic.value_and_grad(loss)
        else:
            step = static.jit(static.value_and_grad(loss), limit=None, **self._policy(stream))
        alone = _one if self.padding == "none" else _with_mask
        arguments: Mapping[str, Any] = {"padded": collated, "on the fly": tuple, "one by one": alone}
        return ReadyStrategy(stream, laid.groups, laid.sizes, step, arguments[self.batching])

    def layout(self, lengths: Lengths, batch: int) -> CallLayout:
        """What the strategy makes of a stream, in batches of a size."""
        groups = in_batches(len(lengths), 1 if self.batching == "one by one" else batch)
        if self.padding == "none":
            sizes = tuple(sum(lengths[i] for i in group) for group in groups)
        elif self.padding == "the longest in the batch":
            sizes = tuple(len(group) * max(lengths[i] for i in group) for group in groups)
        else:
            places = self._buckets(lengths)
            boundary = Boundaries(places) if places else power_of_two
            padded = {length: boundary("T", length) for length in set(lengths)}
            sizes = tuple(padded[length] for length in lengths)
        shapes = (0,) * len(groups) if self.symbolic else sizes
        return CallLayout(groups, sizes, () if self.engine == "dynamic" else shapes)

    def _buckets(self, lengths: Lengths) -> tuple[int, ...] | None:
        """The lengths that are padded to; None for powers of two."""
        if self.padding == "the maximum":
            return (max(lengths),)
        return buckets(lengths) if self.padding == "optimal buckets" else None

    def _policy(self, stream: Stream) -> dict[str, Any]:
        """The options of `static.jit`."""
        axes = ("B", "T") if self.batching == "padded" else ("T",)
        dims = (None, *[axes] * (len(stream.examples[0]) + (self.padding != "none")))  # the mask is one more
        if self.symbolic:
            return {"shapes": "symbolic", "dims": dims}
        if self.padding == "none":
            return {"shapes": "exact"}
        return {"shapes": "bucket", "dims": dims, "buckets": self._buckets(stream.lengths), "check": False}


def _one(examples: Sequence[Example]) -> Example:
    return examples[0]


def _with_mask(examples: Sequence[Example]) -> Example:
    return (*examples[0], np.ones(len(examples[0][0]), np.bool_))


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


def _loss(model: Model) -> Loss:
    return model.loss


def _masked(model: Model) -> Loss:
    return model.masked


def _scanned(model: Model) -> Loss:
    if model.scanned is None:
        raise UnsupportedError(f"{model.name} has no loop over the length that could be one op")
    return model.scanned


def _on_the_fly(model: Model) -> Loss:
    def loss(params: Any, *examples: Example) -> Any:
        with dynamic.batched():
            return graphs.mean(graphs.stack([model.loss(params, *example) for example in examples]))

    return loss


_LONGEST: Padding = "the longest in the batch"
STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy("dynamic", "never", "none", "one by one", _loss),
            Strategy("dynamic, padded batches", "never", _LONGEST, "padded", lambda model: model.batched),
            Strategy("dynamic, batched on the fly", "never", "none", "on the fly", _on_the_fly),
            Strategy("static, exact", "each shape", "none", "one by one", _loss),
            Strategy("static, symbolic", "once", "none", "one by one", _loss),
            Strategy("static, symbolic scan", "once", "none", "one by one", _scanned),
            Strategy("static, powers of two", "each shape", "powers of two", "one by one", _masked),
            Strategy("static, optimal buckets", "each shape", "optimal buckets", "one by one", _masked),
            Strategy("static, the maximum", "once", "the maximum", "one by one", _masked),
            Strategy(
                "static, padded batches",
                "once",
                _LONGEST,
                "padded",
                lambda model: model.batched_scanned or model.batched,
            ),
        )
    }
)
"""The nine ways people take inputs of varying length, and static graphs on padded batches, which completes factors."""
