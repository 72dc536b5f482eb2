"""Random programs over the op library, as data, and two ways to run them: `graphs` and plain NumPy in float64.

The same seed gives the same program. It is a DAG with shared values, dead branches, broadcasting, float32 beside
float64, and now and then an axis of size 0 or 1. Every step is drawn with its values at hand, so that it lies in the
domain of its op and away from jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import graphs as g
from tests.random_ops import FAMILIES, KINDS, Array, Kind, Options, Random, Value, places

MARGIN = 1e-3  # how far every element stays from a jump
LARGEST = 30.0  # values above are not drawn, nor are arrays of more elements than MANY
MANY = 300
BATCH = (5, 6)  # sizes of the axis that may be symbolic; all other axes have other sizes


class Step(NamedTuple):
    """One op on values before it."""

    kind: Kind
    sources: tuple[int, ...]
    options: Options

    def __str__(self) -> str:
        values = [f"v{i}" for i in self.sources]
        return f"{self.kind.name}({', '.join([*values, *(f'{k}={v!r}' for k, v in self.options.items())])})"


@dataclass(frozen=True)
class Program:
    """Steps on inputs; `outputs` are the values that the loss reads, all others may be dead.

    smooth    no element is near a kink, and nothing is held constant: finite differences give the gradient
    """

    seed: int
    inputs: tuple[Array, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    smooth: bool

    @property
    def plain(self) -> bool:
        """Whether every step is the same ops in both engines: no control flow, no arrays made on the way."""
        return not any(step.kind.differs for step in self.steps)

    def values(self, inputs: Any) -> list[Value]:
        """Every value, by the op library."""
        values = list(inputs)
        for step in self.steps:
            values.append(step.kind.ours(*(values[i] for i in step.sources), **step.options))
        return values

    def __call__(self, inputs: list[Value]) -> Value:
        """A scalar in which each element of each output counts differently."""
        values = self.values(inputs)
        total: Value = 0.5
        for i in self.outputs:
            flat = g.reshape(values[i], (-1,))
            total = total + g.sum(g.sin(flat + places(flat) * 0.7))
        return total

    def reference_values(self, inputs: Any) -> list[Array]:
        """Every value, by NumPy in float64."""
        values = [np.asarray(x, np.float64) for x in inputs]
        for step in self.steps:
            values.append(np.asarray(step.kind.numpy(*(values[i] for i in step.sources), **step.options), np.float64))
        return values

    def reference(self, inputs: Any) -> float:
        """The scalar, by NumPy in float64."""
        values = self.reference_values(inputs)
        flat = [values[i].reshape(-1) for i in self.outputs]
        return 0.5 + sum(float(np.sum(np.sin(x + np.arange(x.size) * 0.7))) for x in flat)

    def __str__(self) -> str:
        specs = [f"{g.TensorSpec(x.shape, x.dtype)}" for x in self.inputs]
        lines = [f"seed {self.seed}: inputs {', '.join(specs)}"]
        lines += [f"  v{i} = {step}" for i, step in enumerate(self.steps, len(self.inputs))]
        return "\n".join([*lines, f"  return {', '.join(f'v{i}' for i in self.outputs)}"])


def random_program(seed: int) -> Program:
    """The program of this seed, with 4 to 14 steps beside those that bring values into a domain."""
    random = np.random.default_rng(seed)
    draft = _Draft(random)
    for _ in range(random.integers(4, 15)):
        draft.extend()
    count = len(draft.values)
    others = random.choice(count, size=min(count, int(random.integers(0, 4))), replace=False)
    outputs = tuple(dict.fromkeys([count - 1, *map(int, others)]))
    return Program(seed, tuple(draft.inputs), tuple(draft.steps), outputs, draft.smooth)


class _Draft:
    """A program that grows, with the value of each step."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.inputs = [self._input(shape) for shape in self._shapes()]
        self.values = [np.asarray(x, np.float64) for x in self.inputs]
        self.steps: list[Step] = []
        self.smooth = True

    def _shapes(self) -> list[tuple[int, ...]]:
        """Shapes made of three sizes, some axes 1, the first often that of the batch: most broadcast together."""
        random = self.random
        small = random.choice([0, 1, 2, 3], size=2, p=[0.05, 0.1, 0.4, 0.45])
        sizes = [int(random.choice(BATCH)), *map(int, small)]
        shapes = [(), tuple(sizes[:1]), tuple(sizes[1:]), tuple(sizes[::2]), tuple(sizes), tuple(sizes[2:])]
        drawn = [shapes[i] for i in random.integers(0, len(shapes), random.integers(1, 5))]
        return [tuple(1 if random.random() < 0.1 else s for s in shape) for shape in drawn]

    def _input(self, shape: tuple[int, ...]) -> Array:
        dtype = np.float32 if self.random.random() < 0.3 else np.float64
        return np.asarray(self.random.normal(size=shape), dtype)

    def extend(self) -> None:
        """One more step, of the first few that are drawn the first that fits."""
        for _ in range(20):
            family = FAMILIES[self.random.choice(len(FAMILIES), p=[0.42, 0.22, 0.25, 0.07, 0.04])]
            kind = family[self.random.integers(len(family))]
            # The latest values are the likeliest, so that graphs are deep and not only wide.
            chances = 1.15 ** np.arange(len(self.values))
            sources = self.random.choice(len(self.values), kind.inputs, p=chances / chances.sum())
            if self._add(kind, [int(i) for i in sources]):
                return

    def _add(self, kind: Kind, sources: list[int]) -> bool:
        options = kind.options(self.random, *(self.values[i] for i in sources))
        if options is None:
            return False
        for place, guard in enumerate(kind.guards[: kind.inputs]):
            if guard and not self._add(KINDS[guard], [sources[place]]):
                return False
            sources[place] = len(self.values) - 1 if guard else sources[place]
        arrays = [self.values[i] for i in sources]
        with np.errstate(all="ignore"):  # what overflows is not taken
            value = np.asarray(kind.numpy(*arrays, **options), np.float64)
        if value.size > MANY or value.ndim > 4 or not np.all(np.abs(value) < LARGEST):
            return False
        if not self._keeps_apart(kind, arrays, options):
            return False
        self.values.append(value)
        self.steps.append(Step(kind, tuple(sources), options))
        return True

    def _keeps_apart(self, kind: Kind, arrays: list[Array], options: Options) -> bool:
        if kind.edge is not None:
            near = bool(np.any(np.abs(kind.edge(*arrays, **options)) < MARGIN))
            if near and kind.jumps:
                return False
            self.smooth = self.smooth and not near
        self.smooth = self.smooth and kind.name != "stop_gradient"
        return True
