"""Python containers, and generators and iterators.

Containers are of varying length, of names, or filled and emptied by a loop. Lazy sequences are ended by values, or by
structure alone.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, scalar

GROUPS = 4
"""Labels are below this."""


def mean_of_means(parts: Sequence[Array]) -> Array:
    """A list of arrays of any lengths: [f[N], ...] -> f[]."""
    total = 0.0
    for part in parts:
        total = total + graphs.mean(part)
    return total / len(parts)


def named_layers(layers: Mapping[str, Array], x: Array) -> Array:
    """A dict of layers, whose names say what they do: f[N] -> f[N]."""
    for name, weight in layers.items():
        if name.startswith("scale"):
            x = x * weight
        elif name.startswith("shift"):
            x = x + weight
        else:
            x = graphs.tanh(x * weight)
    return x


def postfix(values: Array, words: Sequence[str]) -> Array:
    """A stack machine for a formula in postfix notation, `x` the next value: f[N] -> f[]."""
    stack: list[Array] = []
    rest = iter(values)
    for word in words:
        if word == "x":
            stack.append(next(rest))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left * right if word == "*" else left - right)
    return stack[-1]


def stack_machine(values: Array, codes: Array) -> Array:
    """A stack machine run by data: 0 ends, 1 pushes the next value, 2 adds, 3 multiplies, f[N], i[M] -> f[]."""
    stack: list[Array] = []
    place = 0
    for code in codes:
        if code == 0:
            break
        if code == 1:
            stack.append(values[place])
            place += 1
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left + right if code == 2 else left * right)
    return stack[-1]


def stack_machine_graph(values: Array, codes: Array) -> Array:
    """The stack is an array with room for all values, and its height a number."""
    places = np.arange(values.shape[0])

    def write(stack: Array, place: Array, value: Array) -> Array:
        return graphs.where(places == place, value, stack)

    def step(state: Array, code: Array) -> Array:
        stack, height, place = state
        below, top = stack[height - 2], stack[height - 1]
        return graphs.switch(
            code,
            [
                lambda: state,
                lambda: (write(stack, height, values[place]), height + 1, place + 1),
                lambda: (write(stack, height - 2, below + top), height - 1, place),
                lambda: (write(stack, height - 2, below * top), height - 1, place),
            ],
        ), ()

    stack, height, _ = graphs.scan(step, (values * 0, 0, 0), codes)[0]
    return stack[height - 1]


def merge_smallest(x: Array) -> Array:
    """A heap of tensors: the two smallest merged, at the price of their sum, until one is left, f[N] -> f[]."""
    heap = list(x)
    heapq.heapify(heap)
    price = heap[0] * 0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        price = price + merged * merged
        heapq.heappush(heap, merged)
    return price


def merge_smallest_graph(x: Array) -> Array:
    """An array where what was taken is infinite."""
    places = np.arange(x.shape[0])
    price = x[0] * 0
    for _ in range(x.shape[0] - 1):
        first = graphs.argmin(x)
        rest = graphs.where(places == first, np.inf, x)
        second = graphs.argmin(rest)
        merged = x[first] + x[second]
        price = price + merged * merged
        x = graphs.where(places == second, merged, rest)
    return price


def group_by(x: Array, labels: Array) -> Array:
    """A dict with an entry for each label that occurs: the product of the groups' sums, f[N], i[N] -> f[]."""
    groups: dict[int, list[Array]] = defaultdict(list)
    for value, label in zip(x, labels, strict=True):
        groups[int(label)].append(value)
    y = x[0] * 0 + 1
    for group in groups.values():
        y = y * graphs.sum(graphs.stack(group))
    return y


def group_by_graph(x: Array, labels: Array) -> Array:
    """An entry for each label that could occur; the largest must be known."""
    members = labels == graphs.expand_dims(np.arange(GROUPS), axis=1)
    sums = graphs.sum(graphs.where(members, x, 0.0), axis=1)
    return graphs.prod(graphs.where(graphs.any(members, axis=1), sums, 1.0))


_FORMULAS = ("x x *", "x x - x *", "x x x * -")
_CODES = ((1, 1, 2, 0, 0), (1, 1, 1, 3, 2), (1, 1, 3, 1, 3))
_LAYERS = (
    {"scale0": floats(2.0), "tanh0": floats(0.5)},
    {"shift0": floats(1.0)},
    {"tanh0": floats(3), "scale0": floats(2)},
)

