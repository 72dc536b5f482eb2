"""Loops with a count in Python or in the data (nested, with break, continue and else), and loops until convergence.

How often a loop runs until something has converged is known when it has run.
"""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, normal, scalar


def power(x: Array, exponent: int) -> Array:
    """A loop whose count is a Python number: f[N] -> f[N]."""
    y = x
    for _ in range(exponent - 1):
        y = y * x
    return y


def triangle(matrix: Array) -> Array:
    """Nested loops over a shape: the products above the diagonal, f[N, N] -> f[]."""
    total = graphs.sum(matrix) * 0
    for i in range(matrix.shape[0]):
        for j in range(i):
            total = total + matrix[i, j] * matrix[j, i]
    return total


def grow(x: Array) -> Array:
    """A loop that runs for as long as a value is small: f[N] -> f[N]."""
    while graphs.sum(x) < 100:
        x = x * x + 1
    return x


def grow_graph(x: Array) -> Array:
    """The loop as an op."""
    return graphs.while_loop(lambda x: graphs.sum(x) < 100, lambda x: x * x + 1, x)


def compound(x: Array, times: Array) -> Array:
    """A loop as often as the data says: f[N], i[] -> f[N]."""
    for _ in range(int(times)):
        x = x + graphs.sin(x)
    return x


def compound_graph(x: Array, times: Array) -> Array:
    """A count in the state of a loop."""
    return graphs.while_loop(
        lambda state: state[0] < times,
        lambda state: (state[0] + 1, state[1] + graphs.sin(state[1])),
        (0, x),
    )[1]


def halve_rows(rows: Array) -> Array:
    """A while loop in a for loop: each row halved until it is short, f[N, M] -> f[]."""
    total = graphs.sum(rows) * 0
    for row in rows:
        while graphs.sum(row * row) > 1:
            row = row / 2
        total = total + graphs.sum(row)
    return total


def halve_rows_graph(rows: Array) -> Array:
    """The for loop is unrolled, the while loop is an op."""
    total = graphs.sum(rows) * 0
    for row in rows:
        row = graphs.while_loop(lambda row: graphs.sum(row * row) > 1, lambda row: row / 2, row)
        total = total + graphs.sum(row)
    return total


def spend(costs: Array, budget: Array) -> Array:
    """A loop left by break: what was bought before the money ran out, f[N], f[] -> f[]."""
    total = costs[0] * 0
    for cost in costs:
        if total + cost > budget:
            break
        total = total + cost
    return total


def spend_graph(costs: Array, budget: Array) -> Array:
    """A flag in the state says whether the loop was left."""

    def step(state: Array, cost: Array) -> Array:
        total, going = state
        going = going & (total + cost <= budget)
        return (graphs.where(going, total + cost, total), going), ()

    return graphs.scan(step, (costs[0] * 0, True), costs)[0][0]


def skip_negative(x: Array) -> Array:
    """A loop that skips by continue: f[N] -> f[]."""
    total = x[0] * 0
    for value in x:
        if value < 0:
            continue
        total = total + graphs.sqrt(value)
    return total


def skip_negative_graph(x: Array) -> Array:
    """All at once; inside the root a value that is skipped is replaced, or its gradient would be NaN."""
    kept = x >= 0
    return graphs.sum(graphs.where(kept, graphs.sqrt(graphs.where(kept, x, 1.0)), 0.0))


def first_above(x: Array, threshold: Array) -> Array:
    """A search with for and else: the square of the first that is large, else the sum, f[N], f[] -> f[]."""
    for value in x:
        if value > threshold:
            y = value * value
            break
    else:
        y = graphs.sum(x)
    return y


def first_above_graph(x: Array, threshold: Array) -> Array:
    """The place of the first is that of the largest of the bools."""
    large = x > threshold
    first = x[graphs.argmax(large)]
    return graphs.where(graphs.any(large), first * first, graphs.sum(x))


_COSTS = floats(3, 1, 4, 1, 5)

LOOPS = (
    Program(power, power, [(floats(2, -1, 0.5), exponent) for exponent in (1, 2, 4)]),
    Program(triangle, triangle, [(np.arange(1.0, 1 + n * n).reshape(n, n),) for n in (1, 2, 4)]),
    Program(grow, grow_graph, [(floats(1, 2),), (floats(0.1, 0.2),), (floats(50, 60),)]),
    Program(compound, compound_graph, [(floats(0.5, 2), np.array(times)) for times in (1, 3, 0)]),
    Program(halve_rows, halve_rows_graph, [(floats([1, 2], [0.5, 0.1]) * scale,) for scale in (1, 10, 0.1)]),
    Program(spend, spend_graph, [(_COSTS, scalar(budget)) for budget in (4.5, 8.5, 20.5, 1.5)]),
    Program(skip_negative, skip_negative_graph, [(floats(1, -2, 3),), (floats(-1, -2, -3),), (floats(4, 2, -3),)]),
    Program(first_above, first_above_graph, [(_COSTS, scalar(threshold)) for threshold in (3.5, 2.5, 9.5)]),
)


# Convergence ----------------------------------------------------------------------------------------------------------


TOLERANCE = 1e-12


def newton_sqrt(a: Array) -> Array:
    """The square root by Newton's iteration: f[] -> f[]."""
    y = a
    while abs(y * y - a) > TOLERANCE * a:
        y = (y + a / y) / 2
    return y


