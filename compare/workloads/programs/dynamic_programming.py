"""Dynamic programming: tables whose entries are the best of others."""

from __future__ import annotations

from collections.abc import Sequence

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal, scalar

Edges = Sequence[tuple[int, int]]


def edit_distance(costs: Array, first: str, second: str) -> Array:
    """The cheapest edit of strings, by the costs of deleting, inserting and replacing: f[3] -> f[]."""
    row = [costs[1] * j for j in range(len(second) + 1)]
    for letter in first:
        after = [row[0] + costs[0]]
        for j, other in enumerate(second):
            replaced = row[j] if letter == other else row[j] + costs[2]
            after.append(min(row[j + 1] + costs[0], after[j] + costs[1], replaced))
        row = after
    return row[-1]


def edit_distance_graph(costs: Array, first: str, second: str) -> Array:
    """The letters are known to the trace; only the smallest is not."""
    row = [costs[1] * j for j in range(len(second) + 1)]
    for letter in first:
        after = [row[0] + costs[0]]
        for j, other in enumerate(second):
            replaced = row[j] if letter == other else row[j] + costs[2]
            after.append(graphs.minimum(graphs.minimum(row[j + 1] + costs[0], after[j] + costs[1]), replaced))
        row = after
    return row[-1]


def time_warping(x: Array, y: Array) -> Array:
    """The distance of two sequences, each of which may wait for the other: f[N], f[M] -> f[]."""
    table = {(-1, -1): x[0] * 0}
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            before = [table[p] for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p in table]
            table[i, j] = (a - b) ** 2 + min(before)
    return table[i, j]


def time_warping_graph(x: Array, y: Array) -> Array:
    """The table is known to the trace; the smallest is an op."""
    table = {(-1, -1): x[0] * 0}
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            before = [table[p] for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p in table]
            table[i, j] = (a - b) ** 2 + graphs.min(graphs.stack(before))
    return table[i, j]


def viterbi(emissions: Array, transitions: Array) -> Array:
    """The score of the best path through states: f[T, S], f[S, S] -> f[]."""
    score = emissions[0]
    for emission in emissions[1:]:
        score = graphs.max(graphs.expand_dims(score, axis=1) + transitions, axis=0) + emission
    return graphs.max(score)


def knapsack(values: Array, weights: Sequence[int], capacity: int) -> Array:
    """The most valuable choice whose weights fit: f[N] -> f[]."""
    best = [values[0] * 0] * (capacity + 1)
    for value, weight in zip(values, weights, strict=True):
        for room in range(capacity, weight - 1, -1):
            if best[room - weight] + value > best[room]:
                best[room] = best[room - weight] + value
    return best[capacity]


def knapsack_graph(values: Array, weights: Sequence[int], capacity: int) -> Array:
    """The better of two is an op."""
    best = [values[0] * 0] * (capacity + 1)
    for value, weight in zip(values, weights, strict=True):
        for room in range(capacity, weight - 1, -1):
            best[room] = graphs.maximum(best[room - weight] + value, best[room])
    return best[capacity]


def shortest_path(lengths: Array, edges: Edges, nodes: int) -> Array:
    """From the first node to the last (Bellman and Ford), until no edge shortens a path: f[E] -> f[]."""
    distances: list[Array] = [scalar(0)] + [scalar(1e3)] * (nodes - 1)
    changed = True
    while changed:
        changed = False
        for (start, end), length in zip(edges, lengths, strict=True):
            if distances[start] + length < distances[end]:
                distances[end] = distances[start] + length
                changed = True
    return distances[-1]


def shortest_path_graph(lengths: Array, edges: Edges, nodes: int) -> Array:
    """As many rounds as can be needed."""
    distances: list[Array] = [scalar(0)] + [scalar(1e3)] * (nodes - 1)
    for _ in range(nodes - 1):
        for (start, end), length in zip(edges, lengths, strict=True):
            distances[end] = graphs.minimum(distances[start] + length, distances[end])
    return distances[-1]


def heaviest_rising(x: Array) -> Array:
    """The largest sum of a rising subsequence: f[N] -> f[]."""
    best: list[Array] = []
    for i in range(x.shape[0]):
        most = x[i]
        for j in range(i):
            if x[j] < x[i] and best[j] + x[i] > most:
                most = best[j] + x[i]
        best.append(most)
    return max(best)


def heaviest_rising_graph(x: Array) -> Array:
    """Conditions select."""
    best: list[Array] = []
    for i in range(x.shape[0]):
        most = x[i]
        for j in range(i):
            most = graphs.where((x[j] < x[i]) & (best[j] + x[i] > most), best[j] + x[i], most)
        best.append(most)
    return graphs.max(graphs.stack(best))


_COSTS = floats(1, 1.5, 1.2)
_WORDS = (("kitten", "sitting"), ("graph", "graph"), ("tape", "trace"))
_EDGES = ((0, 1), (1, 2), (0, 2), (2, 3), (1, 3))
_LENGTHS = (floats(1, 1, 5, 1, 9), floats(4, 4, 1, 3, 9), floats(1, 7, 8, 9, 2))
_TRANSITIONS = normal(1, 3, 3)

PROGRAMS = (
    Program(edit_distance, edit_distance_graph, [(_COSTS, *words) for words in _WORDS]),
    Program(
        time_warping,
        time_warping_graph,
        [
            (floats(*x), floats(*y))
            for x, y in (((1, 2.2, 4), (1.1, 1.7, 4.5)), ((3, 1.2), (1, 2, 3.3)), ((1, 5, 2, 8), (4.1, 9)))
        ],
    ),
    Program(viterbi, viterbi, [(normal(seed, length, 3), _TRANSITIONS) for seed, length in ((2, 1), (3, 3), (4, 5))]),
    Program(
        knapsack,
        knapsack_graph,
        [
            (floats(*values), (2, 1, 3), capacity)
            for values, capacity in (((3, 2, 4), 3), ((1, 5, 9), 5), ((7, 2, 4), 4))
        ],
    ),
    Program(shortest_path, shortest_path_graph, [(lengths, _EDGES, 4) for lengths in _LENGTHS]),
    Program(
        heaviest_rising, heaviest_rising_graph, [(floats(*x),) for x in ((1, 3, 2, 5), (9, 1, 2, 3), (4, 3, 2, 1))]
    ),
)
