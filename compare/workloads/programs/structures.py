"""Structures as data: trees with kinds of nodes, words with and without a vector, parsers that decide, messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal

Tree = Any
Edges = Sequence[tuple[int, int]]


def composed(vectors: Array, tree: Tree) -> Array:
    """A tree whose nodes say how they join their children, of any number: f[N, M] -> f[M]."""
    if isinstance(tree, int):
        return vectors[tree]
    kind, *children = tree
    parts = [composed(vectors, child) for child in children]
    match kind:
        case "mean":
            return sum(parts) / len(parts)
        case "gate":
            return graphs.sigmoid(parts[0]) * parts[1]
        case _:
            return graphs.tanh(sum(parts))


def spelled(params: Mapping[str, Any], words: Sequence[str]) -> Array:
    """A vector for each word, made of its letters where the word has none: f[N] each -> f[N]."""
    hidden = params["start"]
    for word in words:
        if word in params["words"]:
            vector = params["words"][word]
        else:
            vector = params["start"]
            for letter in word:
                vector = graphs.tanh(vector + params["letters"][letter])
        hidden = graphs.tanh(hidden * 0.5 + vector)
    return hidden


def shift_reduce(words: Array) -> Array:
    """A stack whose two topmost are joined for as long as they point the same way: f[T, N] -> f[N]."""
    stack: list[Array] = []
    for word in words:
        stack.append(word)
        while len(stack) > 1 and graphs.sum(stack[-1] * stack[-2]) > 0:
            right, left = stack.pop(), stack.pop()
            stack.append(graphs.tanh(left + 2 * right))
    return sum(stack)


def shift_reduce_graph(words: Array) -> Array:
    """The stack is an array with room for all words, and its height a number."""
    places = np.expand_dims(np.arange(words.shape[0]), axis=1)

    def write(stack: Array, place: Array, value: Array) -> Array:
        return graphs.where(places == place, value, stack)

    def agree(state: Array) -> Array:
        stack, height = state
        return (height > 1) & (graphs.sum(stack[height - 1] * stack[height - 2]) > 0)

    def join(state: Array) -> Array:
        stack, height = state
        return write(stack, height - 2, graphs.tanh(stack[height - 2] + 2 * stack[height - 1])), height - 1

    def step(state: Array, word: Array) -> Array:
        stack, height = state
        return graphs.while_loop(agree, join, (write(stack, height, word), height + 1)), ()

    stack, height = graphs.scan(step, (words * 0, 0), words)[0]
    return graphs.sum(graphs.where(places < height, stack, 0.0), axis=0)


def messages(x: Array, edges: Edges) -> Array:
    """Along each edge of a graph the smaller end learns from the larger: f[N] -> f[N]."""
    values = list(x)
    for start, end in edges:
        if values[start] > values[end]:
            values[end] = (values[end] + values[start]) / 2
    return graphs.stack(values)


def messages_graph(x: Array, edges: Edges) -> Array:
    """The edges are known to the trace; which end is larger is selected."""
    values = list(x)
    for start, end in edges:
        larger = values[start] > values[end]
        values[end] = graphs.where(larger, (values[end] + values[start]) / 2, values[end])
    return graphs.stack(values)


_VECTORS = normal(31, 5, 3)
_TREES = (("mean", 0, 1, ("gate", 2, 3)), ("sum", ("mean", 4, 0), 1), ("gate", 0, ("sum", 1, 2, 3, 4)))
_SPELLING = {
    "start": floats(0.1, -0.2),
    "words": {"a": floats(1, 0.5), "tape": floats(-1, 0.3)},
    "letters": dict(zip("graph", normal(32, 5, 2), strict=True)),
}
_EDGES = ((0, 1), (1, 2), (2, 0), (0, 2))

PROGRAMS = (
    Program(composed, composed, [(_VECTORS, tree) for tree in _TREES]),
    Program(spelled, spelled, [(_SPELLING, text.split()) for text in ("a graph", "tape", "gap a tape rap")]),
    Program(shift_reduce, shift_reduce_graph, [(normal(seed, 5, 2),) for seed in (1, 2, 3)]),
    Program(messages, messages_graph, [(floats(*x), _EDGES) for x in ((3, 1, 2.2), (1, 2, 3), (2, 5, -0.5))]),
)