def newton_sqrt_graph(a: Array) -> Array:
    """The loop as an op."""
    return graphs.while_loop(lambda y: abs(y * y - a) > TOLERANCE * a, lambda y: (y + a / y) / 2, a)


def fixed_point(c: Array) -> Array:
    """The x for which x = cos(c x), by iteration: f[] -> f[]."""
    x, change = c * 0 + 1, 1.0
    while change > TOLERANCE:
        after = graphs.cos(c * x)
        change = abs(after - x)
        x = after
    return x


def fixed_point_graph(c: Array) -> Array:
    """What the condition reads is part of the state."""

    def step(state: Array) -> Array:
        x, _ = state
        after = graphs.cos(c * x)
        return after, abs(after - x)

    return graphs.while_loop(lambda state: state[1] > TOLERANCE, step, (c * 0 + 1, 1.0))[0]


def bisection(a: Array) -> Array:
    """The x for which x^3 + x = a, by halving; a last Newton step makes the gradient right: f[] -> f[]."""
    low, high = -10.0, 10.0
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        if middle**3 + middle < a:
            low = middle
        else:
            high = middle
    return low - (low**3 + low - a) / (3 * low**2 + 1)


def bisection_graph(a: Array) -> Array:
    """Both ends are state; each is selected."""

    def step(state: Array) -> Array:
        low, high = state
        middle = (low + high) / 2
        below = middle**3 + middle < a
        return graphs.where(below, middle, low), graphs.where(below, high, middle)

    low, _ = graphs.while_loop(lambda state: state[1] - state[0] > TOLERANCE, step, (-10.0, 10.0))
    return low - (low**3 + low - a) / (3 * low**2 + 1)


def power_iteration(matrix: Array) -> Array:
    """The largest eigenvalue of a symmetric matrix, until it moves no more: f[N, N] -> f[]."""
    v = graphs.sum(matrix, axis=1)
    value, last = graphs.sum(v), 0.0
    while abs(value - last) > TOLERANCE:
        v = matrix @ v
        v = v / graphs.sqrt(graphs.sum(v * v))
        value, last = graphs.sum(v * (matrix @ v)), value
    return value


def power_iteration_graph(matrix: Array) -> Array:
    """Three values are state."""

    def step(state: Array) -> Array:
        v, value, _ = state
        v = matrix @ v
        v = v / graphs.sqrt(graphs.sum(v * v))
        return v, graphs.sum(v * (matrix @ v)), value

    v = graphs.sum(matrix, axis=1)
    return graphs.while_loop(lambda state: abs(state[1] - state[2]) > TOLERANCE, step, (v, graphs.sum(v), 0.0))[1]


def line_search(x: Array) -> Array:
    """Descent on sum(x^4 + x^2), each step halved until it goes down enough: f[N] -> f[]."""
    for _ in range(3):
        slope = 4 * x**3 + 2 * x
        size = 1.0
        while graphs.sum((x - size * slope) ** 4 + (x - size * slope) ** 2) > 0.9 * graphs.sum(x**4 + x**2):
            size = size / 2
        x = x - size * slope
    return graphs.sum(x**4 + x**2)


def line_search_graph(x: Array) -> Array:
    """The search is an op, its size the state."""
    for _ in range(3):
        slope = 4 * x**3 + 2 * x
        size = graphs.while_loop(
            lambda size, x=x, slope=slope: (
                graphs.sum((x - size * slope) ** 4 + (x - size * slope) ** 2) > 0.9 * graphs.sum(x**4 + x**2)
            ),
            lambda size: size / 2,
            1.0,
        )
        x = x - size * slope
    return graphs.sum(x**4 + x**2)


def sinkhorn(matrix: Array) -> Array:
    """Rows and columns scaled in turn until the rows sum to one: f[N, N] -> f[N, N], positive."""
    while graphs.max(abs(graphs.sum(matrix, axis=1) - 1)) > TOLERANCE:
        matrix = matrix / graphs.sum(matrix, axis=1, keepdims=True)
        matrix = matrix / graphs.sum(matrix, axis=0, keepdims=True)
    return matrix


def sinkhorn_graph(matrix: Array) -> Array:
    """Condition and step are functions."""

    def step(matrix: Array) -> Array:
        matrix = matrix / graphs.sum(matrix, axis=1, keepdims=True)
        return matrix / graphs.sum(matrix, axis=0, keepdims=True)

    return graphs.while_loop(lambda matrix: graphs.max(abs(graphs.sum(matrix, axis=1) - 1)) > TOLERANCE, step, matrix)


_FACTORS = [normal(seed, 3, 3) for seed in (1, 2, 3)]

CONVERGENCE = (
    Program(newton_sqrt, newton_sqrt_graph, [(scalar(a),) for a in (2, 900, 1.1, 0.01)]),
    Program(fixed_point, fixed_point_graph, [(scalar(c),) for c in (0.5, 1, 0.1)]),
    Program(bisection, bisection_graph, [(scalar(a),) for a in (2.5, -7.3, 30.1)]),
    Program(power_iteration, power_iteration_graph, [(factor @ factor.T,) for factor in _FACTORS]),
    Program(line_search, line_search_graph, [(floats(1, -2),), (floats(0.3, 0.1),), (floats(20, 30),)]),
    Program(
        sinkhorn, sinkhorn_graph, [(abs(factor) + bias,) for factor, bias in zip(_FACTORS, (1, 0.3, 9), strict=True)]
    ),
)


PROGRAMS = {"loops": LOOPS, "convergence": CONVERGENCE}
