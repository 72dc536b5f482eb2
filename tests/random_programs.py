"""Random scalar functions over the op library: broadcasting, views, shared parts and dead code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphs as g

Value = Any

SHAPES = [(), (3,), (1,), (2, 3), (2, 1), (1, 3), (4, 2, 3), (3, 3), (3, 2), (0, 3)]

UNARY: list[Callable[[Value], Value]] = [
    g.tanh,
    g.sigmoid,
    g.sin,
    lambda x: g.exp(g.tanh(x)),
    lambda x: g.log1p(g.square(x)),
    lambda x: g.sqrt(g.add(g.square(x), 1)),
    lambda x: -x,
    lambda x: x * 0.5 + 1,
    lambda x: 1 / (g.square(x) + 1),
    lambda x: g.relu(x + 0.01),
    lambda x: g.stop_gradient(g.floor(x)) * x,
    lambda x: g.tanh(x) ** 3,
]
BINARY: list[Callable[[Value, Value], Value]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: g.tanh(x) * y,
    lambda x, y: x / (g.square(y) + 1),
    g.maximum,
    lambda x, y: g.where(g.greater(x, y), x, y),
    g.logaddexp,
]


def random_program(seed: int, size: int = 14) -> tuple[Callable[[list[Value]], Value], list[np.ndarray]]:
    """A scalar function of a list of float64 arrays, and a point; the same for the same seed."""
    rng = np.random.default_rng(seed)
    shapes = [SHAPES[i] for i in rng.integers(0, len(SHAPES), rng.integers(1, 5))]
    point = [np.asarray(rng.normal(size=shape)) for shape in shapes]

    def program(arrays: list[Value]) -> Value:
        choose = np.random.default_rng([seed, 1])
        values = list(arrays)
        for _ in range(size):
            values.append(_step(choose, values))
        total: Value = g.sum(values[-1]) * 1.0
        for value in values[:: int(choose.integers(1, 4))]:  # the others may be dead code
            total = total + g.sum(g.tanh(value))
        return total

    return program, point


def _step(rng: np.random.Generator, values: list[Value]) -> Value:
    """One more value computed from those there are."""
    x, y = (values[i] for i in rng.integers(0, len(values), 2))
    kind = rng.integers(0, 10)
    if kind < 3 or not x.shape or np.prod(x.shape) > 500:
        return UNARY[rng.integers(0, len(UNARY))](x)
    if kind < 7 and _broadcast(x, y):
        return BINARY[rng.integers(0, len(BINARY))](x, y)
    return _moved(rng, x)


def _broadcast(x: Value, y: Value) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(x.shape, y.shape)) < 1000)
    except ValueError:
        return False


def _moved(rng: np.random.Generator, x: Value) -> Value:
    """x reduced, reshaped, cut, joined, repeated or multiplied by itself."""
    axis, keep = int(rng.integers(0, len(x.shape))), bool(rng.integers(0, 2))
    length = x.shape[axis]
    moves: list[Callable[[], Value]] = [
        lambda: g.sum(x, axis=axis, keepdims=keep),
        lambda: g.permute_dims(x),
        lambda: g.flip(x, axis=axis),
        lambda: g.concat([x, x * 2], axis=axis),
        lambda: g.cumulative_sum(x, axis=axis),
        lambda: g.broadcast_to(x, (2, *x.shape)),
        lambda: g.expand_dims(x, axis),
        lambda: g.tanh(g.matmul(g.matrix_transpose(x), x)) if len(x.shape) > 1 else g.square(g.tanh(x)),
    ]
    if 0 not in x.shape:  # of nothing there is no mean, no maximum and no last element
        moves += [
            lambda: g.mean(x, axis=axis, keepdims=keep),
            lambda: g.max(x, axis=axis, keepdims=keep),
            lambda: g.reshape(x, (-1,)),
            lambda: g.take(x, np.array([length - 1, 0, 0]), axis=axis),
            lambda: x[(slice(None),) * axis + (slice(None, None, 2),)],
        ]
    return moves[rng.integers(0, len(moves))]()
