"""State that lives in Python, and branches that are wrong, or asked of a value that a trace does not have.

A tape reads state at each step, and a trace once. Or it is kept where it should not be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs as g
from compare.workloads.faults import Array, Example, Fault, Params, draw, healthy, mean_square

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


def warmed_up(p: Params, x: Array, y: Array, step: Array) -> Array:
    """Squashed from the second step on, by an input."""
    hidden = x @ p["first"]
    hidden = g.where(step > 0, g.tanh(hidden), hidden)
    return mean_square(hidden @ p["second"] - y)


def dropout(p: Params, x: Array, y: Array, kept: Array) -> Array:
    """Dropout with the mask as an input."""
    hidden = g.where(kept, g.tanh(x @ p["first"]), 0)
    return mean_square(hidden @ p["second"] - y)


def balanced(p: Params, x: Array, y: Array, weights: Array) -> Array:
    """Outputs weighted, by an input."""
    errors = g.square(g.tanh(x @ p["first"]) @ p["second"] - y)
    return g.mean(errors * weights)


def plain(p: Params, x: Array, y: Array) -> Array:
    """A network of two layers."""
    hidden = g.tanh(x @ p["first"])
    return mean_square(hidden @ p["second"] - y)


def shifted(p: Params, x: Array, y: Array, mean: Array) -> Array:
    """The running mean of the inputs is taken away; it is an input."""
    hidden = g.tanh((x - mean) @ p["first"])
    return mean_square(hidden @ p["second"] - y)


def rescaled(p: Params, x: Array, y: Array) -> Array:
    """Twice squashed, with an array of scales for each time."""
    hidden = x @ p["first"]
    for scale in (1, 2):
        hidden = g.tanh(hidden * np.full(4, scale, np.float32))
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

STATES = (
    # the number of the step is a Python attribute
    Fault(
        "counted in Python",
        healthy(scheduled, NET, _examples(_COUNT), reset=reset),
        "penalty = mean_square(hidden) / (1 + step)",
        "state.step += 1\n    penalty = mean_square(hidden) / (1 + np.float32(state.step - 1))  # fault",
    ),
    # squashed from the second step on, by a Python if
    Fault(
        "switched in Python",
        healthy(warmed_up, NET, _examples(_COUNT), reset=reset),
        "hidden = g.where(step > 0, g.tanh(hidden), hidden)",
        "state.step += 1\n    hidden = g.tanh(hidden) if state.step > 1 else hidden * 1.0  # fault",
    ),
    # the mask is drawn inside, which a trace does once
    Fault(
        "drawn by NumPy",
        healthy(dropout, NET, _examples(_masks()), reset=reset),
        "g.where(kept",
        "g.where(state.random.random((6, 4)) < 0.5",
    ),
    # an array outside that the training loop changes
    Fault(
        "weighted by a global",
        healthy(balanced, NET, _examples(_WEIGHTS), reset=reset),
        "return g.mean(errors * weights)",
        "state.step += 1\n    state.weights[:] = state.step\n    return g.mean(errors * state.weights)  # fault",
    ),
    # a Python attribute
    Fault(
        "running mean in Python",
        healthy(shifted, NET, _GROWING, reset=reset),
        'hidden = g.tanh((x - mean) @ p["first"])',
        "state.mean = state.mean * 0.5 + g.mean(x, axis=0) * 0.5\n"
        '    hidden = g.tanh((x - state.mean) @ p["first"])  # fault',
    ),
    # the array of the first scale is written over before its gradient is taken
    Fault(
        "one buffer for all scales",
        healthy(rescaled, NET, _examples(), reset=reset),
        "hidden = g.tanh(hidden * np.full(4, scale, np.float32))",
        "state.scales[:] = scale\n        hidden = g.tanh(hidden * state.scales)  # fault",
    ),
    # a layer's output is kept although its weights have changed
    Fault(
        "kept from the first step",
        healthy(plain, NET, _examples(), reset=reset),
        'g.tanh(x @ p["first"])',
        'state.cache.setdefault("hidden", g.tanh(x @ p["first"]))',
    ),
)


# Branches -------------------------------------------------------------------------------------------------------------


BRANCHES_X, BRANCHES_Y = draw(60, 5, 3), draw(61, 5, 4)
LINE = {"weight": draw(62, 3, 4) / 2}
SCORES = {"query": draw(63, 3, 4) / 2}
VISIBLE = np.tril(np.ones((5, 5), bool))


def leaky(p: Params, x: Array, y: Array) -> Array:
    """A leaky relu by where."""
    hidden = x @ p["weight"]
    return mean_square(g.where(hidden > 0, hidden, hidden * 0.1) - y)


def huber(p: Params, x: Array, y: Array) -> Array:
    """Large errors count linearly."""
    error = g.mean(g.square(x @ p["weight"] - y))
    return g.cond(error > 1, g.sqrt, g.square, error)


def causal(p: Params, x: Array, y: Array, visible: Array) -> Array:
    """Attention that sees only what came before."""
    query = x @ p["query"]
    scores = g.where(visible, query @ g.matrix_transpose(query), -1e9)
    return mean_square(g.softmax(scores, axis=1) @ query - y)


def limited(p: Params, x: Array, y: Array) -> Array:
    """Outputs between -0.5 and 2."""
    return mean_square(g.clip(x @ p["weight"], -0.5, 2) - y)


def signed(p: Params, x: Array, y: Array) -> Array:
    """Doubled if the sum is positive, else lowered by 2; as ops."""
    hidden = x @ p["weight"]
    hidden = g.where(g.sum(hidden) > 0, hidden * 2, hidden - 2)
    return mean_square(hidden - y)


def scaled_by_largest(p: Params, x: Array, y: Array) -> Array:
    """Divided by the largest value, taken as a constant."""
    hidden = g.tanh(x @ p["weight"])
    largest = g.stop_gradient(g.max(g.abs(hidden)))
    return mean_square(hidden / largest - y)


BRANCHES = (
    # the comparison points the wrong way
    Fault("where inverted", healthy(leaky, LINE, ((BRANCHES_X, BRANCHES_Y),)), "hidden > 0", "hidden < 0"),
    # small errors count linearly
    Fault(
        "branches swapped", healthy(huber, LINE, ((BRANCHES_X, BRANCHES_Y),)), "g.sqrt, g.square", "g.square, g.sqrt"
    ),
    # attention that sees only what comes after
    Fault(
        "mask inverted",
        healthy(causal, SCORES, ((BRANCHES_X, BRANCHES_Y, VISIBLE),)),
        "query @ g.matrix_transpose(query), -1e9",
        "-1e9, query @ g.matrix_transpose(query)",
    ),
    # a minimum above the maximum makes everything the maximum
    Fault("limits swapped", healthy(limited, LINE, ((BRANCHES_X, BRANCHES_Y),)), "-0.5, 2", "2, -0.5"),
    # the same in plain Python, which a trace cannot decide
    Fault(
        "if on a value",
        healthy(signed, LINE, ((BRANCHES_X, BRANCHES_Y),)),
        "g.where(g.sum(hidden) > 0, hidden * 2, hidden - 2)",
        "hidden * 2 if g.sum(hidden) > 0 else hidden - 2",
    ),
    # the same through a Python number
    Fault(
        "number of a value", healthy(scaled_by_largest, LINE, ((BRANCHES_X, BRANCHES_Y),)), "g.stop_gradient(", "float("
    ),
)


FAULTS = {"state": STATES, "branch": BRANCHES}
