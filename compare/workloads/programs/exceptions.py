"""Exceptions that values raise, and code that catches them."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar


def log_or_line(x: Array) -> Array:
    """A logarithm that refuses what is too small, caught by the caller: f[] -> f[]."""

    def log(x: Array) -> Array:
        if x < 0.5:
            raise ValueError("too small")
        return graphs.log(x)

    try:
        return log(x)
    except ValueError:
        return x * 2


def log_or_line_graph(x: Array) -> Array:
    """What was caught is a branch."""
    return graphs.cond(x < 0.5, lambda: x * 2, lambda: graphs.log(x))


def place_or_last(x: Array, place: Array) -> Array:
    """An element, or the last where there is none: f[N], i[] -> f[]."""
    try:
        return list(x)[int(place)] ** 2
    except IndexError:
        return x[-1]


def place_or_last_graph(x: Array, place: Array) -> Array:
    """A place that is always there, and a comparison."""
    n = x.shape[0]
    return graphs.where(place < n, x[graphs.minimum(place, n - 1)] ** 2, x[-1])


def table_or_default(x: Array, key: Array) -> Array:
    """A table of factors that has no entry for some keys: f[N], i[] -> f[N]."""
    factors = {0: 2.0, 2: -1.0, 3: 0.5}
    try:
        return x * factors[int(key)]
    except KeyError:
        return x + 1


def table_or_default_graph(x: Array, key: Array) -> Array:
    """A switch with a function for every key, the last for what is beyond."""

    def missing() -> Array:
        return x + 1

    return graphs.switch(key, [lambda: x * 2.0, missing, lambda: x * -1.0, lambda: x * 0.5, missing])


def number_or_one(x: Array, scale: Array | str) -> Array:
    """A lenient reading of a setting, as a number if it is one: f[N], f[] or a string -> f[N]."""
    try:
        factor = float(scale)
    except (TypeError, ValueError):
        factor = 1.0
    return x * factor


def number_or_one_graph(x: Array, scale: Array | str) -> Array:
    """Asks for what it is, and not for its value."""
    if isinstance(scale, str):
        factor = 1.0
    else:
        factor = scale
    return x * factor


def retry_damped(a: Array) -> Array:
    """The logarithm of a determinant, damped more until the matrix is positive definite: f[2, 2] -> f[]."""

    def log_determinant(a: Array) -> Array:
        pivot = a[0, 0]
        rest = a[1, 1] - a[0, 1] * a[1, 0] / pivot
        if pivot <= 0 or rest <= 0:
            raise ArithmeticError("not positive definite")
        return graphs.log(pivot) + graphs.log(rest)

    damping = 0.1
    while True:
        try:
            return log_determinant(a + damping * np.eye(2)) - damping
        except ArithmeticError:
            damping *= 4


def retry_damped_graph(a: Array) -> Array:
    """The search for the damping is a loop, and what it guards follows."""

    def pivots(a: Array) -> Array:
        pivot = a[0, 0]
        return pivot, a[1, 1] - a[0, 1] * a[1, 0] / pivot

    def fails(damping: Array) -> Array:
        pivot, rest = pivots(a + damping * np.eye(2))
        return (pivot <= 0) | (rest <= 0)

    damping = graphs.while_loop(fails, lambda damping: damping * 4, 0.1)
    pivot, rest = pivots(a + damping * np.eye(2))
    return graphs.log(pivot) + graphs.log(rest) - damping


_ROW = floats(1, -2, 3)

PROGRAMS = (
    Program(log_or_line, log_or_line_graph, [(scalar(x),) for x in (2, 0.3, -1)]),
    Program(place_or_last, place_or_last_graph, [(_ROW, np.array(place)) for place in (0, 7, 2)]),
    Program(table_or_default, table_or_default_graph, [(_ROW, np.array(key)) for key in (0, 1, 2, 3, 4)]),
    Program(number_or_one, number_or_one_graph, [(_ROW, scale) for scale in (scalar(3), "auto", scalar(-2))]),
    Program(
        retry_damped,
        retry_damped_graph,
        [(floats([2, 1], [1, 3]),), (floats([-1, 0], [0, 2]),), (floats([1, 2], [2, 1]),)],
    ),
)
