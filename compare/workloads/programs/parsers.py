"""Parsers: brackets by depth, formulas by precedence, the best bracketing of a sequence, runs of equal codes."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal

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

PROGRAMS = (
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
