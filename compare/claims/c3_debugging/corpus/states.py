"""State that lives in Python: read at each step by a tape, and once by a trace. Or kept where it should not be."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Example, Fault, Params, draw, mean_square

X, Y = draw(90, 6, 3), draw(91, 6, 2)
NET = {"first": draw(92, 3, 4) / 2, "second": draw(93, 4, 2) / 2}
STEPS = 3
SEED = 9


class _State:
    """What the faulty losses keep between steps."""

    def __init__(self) -> None:
        self.step = 0
        self.weights = np.ones(2, np.float32)
        self.scales = np.ones(4, np.float32)
        self.mean: Any = np.zeros(3, np.float32)
        self.random = np.random.default_rng(SEED)
        self.cache: dict[str, Any] = {}


state = _State()


def reset() -> None:
    """As before the first step."""
    state.__init__()  # type: ignore[misc]


def _masks() -> list[Array]:
    random = np.random.default_rng(SEED)
    return [random.random((6, 4)) < 0.5 for _ in range(STEPS)]


def _examples(*extra: list[Any]) -> tuple[Example, ...]:
    return tuple((X, Y, *(values[i] for values in extra)) for i in range(STEPS))


def scheduled(p: Params, x: Array, y: Array, step: Array) -> Array:
    """A penalty that fades with the number of the step, which is an input."""
    hidden = g.tanh(x @ p["first"])
    penalty = mean_square(hidden) / (1 + step)
    return mean_square(hidden @ p["second"] - y) + penalty


def counted_in_python(p: Params, x: Array, y: Array, step: Array) -> Array:
    """The number of the step is a Python attribute."""
    hidden = g.tanh(x @ p["first"])
    state.step += 1
    penalty = mean_square(hidden) / (1 + np.float32(state.step - 1))  # fault
    return mean_square(hidden @ p["second"] - y) + penalty


def warmed_up(p: Params, x: Array, y: Array, step: Array) -> Array:
    """Squashed from the second step on, by an input."""
    hidden = x @ p["first"]
    hidden = g.where(step > 0, g.tanh(hidden), hidden)
    return mean_square(hidden @ p["second"] - y)


def switched_in_python(p: Params, x: Array, y: Array, step: Array) -> Array:
    """Squashed from the second step on, by a Python if."""
    hidden = x @ p["first"]
    state.step += 1
    hidden = g.tanh(hidden) if state.step > 1 else hidden * 1.0  # fault
    return mean_square(hidden @ p["second"] - y)


def dropout(p: Params, x: Array, y: Array, kept: Array) -> Array:
    """Dropout with the mask as an input."""
    hidden = g.where(kept, g.tanh(x @ p["first"]), 0)
    return mean_square(hidden @ p["second"] - y)


def drawn_by_numpy(p: Params, x: Array, y: Array, kept: Array) -> Array:
    """The mask is drawn inside, which a trace does once."""
    hidden = g.where(state.random.random((6, 4)) < 0.5, g.tanh(x @ p["first"]), 0)  # fault
    return mean_square(hidden @ p["second"] - y)


def balanced(p: Params, x: Array, y: Array, weights: Array) -> Array:
    """Outputs weighted, by an input."""
    errors = g.square(g.tanh(x @ p["first"]) @ p["second"] - y)
    return g.mean(errors * weights)


def weighted_by_a_global(p: Params, x: Array, y: Array, weights: Array) -> Array:
    """The weights are an array outside that the training loop changes."""
    errors = g.square(g.tanh(x @ p["first"]) @ p["second"] - y)
    state.step += 1
    state.weights[:] = state.step
    return g.mean(errors * state.weights)  # fault


def plain(p: Params, x: Array, y: Array) -> Array:
    """A network of two layers."""
    hidden = g.tanh(x @ p["first"])
    return mean_square(hidden @ p["second"] - y)


def kept_from_the_first_step(p: Params, x: Array, y: Array) -> Array:
    """A layer's output is kept although its weights have changed."""
    hidden = state.cache.setdefault("hidden", g.tanh(x @ p["first"]))  # fault
    return mean_square(hidden @ p["second"] - y)


def shifted(p: Params, x: Array, y: Array, mean: Array) -> Array:
    """The running mean of the inputs is taken away; it is an input."""
    hidden = g.tanh((x - mean) @ p["first"])
    return mean_square(hidden @ p["second"] - y)


def running_mean_in_python(p: Params, x: Array, y: Array, mean: Array) -> Array:
    """The running mean is a Python attribute."""
    state.mean = state.mean * 0.5 + g.mean(x, axis=0) * 0.5
    hidden = g.tanh((x - state.mean) @ p["first"])  # fault
    return mean_square(hidden @ p["second"] - y)


def rescaled(p: Params, x: Array, y: Array) -> Array:
    """Twice squashed, with an array of scales for each time."""
    hidden = x @ p["first"]
    for scale in (1, 2):
        hidden = g.tanh(hidden * np.full(4, scale, np.float32))
    return mean_square(hidden @ p["second"] - y)


def one_buffer_for_all_scales(p: Params, x: Array, y: Array) -> Array:
    """The array of the first scale is written over before its gradient is taken."""
    hidden = x @ p["first"]
    for scale in (1, 2):
        state.scales[:] = scale
        hidden = g.tanh(hidden * state.scales)  # fault
    return mean_square(hidden @ p["second"] - y)


def _means() -> list[Array]:
    mean, means = np.zeros(3, np.float32), []
    for i in range(STEPS):
        mean = mean * np.float32(0.5) + (X * (i + 1)).mean(axis=0) * np.float32(0.5)
        means.append(mean)
    return means


_GROWING: tuple[Example, ...] = tuple((X * (i + 1), Y, mean) for i, mean in enumerate(_means()))
_COUNT = [np.float32(i) for i in range(STEPS)]
_WEIGHTS = [np.full(2, i + 1, np.float32) for i in range(STEPS)]

FAULTS = (
    Fault("counted in Python", "state", scheduled, NET, _examples(_COUNT), counted_in_python, reset=reset),
    Fault("switched in Python", "state", warmed_up, NET, _examples(_COUNT), switched_in_python, reset=reset),
    Fault("drawn by NumPy", "state", dropout, NET, _examples(_masks()), drawn_by_numpy, reset=reset),
    Fault("weighted by a global", "state", balanced, NET, _examples(_WEIGHTS), weighted_by_a_global, reset=reset),
    Fault("running mean in Python", "state", shifted, NET, _GROWING, running_mean_in_python, reset=reset),
    Fault("one buffer for all scales", "state", rescaled, NET, _examples(), one_buffer_for_all_scales, reset=reset),
    Fault("kept from the first step", "state", plain, NET, _examples(), kept_from_the_first_step, reset=reset),
)
