"""Replay of random numbers in our engines: numbers that another engine drew, or those of the first call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compare.errors import UnsupportedError
from dynamic.random import DrawnNumbers, drawing_from

Draws = Sequence[Sequence[np.ndarray]]
"""For each of several calls, the arrays of random numbers that it draws, in order."""
Draw = Callable[[np.random.Generator], Any]


class Replay(DrawnNumbers):
    """Gives out, in each call, the numbers that a recorded call with the same shapes drew."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.begin()

    def begin(self) -> None:
        """Start a call: the next draw is the first one."""
        self.state = self._draws, 0

    def next(self, shape: tuple[int, ...], draw: Draw) -> np.ndarray:
        """Return the next numbers in the place of `draw`.

        Raises UnsupportedError where no recorded call drew this shape.
        """
        del draw
        calls, place = self.state
        calls = [call for call in calls if len(call) > place and _alike(call[place].shape, shape)]
        if not calls:
            raise UnsupportedError(
                f"the random numbers number {place + 1}, of shape {shape}, are drawn otherwise than in PyTorch, so "
                "that the two cannot be given the same; pass them as an argument"
            )
        self.state = calls, place + 1
        drawn: np.ndarray = calls[0][place]
        return drawn if drawn.shape == shape else drawn.reshape(shape)


class RepeatedDraws(Replay):
    """A replay without recorded draws: each call draws what the first call with its shapes drew, in every mode."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._drawn: dict[Any, np.ndarray] = {}
        super().__init__([])

    def next(self, shape: tuple[int, ...], draw: Draw) -> np.ndarray:
        """Return the numbers first drawn at this place with this shape."""
        calls, place = self.state
        self.state = calls, place + 1
        if (place, shape) not in self._drawn:
            self._drawn[place, shape] = draw(self._chance)
        return self._drawn[place, shape]


def _alike(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether one shape is the other with neighbouring axes joined, so that both hold the same order."""
    ends, others = (set(np.multiply.accumulate((1, *sizes)).tolist()) for sizes in (shape, other))
    return math.prod(shape) == math.prod(other) and (ends <= others or others <= ends)


@contextmanager
def replaying(replay: Replay | None) -> Iterator[None]:
    """A context in which our engine draws from `replay`, from its start; from its own generator if that is None."""
    if replay is None:
        yield
        return
    replay.begin()
    with drawing_from(replay):
        yield
