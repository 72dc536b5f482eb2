"""Loops until something has converged: the count of their rounds is known when they have run."""

from __future__ import annotations

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal, scalar

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

PROGRAMS = (
    Program(newton_sqrt, newton_sqrt_graph, [(scalar(a),) for a in (2, 900, 1.1, 0.01)]),
    Program(fixed_point, fixed_point_graph, [(scalar(c),) for c in (0.5, 1, 0.1)]),
    Program(bisection, bisection_graph, [(scalar(a),) for a in (2.5, -7.3, 30.1)]),
    Program(power_iteration, power_iteration_graph, [(factor @ factor.T,) for factor in _FACTORS]),
    Program(line_search, line_search_graph, [(floats(1, -2),), (floats(0.3, 0.1),), (floats(20, 30),)]),
    Program(
        sinkhorn, sinkhorn_graph, [(abs(factor) + bias,) for factor, bias in zip(_FACTORS, (1, 0.3, 9), strict=True)]
    ),
)
