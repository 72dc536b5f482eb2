"""Branches on values: if and else, nested, chained, early returns, ternaries, match."""

from __future__ import annotations

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar


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

PROGRAMS = (
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
