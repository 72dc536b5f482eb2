"""Recursion: over the structure of the input, and for as long as a value says so."""

from __future__ import annotations

from typing import Any

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar

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

PROGRAMS = (
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
