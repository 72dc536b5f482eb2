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
from tests.helpers.random_ops import FAMILIES, KINDS, Array, Kind, Options, Random, Value, as_double, places

MARGIN = {8: 1e-3, 4: 1e-3, 2: 0.05}  # how far every element stays from a jump, by the bytes of its dtype
LARGEST = {"f": 30.0, "i": 1e6, "u": 1e6, "b": 2}  # values above are not drawn, nor arrays of more elements than MANY
MANY = 300
BATCH = (5, 6)  # sizes of the axis that may be symbolic; all other axes have other sizes


@dataclass(frozen=True)
class Mix:
    """What programs are drawn from: families with their chances, and dtypes of inputs with theirs.

    laid      the chance that an input lies in memory in another way than row after row
    breaking  the chance that the last step breaks a rule of its op, so that all that run the program must refuse it
    """

    families: tuple[list[Kind], ...]
    chances: tuple[float, ...]
    dtypes: dict[str, float]
    broken: tuple[Kind, ...] = ()
    breaking: float = 0.0
    laid: float = 0.0

    def family(self, random: Random) -> list[Kind]:
        """One of the families."""
        return self.families[random.choice(len(self.families), p=self.chances)]

    def dtype(self, random: Random) -> str:
        """The dtype of one input, by one draw from [0, 1)."""
        return list(self.dtypes)[
            int(np.searchsorted(np.cumsum([*self.dtypes.values()][:-1]), random.random(), "right"))
        ]


