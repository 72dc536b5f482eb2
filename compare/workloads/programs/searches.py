"""Searches: output made token by token until it says stop, tables whose entries are the best of others, and parsers.

The parsers read brackets by depth, formulas by precedence, the best bracketing of a sequence, runs of equal codes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, normal, scalar
from compare.workloads.programs.states import VALUE_SHAPED

END = 0
MOST = 6
WIDTH = 2


def greedy(scores: Array, first: Array) -> Array:
    """The likeliest next token until the end: the log probability of all, f[V, V], i[] -> f[]."""
    token, total, length = int(first), 0.0, 0
    while token != END and length < MOST:
        log_p = graphs.log_softmax(scores[token])
        token = int(graphs.argmax(log_p))
        total = total + log_p[token]
        length += 1
    return total / length


def greedy_graph(scores: Array, first: Array) -> Array:
    """Three values are state, and the token an index."""

    def step(state: Array) -> Array:
        token, total, length = state
        log_p = graphs.log_softmax(scores[token])
        token = graphs.argmax(log_p)
        return token, total + log_p[token], length + 1

    _, total, length = graphs.while_loop(lambda state: (state[0] != END) & (state[2] < MOST), step, (first, 0.0, 0))
    return total / length


def greedy_tokens(scores: Array, first: Array) -> Array:
    """As greedy, and the log probability of each token: f[V, V], i[] -> f[tokens]."""
    token = int(first)
    chosen: list[Array] = []
    while token != END and len(chosen) < MOST:
        log_p = graphs.log_softmax(scores[token])
        token = int(graphs.argmax(log_p))
        chosen.append(log_p[token])
    return graphs.stack(chosen)


def beam(scores: Array, first: Array) -> Array:
    """The best of some hypotheses, each ended or not: its log probability, f[V, V], i[] -> f[]."""
    beams = [(0.0, int(first))]
    for _ in range(3):
        candidates = []
        for total, token in beams:
            if token == END:
                candidates.append((total, token))
                continue
            for after, log_p in enumerate(graphs.log_softmax(scores[token])):
                candidates.append((total + log_p, after))
        beams = sorted(candidates, key=lambda candidate: candidate[0], reverse=True)[:WIDTH]
    return beams[0][0]


def beam_graph(scores: Array, first: Array) -> Array:
    """All continuations at once, impossible ones at minus infinity; the best are found by sorting."""
    vocabulary = scores.shape[0]
    stay = np.where(np.arange(vocabulary) == END, 0.0, -np.inf)
    totals, tokens = np.array([0.0, -np.inf]), graphs.stack([first, first])
    for _ in range(3):
        ended = graphs.expand_dims(tokens == END, axis=1)
        log_p = graphs.where(ended, stay, graphs.log_softmax(graphs.take(scores, tokens), axis=1))
        candidates = graphs.reshape(graphs.expand_dims(totals, axis=1) + log_p, (-1,))
        best = graphs.argsort(candidates, descending=True)[:WIDTH]
        totals, tokens = graphs.take(candidates, best), best % vocabulary
    return totals[0]


def collapse(log_p: Array) -> Array:
    """The likeliest label at each time, repeats and blanks left out: their log probability, f[T, V] -> f[]."""
    total, last = log_p[0, 0] * 0, None
    for row in log_p:
        label = int(graphs.argmax(row))
        if label != last and label != END:
            total = total + row[label]
        last = label
    return total


def collapse_graph(log_p: Array) -> Array:
    """Labels at once, each against the one before."""
    labels = graphs.argmax(log_p, axis=1)
    new = graphs.concat([np.array([True]), labels[1:] != labels[:-1]]) & (labels != END)
    return graphs.sum(graphs.where(new, graphs.max(log_p, axis=1), 0.0))


_SCORES = [2 * normal(seed, 4, 4) for seed in (1, 2, 3, 4)]
_STARTS = [(scores, np.array(first)) for scores, first in zip(_SCORES, (1, 2, 3, 1), strict=True)]
_TIMES = [floats(*normal(seed, 6, 3)) for seed in (1, 2, 3)]

DECODING = (
    Program(greedy, greedy_graph, _STARTS),
    Program(greedy_tokens, None, _STARTS, VALUE_SHAPED),
    Program(beam, beam_graph, _STARTS),
    Program(collapse, collapse_graph, [(log_p,) for log_p in _TIMES]),
)


# Dynamic programming --------------------------------------------------------------------------------------------------


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

DYNAMIC_PROGRAMMING = (
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


# Parsers --------------------------------------------------------------------------------------------------------------


OPEN, CLOSE = 1, 2
BINDS = {"+": 1, "-": 1, "*": 2}


def nesting(x: Array, codes: Array) -> Array:
    """Values that weigh half as much in each bracket, up to one that nothing opened: f[N], i[N] -> f[]."""
    depth, total = 0, x[0] * 0
    for value, code in zip(x, codes, strict=True):
        if code == OPEN:
            depth += 1
        elif code == CLOSE:
            depth -= 1
            if depth < 0:
                break
        else:
            total = total + value * 0.5**depth
    return total


def nesting_graph(x: Array, codes: Array) -> Array:
    """The depth is a sum, and a mask ends the sequence."""
    opened, closed = codes == OPEN, codes == CLOSE
    depth = graphs.cumulative_sum(graphs.astype(opened, int) - graphs.astype(closed, int))
    balanced = graphs.cumulative_sum(graphs.astype(depth < 0, int)) == 0
    return graphs.sum(graphs.where(balanced & ~opened & ~closed, x * 0.5**depth, 0.0))


def formula(values: Array, text: str) -> Array:
    """A formula by operator precedence, on two stacks; digits are places of values: f[N] -> f[]."""
    numbers: list[Array] = []
    waiting: list[str] = []

    def apply() -> None:
        sign, right, left = waiting.pop(), numbers.pop(), numbers.pop()
        numbers.append(left * right if sign == "*" else left + right if sign == "+" else left - right)

    for letter in text:
        if letter.isdigit():
            numbers.append(values[int(letter)])
        elif letter == "(":
            waiting.append(letter)
        elif letter == ")":
            while waiting[-1] != "(":
                apply()
            waiting.pop()
        else:
            while waiting and BINDS.get(waiting[-1], 0) >= BINDS[letter]:
                apply()
            waiting.append(letter)
    while waiting:
        apply()
    return numbers[0]


def bracketing(scores: Array) -> Array:
    """The best way to bracket a sequence, by the scores of its spans (Cocke, Kasami, Younger): f[N, N] -> f[]."""
    n = scores.shape[0]
    best: dict[tuple[int, int], Array] = {}
    for length in range(1, n + 1):
        for start in range(n - length + 1):
            end = start + length
            parts = [best[start, middle] + best[middle, end] for middle in range(start + 1, end)]
            best[start, end] = scores[start, end - 1] + (max(parts) if parts else 0)
    return best[0, n]


def bracketing_graph(scores: Array) -> Array:
    """The spans are known to the trace; the best split is an op."""
    n = scores.shape[0]
    best: dict[tuple[int, int], Array] = {}
    for length in range(1, n + 1):
        for start in range(n - length + 1):
            end = start + length
            parts = [best[start, middle] + best[middle, end] for middle in range(start + 1, end)]
            best[start, end] = scores[start, end - 1] + (graphs.max(graphs.stack(parts)) if parts else 0)
    return best[0, n]


def runs(x: Array, codes: Array) -> Array:
    """The squared sums of runs of equal codes: f[N], i[N] -> f[]."""
    total, start = x[0] * 0, 0
    while start < x.shape[0]:
        run, end = x[start], start + 1
        while end < x.shape[0] and codes[end] == codes[start]:
            run = run + x[end]
            end += 1
        total = total + run * run
        start = end
    return total


def runs_graph(x: Array, codes: Array) -> Array:
    """One loop, in which a code that changes ends a run."""

    def step(state: Array, item: Array) -> Array:
        total, run = state
        value, new = item[0], item[1] > 0
        return (graphs.where(new, total + run * run, total), graphs.where(new, value, run + value)), ()

    new = graphs.where(graphs.concat([np.array([True]), codes[1:] != codes[:-1]]), 1.0, 0.0)
    total, run = graphs.scan(step, (x[0] * 0, x[0] * 0), graphs.stack([x, new], axis=1))[0]
    return total + run * run


_NUMBERS = floats(2, -3, 0.5, 4)

PARSERS = (
    Program(
        nesting,
        nesting_graph,
        [(floats(1, 2, 3, 4, 5), np.array(codes)) for codes in ((0, 1, 0, 2, 0), (1, 1, 0, 0, 2), (0, 2, 0, 1, 0))],
    ),
    Program(formula, formula, [(_NUMBERS, text) for text in ("0+1*2-3", "(0-1)*(2+3)", "0*1*(2-3*0)")]),
    Program(bracketing, bracketing_graph, [(normal(seed, n, n),) for seed, n in ((51, 1), (52, 3), (53, 4))]),
    Program(
        runs,
        runs_graph,
        [(floats(1, 2, 3, 4), np.array(codes)) for codes in ((0, 0, 1, 1), (2, 2, 2, 2), (0, 1, 1, 0))],
    ),
)


PROGRAMS = {"decoding": DECODING, "dynamic_programming": DYNAMIC_PROGRAMMING, "parsers": PARSERS}