CONTAINERS = (
    Program(
        mean_of_means, mean_of_means, [([floats(*range(n)) for n in sizes],) for sizes in ((2,), (3, 5), (2, 4, 7))]
    ),
    Program(named_layers, named_layers, [(layers, floats(1, -2)) for layers in _LAYERS]),
    Program(postfix, postfix, [(floats(2, 3, 5), formula.split()) for formula in _FORMULAS]),
    Program(stack_machine, stack_machine_graph, [(floats(2, 3, 5), np.array(codes)) for codes in _CODES]),
    Program(
        merge_smallest, merge_smallest_graph, [(floats(*x),) for x in ((1, 2, 4, 8), (5, 1, 3, 2), (4, 4.5, 5, 6))]
    ),
    Program(
        group_by,
        group_by_graph,
        [(floats(1, 2, 3, 4), np.array(labels)) for labels in ((0, 1, 0, 1), (2, 2, 2, 2), (3, 0, 1, 2))],
    ),
)


# Generators -----------------------------------------------------------------------------------------------------------


def sum_of_shrinking(x: Array) -> Array:
    """A generator that ends when its values are small: f[] -> f[]."""

    def shrinking(x: Array) -> Iterator[Array]:
        while abs(x) > 0.01:
            yield x
            x = x * x / 2

    return sum(shrinking(x), x * 0)


def sum_of_shrinking_graph(x: Array) -> Array:
    """Generator and sum are one loop."""
    return graphs.while_loop(
        lambda state: abs(state[0]) > 0.01,
        lambda state: (state[0] * state[0] / 2, state[1] + state[0]),
        (x, x * 0),
    )[1]


def windows(x: Array, width: int) -> Array:
    """A generator of slices, which a shape ends: f[N] -> f[]."""

    def slices() -> Iterator[Array]:
        for start in range(x.shape[0] - width + 1):
            yield x[start : start + width]

    return graphs.logsumexp(graphs.stack([graphs.prod(part) for part in slices()]))


def fold(x: Array) -> Array:
    """Horner's rule by reduce: f[N] -> f[]."""
    return functools.reduce(lambda total, value: total * 0.5 + value, x)


def leading(x: Array) -> Array:
    """What comes before the first that is not positive: f[N] -> f[]."""
    return sum((value * value for value in itertools.takewhile(lambda value: value > 0, x)), x[0] * 0)


def leading_graph(x: Array) -> Array:
    """A mask: nothing that is not positive up to here."""
    return graphs.sum(graphs.where(graphs.cumulative_sum(graphs.astype(x <= 0, int)) == 0, x * x, 0.0))


def next_above(x: Array, threshold: Array) -> Array:
    """The first that is large, else a default: f[N], f[] -> f[]."""
    return next((value * value for value in x if value > threshold), threshold)


def next_above_graph(x: Array, threshold: Array) -> Array:
    """The place of the first is that of the largest of the bools."""
    large = x > threshold
    return graphs.where(graphs.any(large), x[graphs.argmax(large)] ** 2, threshold)


def smoothed(x: Array, rate: Array) -> Array:
    """A coroutine that keeps a mean and is sent values: f[N], f[] -> f[N]."""

    def mean() -> Iterator[Array]:
        kept = x[0]
        for value in x:
            kept = rate * kept + (1 - rate) * value
            yield kept

    return graphs.stack(list(mean()))


_ROWS = (floats(1, 3, -2, 4), floats(-1, 2, 3, 5), floats(3, 2, 1, 0.5))

GENERATORS = (
    Program(sum_of_shrinking, sum_of_shrinking_graph, [(scalar(x),) for x in (1, 1.9, 0.001)]),
    Program(windows, windows, [(np.arange(0.5, n), width) for n, width in ((3, 1), (4, 3), (5, 2))]),
    Program(fold, fold, [(row[:n],) for n, row in zip((1, 3, 4), _ROWS, strict=True)]),
    Program(leading, leading_graph, [(row,) for row in _ROWS]),
    Program(next_above, next_above_graph, [(row, scalar(2.5)) for row in (*_ROWS, -_ROWS[2])]),
    Program(smoothed, smoothed, [(row[:n], scalar(0.9)) for n, row in zip((1, 3, 4), _ROWS, strict=True)]),
)


PROGRAMS = {"containers": CONTAINERS, "generators": GENERATORS}
