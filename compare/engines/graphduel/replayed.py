"""Random numbers that were drawn elsewhere, given out where our engine would draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compare.errors import UnsupportedError

Draws = Sequence[Sequence[np.ndarray]]
"""For each of several calls, what it draws in order."""


class Replay:
    """Stands for NumPy's generator in our engine: it gives out in each call what a call of these shapes drew."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.begin()

    def begin(self) -> None:
        """The next number is the first of a call."""
        self._calls, self._position = self._draws, 0

    def next(self, shape: tuple[int, ...]) -> np.ndarray:
        """The next numbers. Raises UnsupportedError where no call drew such."""
        place = self._position
        self._calls = [call for call in self._calls if len(call) > place and call[place].shape == shape]
        if not self._calls:
            raise UnsupportedError(
                f"the random numbers number {place + 1}, of shape {shape}, are drawn otherwise than in PyTorch, so "
                "that the two cannot be given the same; pass them as an argument"
            )
        self._position += 1
        return self._calls[0][place]

    def random(self, size: Any = (), dtype: Any = np.float64) -> np.ndarray:
        """From 0 to 1; of a mask, what is below any share where it is set."""
        return self._of(size).astype(dtype)

    def standard_normal(self, size: Any = ()) -> np.ndarray:
        """Of mean 0 and deviation 1."""
        return self._of(size)

    standard_exponential = standard_normal

    def integers(self, low: int, high: int, size: Any = (), dtype: Any = np.int64) -> np.ndarray:
        """As they were drawn, from whichever range."""
        return self._of(size).astype(dtype)

    def permutation(self, count: int) -> np.ndarray:
        """As it was drawn."""
        return self._of((count,))

    def kept(self, shape: tuple[int, ...]) -> np.ndarray:
        """What dropout keeps."""
        return self._of(shape).astype(bool)

    def _of(self, size: Any) -> np.ndarray:
        return self.next((size,) if isinstance(size, int) else tuple(map(int, size)))


@contextmanager
def replaying(replay: Replay | None) -> Iterator[None]:
    """Inside, our engine draws from these numbers, from the first on; from its own where there are none."""
    if replay is None:
        yield
        return
    from dynamic.nn.functional import dropping
    from dynamic.random import default_generator

    def kept(x: Any, p: float, together: tuple[int, ...]) -> np.ndarray:
        shape = [1 if i - len(x.shape) in together else size for i, size in enumerate(x.shape)]
        return replay.kept(tuple(shape))

    space, own = vars(default_generator), default_generator.numpy
    drops = vars(dropping)
    before = drops["_kept"]
    replay.begin()
    space["numpy"], drops["_kept"] = replay, kept
    try:
        yield
    finally:
        space["numpy"], drops["_kept"] = own, before