FLOATS = Mix(FAMILIES, (0.42, 0.22, 0.25, 0.07, 0.04), {"float32": 0.3, "float64": 0.7})


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
    smallest  the bytes of the smallest float that any value is made of
    """

    seed: int
    inputs: tuple[Array, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    smooth: bool
    smallest: int

    @property
    def plain(self) -> bool:
        """Whether every step is the same ops in both engines: no control flow, no arrays made on the way."""
        return not any(step.kind.differs for step in self.steps)

    def values(self, inputs: Any, start: int = 0, end: int | None = None) -> list[Value]:
        """Every value, by the op library: of the inputs, or of all values before step `start`, to step `end`."""
        values = list(inputs)
        for step in self.steps[start:end]:
            values.append(step.kind.ours(*(values[i] for i in step.sources), **step.options))
        return values

    def __call__(self, inputs: list[Value]) -> Value:
        """A scalar in which each element of each output counts differently."""
        return self.scalar(self.values(inputs))

    def scalar(self, values: list[Value]) -> Value:
        """The scalar, from all values; outputs that are no floats do not count."""
        total: Value = 0.5
        for i in self.outputs:
            if values[i].dtype.kind == "f":
                flat = g.reshape(values[i], (-1,))
                total = total + g.sum(g.sin(flat + places(flat) * 0.7))
        return total

    def reference_values(self, inputs: Any) -> list[Array]:
        """Every value, by NumPy in float64."""
        values = [as_double(x) for x in inputs]
        for step in self.steps:
            values.append(step.kind.reference(*(values[i] for i in step.sources), **step.options))
        return values

    def reference(self, inputs: Any) -> float:
        """The scalar, by NumPy in float64."""
        values = self.reference_values(inputs)
        flat = [values[i].reshape(-1) for i in self.outputs if values[i].dtype.kind == "f"]
        return 0.5 + sum(float(np.sum(np.sin(x + np.arange(x.size) * 0.7))) for x in flat)

    def __str__(self) -> str:
        specs = [f"{g.TensorSpec(x.shape, x.dtype)}" for x in self.inputs]
        lines = [f"seed {self.seed}: inputs {', '.join(specs)}"]
        lines += [f"  v{i} = {step}" for i, step in enumerate(self.steps, len(self.inputs))]
        return "\n".join([*lines, f"  return {', '.join(f'v{i}' for i in self.outputs)}"])


def random_program(seed: int, mix: Mix = FLOATS) -> Program:
    """The program of this seed, with 4 to 14 steps beside those that bring values into a domain."""
    random = np.random.default_rng(seed)
    draft = _Draft(random, mix)
    for _ in range(random.integers(4, 15)):
        draft.extend()
    count = len(draft.values)
    others = random.choice(count, size=min(count, int(random.integers(0, 4))), replace=False)
    outputs = tuple(dict.fromkeys([count - 1, *map(int, others)]))
    if random.random() < mix.breaking:
        outputs = (*outputs, draft.end(mix.broken[random.integers(len(mix.broken))]))
    return Program(seed, tuple(draft.inputs), tuple(draft.steps), outputs, draft.smooth, draft.smallest)


def _laid_out(random: Random, x: Array) -> Array:
    """The same numbers: column after column, backwards, with gaps, or read-only."""
    way = int(random.integers(4))
    if way == 3:
        x = x.copy()
        x.flags.writeable = False
    return [np.asfortranarray(x), np.asarray(np.flip(np.flip(x).copy())), np.stack([x, x], axis=-1)[..., 0], x][way]


class _Draft:
    """A program that grows, with the value of each step: in float64, and in the dtype that it has."""

    def __init__(self, random: Random, mix: Mix) -> None:
        self.random, self.mix = random, mix
        self.inputs = [self._input(shape) for shape in self._shapes()]
        self.values = [as_double(x) for x in self.inputs]
        self.typed: list[Array] = list(self.inputs)
        self.steps: list[Step] = []
        self.smooth = True
        if not any(x.dtype.kind == "f" for x in self.inputs):
            self.inputs[0] = self.inputs[0].astype(np.float64)  # what has a gradient
            self.values[0] = self.typed[0] = self.inputs[0]
        self.smallest = min([8, *(x.itemsize for x in self.inputs if x.dtype.kind == "f")])

    def _shapes(self) -> list[tuple[int, ...]]:
        """Shapes made of three sizes, some axes 1, the first often that of the batch: most broadcast together."""
        random = self.random
        small = random.choice([0, 1, 2, 3], size=2, p=[0.05, 0.1, 0.4, 0.45])
        sizes = [int(random.choice(BATCH)), *map(int, small)]
        shapes = [(), tuple(sizes[:1]), tuple(sizes[1:]), tuple(sizes[::2]), tuple(sizes), tuple(sizes[2:])]
        drawn = [shapes[i] for i in random.integers(0, len(shapes), random.integers(1, 5))]
        return [tuple(1 if random.random() < 0.1 else s for s in shape) for shape in drawn]

    def _input(self, shape: tuple[int, ...]) -> Array:
        drawn = self._drawn(shape)
        return _laid_out(self.random, drawn) if self.mix.laid and self.random.random() < self.mix.laid else drawn

    def _drawn(self, shape: tuple[int, ...]) -> Array:
        dtype = np.dtype(self.mix.dtype(self.random))
        drawn = self.random.normal(size=shape)
        if dtype.kind == "b":
            return np.asarray(drawn > 0)
        return np.asarray(
            np.rint(np.abs(drawn) * 3) if dtype.kind == "u" else drawn * (3 if dtype.kind == "i" else 1), dtype
        )

    def extend(self) -> None:
        """One more step, of the first few that are drawn the first that fits."""
        for _ in range(20):
            family = self.mix.family(self.random)
            kind = family[self.random.integers(len(family))]
            sources = self._sources(kind)
            if sources is not None and self._add(kind, sources):
                return

    def _sources(self, kind: Kind) -> list[int] | None:
        """Values that the kind takes; the latest are the likeliest, so that graphs are deep and not only wide."""
        chances = 1.15 ** np.arange(len(self.values))
        drawn: list[int] = []
        for takes, count in kind.wanted():
            fitting = chances * [x.dtype.kind in takes for x in self.values]
            if not np.any(fitting):
                return None
            drawn += map(int, self.random.choice(len(fitting), count, p=fitting / fitting.sum()))
        return drawn

    def end(self, kind: Kind) -> int:
        """A last step that breaks a rule, and its place among the values."""
        self.steps.append(Step(kind, (len(self.values) - 1,) * kind.inputs, {}))
        return len(self.values)

    def _add(self, kind: Kind, sources: list[int]) -> bool:
        arrays = [self.values[i] for i in sources]
        options = kind.options(self.random, *arrays)
        if options is None:
            return False
        for place, guard in enumerate(kind.guards[: kind.inputs]):
            if guard and not self._add(KINDS[guard], [sources[place]]):
                return False
            sources[place] = len(self.values) - 1 if guard else sources[place]
        arrays = [self.values[i] for i in sources]
        with np.errstate(all="ignore"):  # what overflows is not taken
            value = kind.reference(*arrays, **options)
        if value.size > MANY or value.ndim > 4 or not np.all(np.abs(value) < LARGEST[value.dtype.kind]):
            return False
        if not self._keeps_apart(kind, arrays, options):
            return False
        self._append(Step(kind, tuple(sources), options), value)
        return True

    def _append(self, step: Step, value: Array) -> None:
        with np.errstate(all="ignore"):
            typed = np.asarray(step.kind.ours(*(self.typed[i] for i in step.sources), **step.options))
        self.values.append(value)
        self.typed.append(typed)
        self.steps.append(step)
        if typed.dtype.kind == "f":
            self.smallest = min(self.smallest, typed.itemsize)

    def _keeps_apart(self, kind: Kind, arrays: list[Array], options: Options) -> bool:
        if kind.edge is not None:
            near = bool(np.any(np.abs(kind.edge(*arrays, **options)) < MARGIN[self.smallest]))
            if near and kind.jumps:
                return False
            self.smooth = self.smooth and not near
        self.smooth = self.smooth and kind.name != "stop_gradient"
        return True
