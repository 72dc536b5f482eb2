"""The cost of each strategy for inputs of varying length, over a stream of them, in one worker process.

A strategy combines padding, batching and compilation, as separate factors (`STRATEGIES`). Its first epoch starts from
nothing, and its results are compared with a float64 reference; a strategy that differs is not timed further, and none
of its times are kept. Then all that are right take turns in rounds.
"""

from __future__ import annotations

import functools
import gc
import inspect
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from random import Random
from statistics import median
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import numpy as np

import dynamic
import graphs
import static
from compare import engines
from compare.engines.graphduel.adapter import SYMBOLIC
from compare.engines.nudge import DOUBLE
from compare.engines.step import BoundCall, Function, Step
from compare.errors import UnsupportedError
from compare.instruments import parity
from compare.instruments.bench import Bench
from compare.instruments.references import References
from compare.instruments.rounds import orders, time_call, without_collection
from compare.instruments.standard import Result, Standard
from compare.instruments.timing import first_epoch, no_limit, steady_rounds
from compare.records.cells import GroupCall, Lengths, StrategyRow
from compare.records.job import Job
from compare.workloads.base import Case, Example
from compare.workloads.lengths import Loss, SequenceModel, Stream, draw_lengths, stream
from graphs import tree
from static.call.policies import Boundaries, power_of_two

Group = tuple[int, ...]
LengthList = Sequence[int]
MOST_SIZES = 3000
"""The most different lengths for which optimal buckets are searched: that takes memory quadratic in their number."""
Arguments = Callable[[Sequence[Example]], tuple[Any, ...]]
"""A function from the examples of a group to the arguments of its call."""
KEPT = inspect.signature(static.jit).parameters["limit"].default or 0
"""The default number of graphs that `static.jit` keeps; 0 for all."""


class CallLayout(NamedTuple):
    """For each call its examples, the number of elements that it computes, and the size its graph is compiled for.

    A graph of symbolic sizes has size 0; without graphs `shapes` is empty. Where several axes vary, `sizes` count the
    elements of an array that has all of them, and shapes are tuples.
    """

    groups: tuple[Group, ...]
    sizes: tuple[int, ...]
    shapes: tuple[Hashable, ...]

    @property
    def compiles(self) -> int:
        """Return how many graphs are compiled if all are kept."""
        return len(set(self.shapes))

    def compiles_of(self, kept: int) -> int:
        """Return how many graphs are compiled if the `kept` last used ones are kept; 0 keeps all."""
        graph = functools.lru_cache(kept or None)(lambda shape: shape)
        for shape in self.shapes:
            graph(shape)
        return graph.cache_info().misses

    @property
    def hits(self) -> float:
        """Return the share of calls that find their graph, if all are kept."""
        return 1 - self.compiles / len(self.groups)


