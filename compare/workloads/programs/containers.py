"""Python containers: of varying length, of names, and ones that a loop fills and empties."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats

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

PROGRAMS = (
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
