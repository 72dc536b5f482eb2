"""Recursion over the structure of the input, or for as long as a value says so, and structures as data.

The structures are trees with kinds of nodes, words with and without a vector, parsers that decide, and messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, normal, scalar

Tree = Any


def tree_product(leaves: Array, tree: Tree) -> Array:
    """A tree of pairs whose leaves are places in an array, folded: f[N] -> f[]."""
    if isinstance(tree, int):
        return leaves[tree]
    left, right = tree
    return graphs.tanh(tree_product(leaves, left) + 2 * tree_product(leaves, right))


def halves(x: Array) -> Array:
    """Divide and conquer over a size: f[N] -> f[]."""
    n = x.shape[0]
    if n == 1:
        return x[0]
    return halves(x[: n // 2]) * halves(x[n // 2 :]) + 1


def minimax(leaves: Array, tree: Tree, largest: bool = True) -> Array:
    """A game tree: the largest of the smallest of the largest, f[N] -> f[]."""
    if isinstance(tree, int):
        return leaves[tree]
    values = [minimax(leaves, child, not largest) for child in tree]
    return max(values) if largest else min(values)


def minimax_graph(leaves: Array, tree: Tree, largest: bool = True) -> Array:
    """The recursion is unrolled; the comparison is an op."""
    if isinstance(tree, int):
        return leaves[tree]
    values = graphs.stack([minimax_graph(leaves, child, not largest) for child in tree])
    return graphs.max(values) if largest else graphs.min(values)


def decision_tree(x: Array, tree: Tree) -> Array:
    """Down a tree of (place, threshold, below, above) to a leaf, a factor: f[N] -> f[N]."""
    if isinstance(tree, float):
        return x * tree
    place, threshold, below, above = tree
    return decision_tree(x, below if x[place] < threshold else above)


def decision_tree_graph(x: Array, tree: Tree) -> Array:
    """The recursion is unrolled to a branch within a branch."""
    if isinstance(tree, float):
        return x * tree
    place, threshold, below, above = tree
    return graphs.cond(
        x[place] < threshold, lambda: decision_tree_graph(x, below), lambda: decision_tree_graph(x, above)
    )


def series(x: Array, term: Array, n: int = 1) -> Array:
    """The exponential series, term by term, until they are too small to matter: f[], f[] -> f[]."""
    if abs(term) < 1e-13:
        return term
    return term + series(x, term * x / n, n + 1)


def series_graph(x: Array, term: Array, n: int = 1) -> Array:
    """Recursion that has no bound becomes a loop, and its result an accumulator."""

    def step(state: Array) -> Array:
        total, term, n = state
        return total + term, term * x / n, n + 1

    total, term, _ = graphs.while_loop(lambda state: abs(state[1]) >= 1e-13, step, (term * 0, term, n))
    return total + term


def quickselect(x: Array, rank: int) -> Array:
    """The element of a rank, by partition around the first: f[N] -> f[]."""
    below = [value for value in x if value < x[0]]
    above = [value for value in x if value > x[0]]
    if rank < len(below):
        return quickselect(graphs.stack(below), rank)
    if rank < x.shape[0] - len(above):
        return x[0]
    return quickselect(graphs.stack(above), rank - x.shape[0] + len(above))


def quickselect_graph(x: Array, rank: int) -> Array:
    """An op does what the recursion was for."""
    return graphs.sort(x)[rank]


def adaptive_integral(width: Array, low: float = 0.0, high: float = 4.0) -> Array:
    """The integral of exp(-(x / width)^2) by halves, finer where Simpson's rule is off: f[] -> f[]."""

    def simpson(low: float, high: float) -> Array:
        f = [graphs.exp(-((x / width) ** 2)) for x in (low, (low + high) / 2, high)]
        return (high - low) / 6 * (f[0] + 4 * f[1] + f[2])

    middle = (low + high) / 2
    whole, left, right = simpson(low, high), simpson(low, middle), simpson(middle, high)
    if abs(left + right - whole) < 1e-4 * (high - low):
        return left + right
    return adaptive_integral(width, low, middle) + adaptive_integral(width, middle, high)


