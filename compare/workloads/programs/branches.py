"""Branches on values: if and else, nested, chained, early returns, ternaries, match; exceptions that values raise."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, scalar


def branch_on_sum(x: Array) -> Array:
    """The textbook branch: f[N] -> f[N]."""
    if graphs.sum(x) > 0:
        y = x * 2
    else:
        y = x - 2
    return y


def branch_on_sum_graph(x: Array) -> Array:
    """The branch as an op."""
    return graphs.cond(graphs.sum(x) > 0, lambda: x * 2, lambda: x - 2)


def three_ways(x: Array) -> Array:
    """A chain of conditions, one computation for each: f[N] -> f[N]."""
    total = graphs.sum(x)
    if total > 10:
        return x * 3
    if total > 0:
        return x * x
    return x / 2


def three_ways_graph(x: Array) -> Array:
    """A branch within a branch."""
    total = graphs.sum(x)
    return graphs.cond(total > 10, lambda: x * 3, lambda: graphs.cond(total > 0, lambda: x * x, lambda: x / 2))


def nested_branches(x: Array) -> Array:
    """Branches whose conditions depend on other things: f[N] -> f[]."""
    if graphs.max(x) > 1:
        if graphs.min(x) < -1:
            y = graphs.max(x) - graphs.min(x)
        else:
            y = graphs.sum(graphs.exp(-x))
    elif graphs.mean(x) > 0:
        y = graphs.sum(x * x)
    else:
        y = graphs.sum(graphs.sin(x))
    return y


def nested_branches_graph(x: Array) -> Array:
    """The same tree of branches, of functions."""
    return graphs.cond(
        graphs.max(x) > 1,
        lambda: graphs.cond(
            graphs.min(x) < -1,
            lambda: graphs.max(x) - graphs.min(x),
            lambda: graphs.sum(graphs.exp(-x)),
        ),
        lambda: graphs.cond(
            graphs.mean(x) > 0,
            lambda: graphs.sum(x * x),
            lambda: graphs.sum(graphs.sin(x)),
        ),
    )


def clip_norm(x: Array, limit: Array) -> Array:
    """A vector shortened to a length, left alone if it is short enough: f[N], f[] -> f[N]."""
    norm = graphs.sqrt(graphs.sum(x * x))
    if norm <= limit:
        return x
    return x * (limit / norm)


def clip_norm_graph(x: Array, limit: Array) -> Array:
    """Both results, of which one is selected."""
    norm = graphs.sqrt(graphs.sum(x * x))
    return graphs.where(norm <= limit, x, x * (limit / norm))


def short_circuit(x: Array) -> Array:
    """`and` guards a logarithm that has no value for all x: f[N] -> f[N]."""
    total = graphs.sum(x)
    if total > 0 and graphs.log(total) > 1:
        return graphs.log(x * x + total)
    return x * 0.5


def short_circuit_graph(x: Array) -> Array:
    """The guard as a comparison that has a value for all x."""
    total = graphs.sum(x)
    return graphs.cond(
        (total > 0) & (graphs.log(graphs.maximum(total, 1.0)) > 1),
        lambda: graphs.log(x * x + total),
        lambda: x * 0.5,
    )


def leaky_elements(x: Array) -> Array:
    """A ternary for each element, in a comprehension: f[N] -> f[N]."""
    return graphs.stack([v if v > 0 else 0.1 * v for v in x])


def leaky_elements_graph(x: Array) -> Array:
    """The elements at once."""
    return graphs.where(x > 0, x, 0.1 * x)


def match_largest(x: Array) -> Array:
    """A match on the place of the largest element: f[4] -> f[]."""
    match int(graphs.argmax(x)):
        case 0:
            return graphs.sum(x)
        case 1 | 2:
            return x[1] * x[2]
        case _:
            return graphs.exp(x[0])


def match_largest_graph(x: Array) -> Array:
    """A switch with a function for each place."""

    def middle() -> Array:
        return x[1] * x[2]

    return graphs.switch(graphs.argmax(x), [lambda: graphs.sum(x), middle, middle, lambda: graphs.exp(x[0])])


def clamp(x: Array) -> Array:
    """Python's own min and max, which compare: f[N] -> f[]."""
    return max(min(graphs.sum(x), x[0] * 3), x[-1])


def clamp_graph(x: Array) -> Array:
    """The ops of the same meaning."""
    return graphs.maximum(graphs.minimum(graphs.sum(x), x[0] * 3), x[-1])


def by_rank(x: Array, weight: Array) -> Array:
    """A branch on the shape alone, known before any value: f[N] or f[N, M] -> f[]."""
    if len(x.shape) == 1:
        return graphs.sum(x) * weight
    if x.shape[0] > x.shape[1]:
        return graphs.sum(x @ graphs.matrix_transpose(x)) * weight
    return graphs.sum(graphs.matrix_transpose(x) @ x) * weight


_SIGNS = ((floats(1, -0.8, 2),), (floats(-3, -2, -1),), (floats(5, 4, 3),))

BRANCHES = (
    Program(branch_on_sum, branch_on_sum_graph, _SIGNS),
    Program(three_ways, three_ways_graph, _SIGNS),
    Program(nested_branches, nested_branches_graph, [(floats(2, -2, 0.5),), *_SIGNS, (floats(0.5, 0.2, -0.1),)]),
    Program(clip_norm, clip_norm_graph, [(x, scalar(3)) for (x,) in _SIGNS]),
    Program(short_circuit, short_circuit_graph, _SIGNS),
    Program(leaky_elements, leaky_elements_graph, _SIGNS),
    Program(
        match_largest, match_largest_graph, [(floats(*row),) for row in ((4, 1, 2, 3), (1, 2, 4, 3), (1, 2, 3, 4))]
    ),
    Program(clamp, clamp_graph, [*_SIGNS, (floats(0.5, 4, 1),)]),
    Program(by_rank, by_rank, [(x, scalar(2)) for x in (floats(1, 2), floats([1], [2]), floats([1, 2, 3]))]),
)


# Exceptions -----------------------------------------------------------------------------------------------------------


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

EXCEPTIONS = (
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


PROGRAMS = {"branches": BRANCHES, "exceptions": EXCEPTIONS}
