"""Graphs of any number of nodes, in the shapes in which a pass, an order or a plan takes more time than it should.

Each is a loss of arrays in which each step repeats what the one before it did; its gradient in the first argument is
taken, so that the graph holds the way there and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphs as g
import static


class Shape(NamedTuple):
    """A loss `make(steps)(*args)`; and how many nodes a step traces with its gradient, about."""

    make: Callable[[int], Callable[..., Any]]
    args: tuple[Any, ...]
    nodes: float


def chain(steps: int) -> Callable[..., Any]:
    """An affine map and a tanh in turn."""

    def loss(x: Any) -> Any:
        for step in range(steps):
            x = g.tanh(x) if step % 2 else x * 0.9999 + 0.0001
        return g.sum(x)

    return loss


def tanh(steps: int) -> Callable[..., Any]:
    """A tanh of a tanh of a tanh."""

    def loss(x: Any) -> Any:
        for _ in range(steps):
            x = g.tanh(x)
        return g.sum(x)

    return loss


def fan(steps: int) -> Callable[..., Any]:
    """One value read by all, and what they make of it summed in a tree."""

    def loss(x: Any) -> Any:
        values = [g.sin(x * (1 + step / steps)) for step in range(steps)]
        while len(values) > 1:
            odd = values[-1:] if len(values) % 2 else []
            values = [*(a + b for a, b in zip(values[::2], values[1::2], strict=False)), *odd]
        return g.sum(values[0])

    return loss


def row(steps: int) -> Callable[..., Any]:
    """The same, summed one after the other."""

    def loss(x: Any) -> Any:
        total = x
        for step in range(steps):
            total = total + g.sin(x * (1 + step / steps))
        return g.sum(total)

    return loss


def ladder(steps: int) -> Callable[..., Any]:
    """Residuals: each step adds to the value, and values live until their gradient is taken."""

    def loss(x: Any) -> Any:
        for _ in range(steps):
            x = x + g.sin(x)
        return g.sum(x)

    return loss


def rnn(steps: int) -> Callable[..., Any]:
    """An unrolled recurrence: the gradient of the weight adds up as many terms as there are steps."""

    def loss(w: Any, h: Any) -> Any:
        for _ in range(steps):
            h = g.tanh(h @ w)
        return g.sum(h)

    return loss


def joined(steps: int) -> Callable[..., Any]:
    """Values that are each read again after they were stacked, and joined to one array that is cut up again."""

    def loss(x: Any) -> Any:
        values = [g.sin(x * (1 + step / steps)) for step in range(steps)]
        total, size = g.sum(x), x.shape[0]
        for value in values:
            total = total + g.sum(g.exp(value))
        whole = g.concat(values)
        for step in range(steps):
            total = total + g.sum(g.tanh(whole[step * size : (step + 1) * size]))
        return total + g.sum(g.cos(g.stack(values)))

    return loss


def sizes(steps: int) -> Callable[..., Any]:
    """Buffers of many sizes, which end in another order than they start in."""

    def loss(x: Any) -> Any:
        values = [g.sin(g.broadcast_to(x[:1], (3 + step * 7919 % 1009,))) for step in range(steps)]
        total = g.sum(x)
        for step in range(steps):
            total = total + g.sum(values[step * 7919 % steps])
        return total

    return loss


VECTOR, MATRIX = np.linspace(0.1, 1, 4), np.eye(4) * 0.9
SHAPES: dict[str, Shape] = {
    "chain": Shape(chain, (VECTOR,), 3.5),
    "tanh": Shape(tanh, (VECTOR,), 4),
    "fan": Shape(fan, (VECTOR,), 8),
    "row": Shape(row, (VECTOR,), 8),
    "ladder": Shape(ladder, (VECTOR,), 5),
    "RNN": Shape(rnn, (MATRIX, np.ones((2, 4))), 10),
    "joined": Shape(joined, (VECTOR,), 26),
    "sizes": Shape(sizes, (VECTOR,), 12),
}


def program(name: str, steps: int) -> tuple[Callable[..., Any], Sequence[Any]]:
    """The loss of a shape with its gradient, and its arguments."""
    return static.value_and_grad(SHAPES[name].make(steps)), SHAPES[name].args


def steps(name: str, nodes: int) -> int:
    """How many steps of a shape trace about so many nodes."""
    return max(1, round(nodes / SHAPES[name].nodes))