def adaptive_integral_graph(width: Array, low: float = 0.0, high: float = 4.0) -> Array:
    """From left to right: a step is halved until it is fine enough, and doubled where the tree would go up."""

    def simpson(low: Array, high: Array) -> Array:
        f = [graphs.exp(-((x / width) ** 2)) for x in (low, (low + high) / 2, high)]
        return (high - low) / 6 * (f[0] + 4 * f[1] + f[2])

    def step(state: Array) -> Array:
        total, low, place, size = state
        middle, end = low + size / 2, low + size
        whole, parts = simpson(low, end), simpson(low, middle) + simpson(middle, end)
        fine = abs(parts - whole) < 1e-4 * size
        after = graphs.while_loop(
            lambda s: (s[0] % 2 == 0) & (s[0] > 0), lambda s: (s[0] // 2, s[1] * 2), (place + 1, size)
        )
        return graphs.cond(
            fine,
            lambda: (total + parts, end, after[0], after[1]),
            lambda: (total, low, place * 2, size / 2),
        )

    start = (width * 0, low, 0, high - low)
    return graphs.while_loop(lambda state: state[1] < high, step, start)[0]


_TREES = (((0, 1), 2), (0, (1, (2, 3))), 1)
_GAME = ((0, 1), (2, 3), (4, 5))
_DECISIONS = (0, 1.0, (1, 0.0, -1.0, 2.0), (2, 3.0, 0.5, 4.0))
_MIXED = floats(3, -1, 4, 1.5, -5, 9)

RECURSION = (
    Program(tree_product, tree_product, [(floats(0.5, -1, 0.2, 0.7), tree) for tree in _TREES]),
    Program(halves, halves, [(_MIXED[:n],) for n in (1, 4, 5)]),
    Program(minimax, minimax_graph, [(x, _GAME) for x in (_MIXED, -_MIXED, _MIXED[::-1].copy())]),
    Program(
        decision_tree,
        decision_tree_graph,
        [(floats(*x), _DECISIONS) for x in ((0, -1, 0), (0, 1, 0), (2, 0, 1), (2, 0, 5))],
    ),
    Program(series, series_graph, [(scalar(x), scalar(1)) for x in (0.5, 2, -1)]),
    Program(
        quickselect, quickselect_graph, [(x, rank) for rank, x in enumerate((_MIXED, -_MIXED, _MIXED[::-1].copy()))]
    ),
    Program(adaptive_integral, adaptive_integral_graph, [(scalar(width),) for width in (1, 0.2, 30)]),
)


# Structures -----------------------------------------------------------------------------------------------------------


Edges = Sequence[tuple[int, int]]


def composed(vectors: Array, tree: Tree) -> Array:
    """A tree whose nodes say how they join their children, of any number: f[N, M] -> f[M]."""
    if isinstance(tree, int):
        return vectors[tree]
    kind, *children = tree
    parts = [composed(vectors, child) for child in children]
    match kind:
        case "mean":
            return sum(parts) / len(parts)
        case "gate":
            return graphs.sigmoid(parts[0]) * parts[1]
        case _:
            return graphs.tanh(sum(parts))


def spelled(params: Mapping[str, Any], words: Sequence[str]) -> Array:
    """A vector for each word, made of its letters where the word has none: f[N] each -> f[N]."""
    hidden = params["start"]
    for word in words:
        if word in params["words"]:
            vector = params["words"][word]
        else:
            vector = params["start"]
            for letter in word:
                vector = graphs.tanh(vector + params["letters"][letter])
        hidden = graphs.tanh(hidden * 0.5 + vector)
    return hidden


def shift_reduce(words: Array) -> Array:
    """A stack whose two topmost are joined for as long as they point the same way: f[T, N] -> f[N]."""
    stack: list[Array] = []
    for word in words:
        stack.append(word)
        while len(stack) > 1 and graphs.sum(stack[-1] * stack[-2]) > 0:
            right, left = stack.pop(), stack.pop()
            stack.append(graphs.tanh(left + 2 * right))
    return sum(stack)


def shift_reduce_graph(words: Array) -> Array:
    """The stack is an array with room for all words, and its height a number."""
    places = np.expand_dims(np.arange(words.shape[0]), axis=1)

    def write(stack: Array, place: Array, value: Array) -> Array:
        return graphs.where(places == place, value, stack)

    def agree(state: Array) -> Array:
        stack, height = state
        return (height > 1) & (graphs.sum(stack[height - 1] * stack[height - 2]) > 0)

    def join(state: Array) -> Array:
        stack, height = state
        return write(stack, height - 2, graphs.tanh(stack[height - 2] + 2 * stack[height - 1])), height - 1

    def step(state: Array, word: Array) -> Array:
        stack, height = state
        return graphs.while_loop(agree, join, (write(stack, height, word), height + 1)), ()

    stack, height = graphs.scan(step, (words * 0, 0), words)[0]
    return graphs.sum(graphs.where(places < height, stack, 0.0), axis=0)


def messages(x: Array, edges: Edges) -> Array:
    """Along each edge of a graph the smaller end learns from the larger: f[N] -> f[N]."""
    values = list(x)
    for start, end in edges:
        if values[start] > values[end]:
            values[end] = (values[end] + values[start]) / 2
    return graphs.stack(values)


def messages_graph(x: Array, edges: Edges) -> Array:
    """The edges are known to the trace; which end is larger is selected."""
    values = list(x)
    for start, end in edges:
        larger = values[start] > values[end]
        values[end] = graphs.where(larger, (values[end] + values[start]) / 2, values[end])
    return graphs.stack(values)


_VECTORS = normal(31, 5, 3)
_PHRASES = (("mean", 0, 1, ("gate", 2, 3)), ("sum", ("mean", 4, 0), 1), ("gate", 0, ("sum", 1, 2, 3, 4)))
_SPELLING = {
    "start": floats(0.1, -0.2),
    "words": {"a": floats(1, 0.5), "tape": floats(-1, 0.3)},
    "letters": dict(zip("graph", normal(32, 5, 2), strict=True)),
}
_EDGES = ((0, 1), (1, 2), (2, 0), (0, 2))

STRUCTURES = (
    Program(composed, composed, [(_VECTORS, tree) for tree in _PHRASES]),
    Program(spelled, spelled, [(_SPELLING, text.split()) for text in ("a graph", "tape", "gap a tape rap")]),
    Program(shift_reduce, shift_reduce_graph, [(normal(seed, 5, 2),) for seed in (1, 2, 3)]),
    Program(messages, messages_graph, [(floats(*x), _EDGES) for x in ((3, 1, 2.2), (1, 2, 3), (2, 5, -0.5))]),
)


PROGRAMS = {"recursion": RECURSION, "structures": STRUCTURES}
