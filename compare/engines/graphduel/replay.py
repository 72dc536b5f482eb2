"""Random numbers that were drawn elsewhere, given out where our engine would draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from compare.errors import UnsupportedError

Draws = Sequence[Sequence[np.ndarray]]
"""For each of several calls, what it draws in order."""


Draw = Callable[[np.random.Generator], np.ndarray]


class Replay:
    """Stands for NumPy's generator in our engine: it gives out in each call what a call of these shapes drew."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.bit_generator = self  # what a checkpoint asks for its state, to draw again
        self.begin()

    def begin(self) -> None:
        """The next number is the first of a call."""
        self.state = self._draws, 0

    @property
    def state(self) -> tuple[Draws, int]:
        """The calls that it may be, and how many numbers they have drawn."""
        return self._calls, self._position

    @state.setter
    def state(self, state: tuple[Draws, int]) -> None:
        self._calls, self._position = state

    def next(self, shape: tuple[int, ...], draw: Draw) -> np.ndarray:
        """The next numbers, whatever `draw` would draw. Raises UnsupportedError where no call drew such."""
        del draw
        place = self._position
        self._calls = [call for call in self._calls if len(call) > place and _alike(call[place].shape, shape)]
        if not self._calls:
            raise UnsupportedError(
                f"the random numbers number {place + 1}, of shape {shape}, are drawn otherwise than in PyTorch, so "
                "that the two cannot be given the same; pass them as an argument"
            )
        self._position += 1
        drawn = self._calls[0][place]
        return drawn if drawn.shape == shape else drawn.reshape(shape)

    def random(self, size: Any = (), dtype: Any = np.float64) -> np.ndarray:
        """From 0 to 1; of a mask, what is below any share where it is set."""
        return self._of(size, lambda chance: chance.random(_shape(size))).astype(dtype)

    def standard_normal(self, size: Any = ()) -> np.ndarray:
        """Of mean 0 and deviation 1."""
        return self._of(size, lambda chance: np.asarray(chance.standard_normal(_shape(size))))

    def standard_exponential(self, size: Any = ()) -> np.ndarray:
        """Of mean 1."""
        return self._of(size, lambda chance: np.asarray(chance.standard_exponential(_shape(size))))

    def integers(self, low: int, high: int, size: Any = (), dtype: Any = np.int64) -> np.ndarray:
        """As they were drawn, from whichever range."""
        return self._of(size, lambda chance: chance.integers(low, high, _shape(size))).astype(dtype)

    def permutation(self, count: int) -> np.ndarray:
        """As it was drawn."""
        return self._of((count,), lambda chance: chance.permutation(count))

    def kept(self, shape: tuple[int, ...], p: float) -> np.ndarray:
        """What dropout keeps, of which it drops a share p."""
        return self._of(shape, lambda chance: chance.random(shape) >= p).astype(bool)

    def _of(self, size: Any, draw: Draw) -> np.ndarray:
        return self.next(_shape(size), lambda chance: np.asarray(draw(chance)))


class Repeated(Replay):
    """Where nothing was drawn elsewhere: each call draws what the first one of its shapes drew here, in every mode."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._drawn: dict[Any, np.ndarray] = {}
        super().__init__([])

    def next(self, shape: tuple[int, ...], draw: Draw) -> np.ndarray:
        """The numbers that were drawn at this place."""
        place = self._position, shape
        self._position += 1
        if place not in self._drawn:
            self._drawn[place] = draw(self._chance)
        return self._drawn[place]


def _alike(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes hold the same numbers in the same order: one is the other with neighbours joined."""
    ends, others = (set(np.multiply.accumulate((1, *sizes)).tolist()) for sizes in (shape, other))
    return math.prod(shape) == math.prod(other) and (ends <= others or others <= ends)


def _shape(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(map(int, size))


@contextmanager
def replaying(replay: Replay | None) -> Iterator[None]:
    """Inside, our engine draws from these numbers, from the first on; from its own where there are none."""
    if replay is None:
        yield
        return
    from dynamic import random
    from dynamic.nn.functional import layers

    def kept(x: Any, p: float, together: tuple[int, ...]) -> np.ndarray:
        shape = [1 if i - len(x.shape) in together else size for i, size in enumerate(x.shape)]
        return replay.kept(tuple(shape), p)

    def happened(shape: tuple[int, ...], p: Any, _: Any) -> np.ndarray:
        return replay.next(shape, lambda chance: own_happened(shape, p, _drawing(chance))).astype(bool)

    def picked(input: Any, count: int, replacement: bool, _: Any) -> np.ndarray:
        shape = (*input.shape[:-1], count)
        return replay.next(shape, lambda chance: own_picked(input, count, replacement, _drawing(chance)))

    own_happened, own_picked = random.happened_by, random.picked_by
    stands_in = {"numpy": replay, "_kept": kept, "happened_by": happened, "picked_by": picked}
    own = {"numpy": random.default_generator.numpy, "_kept": vars(layers)["_kept"]}
    own |= {"happened_by": own_happened, "picked_by": own_picked}
    replay.begin()
    try:
        _put(stands_in)
        yield
    finally:
        _put(own)


def _drawing(chance: np.random.Generator) -> Any:
    """A generator of our engine's that draws by NumPy's."""
    return SimpleNamespace(numpy=chance)


def _put(draws: Mapping[str, Any]) -> None:
    """Let our engine draw by these, each where it looks for one of that name."""
    from dynamic import random
    from dynamic.nn.functional import layers

    for space in (vars(random.default_generator), vars(layers), vars(random)):
        space.update({name: draw for name, draw in draws.items() if name in space})