def combine_layouts(parts: Sequence[CallLayout], columns: Sequence[LengthList], pads: bool) -> CallLayout:
    """Return the layout of a stream in which several axes vary, from the layouts of each axis."""
    groups = parts[0].groups
    if pads:
        counts = [len(group) for group in groups]
        each = zip(counts, *(part.sizes for part in parts), strict=True)
        sizes = tuple(math.prod(sizes) // count ** (len(parts) - 1) for count, *sizes in each)
    else:
        elements = [math.prod(sizes) for sizes in zip(*columns, strict=True)]
        sizes = tuple(sum(elements[i] for i in group) for group in groups)
    return CallLayout(groups, sizes, tuple(zip(*(part.shapes for part in parts), strict=True)))


def buckets(lengths: LengthList) -> tuple[int, ...]:
    """Return as many optimal buckets as powers of two would need, so that only their places differ."""
    return static.buckets.optimal(lengths, len({power_of_two("T", length) for length in lengths}))


def in_batches(count: int, batch: int) -> tuple[Group, ...]:
    """Return the indices of the examples of each batch, in stream order."""
    return tuple(tuple(range(start, min(start + batch, count))) for start in range(0, count, batch))


Compilation = Literal["never", "each shape", "once"]
Padding = Literal["none", "powers of two", "optimal buckets", "the maximum", "the longest in the batch"]
Batching = Literal["one by one", "padded", "on the fly"]


class ReadyStrategy(Step):
    """A strategy ready to run over a stream: `built(params, *arguments)` for each group of examples.

    A call takes the index of a group. Its loss is the mean over the examples of the group, and its gradients are those
    of the mean; padding and stacking belong to the call.
    """

    def __init__(self, stream: Stream, laid: CallLayout, built: Function, arguments: Arguments) -> None:
        super().__init__(engines.find_engine(engines.OWN), built, tuple((index,) for index in range(len(laid.groups))))
        self.stream, self.laid, self.arguments = stream, laid, arguments

    def ready(self, index: int) -> BoundCall:
        """Bind the call of a group, which returns the mean loss and its gradients."""
        return BoundCall(partial(self._of_group, index))

    def _of_group(self, index: int) -> tuple[Any, Any]:
        examples = [self.stream.examples[i] for i in self.laid.groups[index]]
        result: tuple[Any, Any] = self.built(self.stream.params, *self.arguments(examples))
        return result

    def computed(self, lengths: Sequence[int]) -> int:
        """Return the number of elements that the strategy's layout computes."""
        return sum(self.laid.sizes)

    @property
    def plans(self) -> dict[int, int]:
        """Return the bytes held for each cached graph, by its size: structure, constants, arenas and results.

        A graph of symbolic sizes has size 0, and arenas of all its sizes.
        """
        plans = {}
        for executable in self.built.executables.values() if isinstance(self.built, static.Jitted) else ():
            size, report = executable.graph.inputs[-1].spec.shape[-1], executable.report()
            held = report.structure_bytes + report.constant_bytes + report.arena_bytes + report.result_bytes
            plans[size if isinstance(size, int) else 0] = held
        return plans


@dataclass(frozen=True)
class Strategy:
    """A combination of the factors; `loss` picks the function of a model that it runs."""

    name: str
    compilation: Compilation
    padding: Padding
    batching: Batching
    loss: Callable[[SequenceModel], Loss]

    @property
    def engine(self) -> str:
        """Return "dynamic" or "static"."""
        return "dynamic" if self.compilation == "never" else "static"

    @property
    def mode(self) -> str:
        """Return the mode whose engine says which errors are refusals."""
        return SYMBOLIC.name if self.symbolic else self.engine

    @property
    def symbolic(self) -> bool:
        """Return whether one graph serves all sizes without padding."""
        return self.compilation == "once" and self.padding != "the maximum"

    def build(self, stream: Stream) -> ReadyStrategy:
        """Return the strategy's step over a stream. Raises UnsupportedError for a model without the loss it needs."""
        loss, laid = self.loss(stream.model), self.layout(stream.lengths, stream.batch)
        if self.engine == "dynamic":
            step: Function = dynamic.value_and_grad(loss)
        else:
            step = static.jit(static.value_and_grad(loss), limit=None, **self._policy(stream))
        alone = itemgetter(0) if self.padding == "none" else _with_mask
        arguments: Mapping[str, Any] = {"padded": collate, "on the fly": tuple, "one by one": alone}
        return ReadyStrategy(stream, laid, step, arguments[self.batching])

    def layout(self, lengths: LengthList, batch: int) -> CallLayout:
        """Return the layout of a stream in batches of a size."""
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

    def _buckets(self, lengths: LengthList) -> tuple[int, ...] | None:
        """Return the lengths to pad to; None for powers of two."""
        if self.padding == "the maximum":
            return (max(lengths),)
        return buckets(lengths) if self.padding == "optimal buckets" else None

    def _policy(self, stream: Stream) -> dict[str, Any]:
        """Return the options of `static.jit`."""
        axes = ("B", "T") if self.batching == "padded" else ("T",)
        dims = (None, *[axes] * (len(stream.examples[0]) + (self.padding != "none")))  # the mask is one argument more
        if self.symbolic:
            return {"shapes": "symbolic", "dims": dims}
        if self.padding == "none":
            return {"shapes": "exact"}
        return {"shapes": "bucket", "dims": dims, "buckets": self._buckets(stream.lengths), "check": False}


def _with_mask(examples: Sequence[Example]) -> Example:
    return (*examples[0], np.ones(len(examples[0][0]), np.bool_))


def collate(examples: Sequence[Example]) -> tuple[Any, ...]:
    """Return a batch padded with zeros to its longest example, and the mask of real elements; each is [B, T]."""
    lengths = np.array([len(example[0]) for example in examples])
    mask = np.arange(lengths.max()) < lengths[:, None]
    columns = []
    for column in zip(*examples, strict=True):
        batch = np.zeros(mask.shape, column[0].dtype)
        batch[mask] = np.concatenate(column)
        columns.append(batch)
    return (*columns, mask)


_loss: Callable[[SequenceModel], Loss] = attrgetter("loss")
_masked: Callable[[SequenceModel], Loss] = attrgetter("masked")


def _scanned_loss(model: SequenceModel) -> Loss:
    if model.scanned is None:
        raise UnsupportedError(f"{model.name} has no loop over the length that could be one op")
    return model.scanned


def _on_the_fly(model: SequenceModel) -> Loss:
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
            Strategy("static, symbolic scan", "once", "none", "one by one", _scanned_loss),
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
"""The nine usual ways to take inputs of varying length, and static graphs on padded batches to complete the factors."""


# The measurement ------------------------------------------------------------------------------------------------------


Results = list[tuple[Any, Any]]
CHECKED = 8
"""The number of groups of a strategy that are compared with the reference, from the shortest to the longest."""
LATENCY_EPOCHS = 3
"""The number of steady epochs in which each call is timed alone; a latency is their median."""


class Size(NamedTuple):
    """The extent of a measurement: number of examples, longest length (not of a user's file), width, batch size."""

    examples: int
    longest: int
    width: int
    batch: int


SIZES: Mapping[str, Size] = {
    "small": Size(examples=10, longest=20, width=32, batch=5),
    "medium": Size(examples=40, longest=56, width=64, batch=10),
}


def measure(job: Job) -> Lengths:
    """Return the record of one process: one model, one distribution of lengths, every strategy."""
    size = SIZES[str(job.size)]
    lengths = job.examples or draw_lengths(str(job.lengths), size.examples, job.seed, size.longest)
    inputs = stream(str(job.workload), lengths, size.width, size.batch, job.seed)
    gc.freeze()  # keeps loaded objects out of each collection below
    return Lengths(**job.head, examples=list(lengths), modes=measure_strategies(inputs, job))


class StrategyBench(Bench):
    """A stream under a strategy; each group of examples is a call. `exact` has the float64 results of each example."""

    def __init__(self, strategy: Strategy, inputs: Stream, exact: Results) -> None:
        case = Case(inputs.model.loss, inputs.params, tuple(inputs.examples), tuple(inputs.lengths))
        super().__init__(engines.find_engine(engines.OWN), case, lambda _mode, _case: strategy.build(inputs))
        self.laid, self.exact = strategy.layout(inputs.lengths, inputs.batch), exact
        self.lengths = [sum(inputs.lengths[i] for i in group) for group in self.laid.groups]
        compared = parity.sample(self.lengths, CHECKED)
        expected = {index: Standard(self._mean(self.laid.groups[index])) for index in compared}
        self.varies, self.references = True, References(expected)

    def _mean(self, group: Group) -> Result:
        columns = zip(*(self.exact[i] for i in group), strict=True)
        return tuple(tree.tree_map(lambda *each: np.mean(each, axis=0), *part) for part in columns)

    def form(self, index: int) -> int:
        """Return the number of elements computed for the group."""
        return self.laid.sizes[index]

    def blames(self, mode: str) -> bool:
        """Return False: an error of a strategy is its own result."""
        return False


def measure_strategies(inputs: Stream, job: Job) -> dict[str, StrategyRow]:
    """Return the row of each strategy: its times, or why it has none."""
    rng, exact = job.random(), reference(inputs)
    names = job.modes or tuple(STRATEGIES)
    ready, rows = dict[str, ReadyStrategy](), dict[str, StrategyRow]()
    for name in rng.sample(names, len(names)):
        step, rows[name] = first_run(STRATEGIES[name], inputs, exact)
        if step:
            ready[name] = step
    if ready:
        settled = steady_rounds(ready, job.budget, rng).settled()
        latencies = steady_calls(ready, rng)
        for name, step in ready.items():
            row, (is_steady, blocks) = rows[name], settled[name]
            row.latency, row.steady = latencies[name], is_steady
            row.blocks = [seconds / len(inputs.lengths) for seconds in blocks]
            row.compiles, row.useful, row.computed = step.compiles, sum(inputs.lengths), sum(step.laid.sizes)
            row.held, row.plans = sum(step.plans.values()), [[size, held] for size, held in sorted(step.plans.items())]
    return {name: rows[name] for name in names}


def reference(inputs: Stream) -> Results:
    """Return the loss and gradients of each example in float64, by the dynamic engine, unpadded and alone."""
    params = engines.find_engine(engines.OWN).numbers.changed(inputs.params, DOUBLE)
    step = dynamic.value_and_grad(inputs.model.loss)
    return [step(params, *example) for example in inputs.examples]


def first_run(strategy: Strategy, inputs: Stream, exact: Results) -> tuple[ReadyStrategy | None, StrategyRow]:
    """Time each call of a strategy's first epoch; return its step if the results are right, and its row."""
    bench = StrategyBench(strategy, inputs, exact)
    epoch = first_epoch(bench, strategy.mode, no_limit)
    off = max((error for error in epoch.judged.errors if error is not None), default=0.0)
    row = StrategyRow(epoch.status, epoch.reason, strategy.compilation, strategy.padding, strategy.batching, off)
    if epoch.status != "ok":
        return None, row
    row.build = epoch.build
    for group, call in zip(bench.laid.groups, epoch.calls, strict=True):
        row.stream.append(GroupCall(len(group), call.seconds, call.compiled))
    return cast(ReadyStrategy, epoch.step), row


def steady_calls(ready: Mapping[str, ReadyStrategy], rng: Random) -> dict[str, list[float]]:
    """Return the steady seconds of each call, by strategies in turn: how long an example waits for its group."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in ready}
    for order, _ in zip(orders(tuple(ready), rng), range(LATENCY_EPOCHS), strict=False):
        with without_collection():
            for name in order:
                step = ready[name]
                seconds[name].append([time_call(step.bind(index).run)[0] for index in range(len(step.examples))])
    return {name: [median(call) for call in zip(*epochs, strict=True)] for name, epochs in seconds.items()}
