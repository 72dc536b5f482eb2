"""Marks through a graph, and through the branches and bodies that it holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphs.dispatch import BROKEN_RULES
from graphs.ir import CONSTANT, Graph, Node
from graphs.op import Op
from graphs.ops import control
from static.taint import elementwise, structure
from static.taint.marks import Mark, Marks, Rule, anything, flat, known, sound, unmarked


def follow(graph: Graph, inputs: Sequence[Mark]) -> dict[Node, Marks]:
    """The marks of every node. The sizes of the graph are numbers."""
    marks: dict[Node, Marks] = dict(zip(graph.inputs, inputs, strict=True))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node not in marks:
                marks[node] = _marked(node, [marks[source] for source in node.inputs])
    return marks


def culprit(graph: Graph, marks: Mapping[Node, Marks], output: Node) -> Node:
    """The first node, of those that an output is computed from, at which padding reaches what is not extra itself."""
    needed = {output}
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
    return next((node for node in graph.nodes if node in needed and any(map(_is_reached, flat(marks[node])))), output)


def _is_reached(mark: Mark) -> bool:
    return bool((mark.taint & ~mark.extra).any())


def _marked(node: Node, sources: Sequence[Any]) -> Marks:
    rule = _RULES.get(node.op)
    if node.op.family == "control":
        return rule(node, sources) if rule else anything(node, sources)
    if node.op is CONSTANT or (not node.op.effect and all(map(_is_constant, sources))):
        try:
            return known(np.asarray(node.op.kernel(*[source.value for source in sources], **node.attrs)))
        except BROKEN_RULES:  # such as the inverse of zeros, in a branch that is not taken
            return anything(node, sources)
    return (rule or _FAMILIES.get(node.op.family, anything))(node, sources)


def _is_constant(mark: Marks) -> bool:
    return bool(mark.known.all() and not mark.taint.any() and (mark.extra.all() or not mark.extra.any()))


# Control flow -----------------------------------------------------------------------------------------------------


def _results(graph: Graph, inputs: Sequence[Any]) -> tuple[Marks, ...]:
    marks = follow(graph, inputs)
    return tuple(marks[output] for output in graph.outputs)


def _joined(one: Marks, other: Marks) -> Marks:
    """What holds of both."""
    if not isinstance(one, Mark):
        return tuple(map(_joined, one, other))
    same = one.known & other.known & (one.value == other.value)
    return sound(Mark(one.taint | other.taint, same, one.value, one.extra | other.extra))


def _tainted(marks: Marks) -> Marks:
    if not isinstance(marks, Mark):
        return tuple(map(_tainted, marks))
    return unmarked(marks.value.shape, marks.value.dtype, taint=True)


def _switch(node: Node, sources: Sequence[Any]) -> Marks:
    index, *operands = sources
    branches = node.attrs["branches"]
    if index.known.all():
        return _results(branches[min(max(int(index.value), 0), len(branches) - 1)], operands)
    joined = functools.reduce(_joined, [_results(branch, operands) for branch in branches])
    return _tainted(joined) if index.taint.any() else joined


def _scan(node: Node, sources: Sequence[Any]) -> Marks:
    body, carry, xs, length, save = (node.attrs[key] for key in ("body", "carry", "xs", "length", "save"))
    state, sequences, outer = tuple(sources[:carry]), sources[carry : carry + xs], sources[carry + xs :]
    rows: list[tuple[Mark, ...]] = []
    for t in reversed(range(length)) if node.attrs["reverse"] else range(length):
        results = _results(body, [*state, *(x.at(t) for x in sequences), *outer])
        rows.append((*results[carry:], *(state if save else ())))
        state = results[:carry]
    if not rows:
        return (*state, *anything(node, ())[carry:])
    ordered = rows[::-1] if node.attrs["reverse"] else rows
    return (*state, *(_stacked(ys) for ys in zip(*ordered, strict=True)))


def _stacked(marks: Sequence[Mark]) -> Mark:
    taint, certain, extra = (
        np.stack(flags) for flags in zip(*((m.taint, m.known, m.extra) for m in marks), strict=True)
    )
    return Mark(taint, certain, np.stack([mark.value for mark in marks]), extra)


def _fixpoint(step: Callable[[tuple[Marks, ...]], Sequence[Marks]], state: tuple[Marks, ...]) -> tuple[Marks, ...]:
    """What holds of a state after any number of steps."""
    while True:
        after = tuple(map(_joined, state, step(state)))
        if all(map(_alike, flat(state), flat(after))):
            return after
        state = after


def _alike(one: Mark, other: Mark) -> bool:
    return np.array_equal(one.taint, other.taint) and np.array_equal(one.known, other.known)


def _while(node: Node, sources: Sequence[Any]) -> Marks:
    carry = node.attrs["carry"]
    start, outer = tuple(_joined(s, s) for s in sources[:carry]), sources[carry:]
    state = _fixpoint(lambda s: _results(node.attrs["body"], [*s, *outer]), start)
    if _results(node.attrs["condition"], [*state, *outer])[0].taint.any():
        state = _tainted(state)
    return (*state, state) if node.attrs["save"] else state


def _while_gradient(node: Node, sources: Sequence[Any]) -> Marks:
    history, carry = sources[0], node.attrs["carry"]
    start, outer = tuple(_joined(s, s) for s in sources[1 : 1 + carry]), sources[1 + carry :]
    state = _fixpoint(lambda s: _results(node.attrs["step"], [*s, *history, *outer]), start)
    return _tainted(state) if all(m.taint.all() for m in flat(history)) else state


_RULES: dict[Op, Rule] = {
    **elementwise.RULES,
    **structure.RULES,
    control.part: lambda node, sources: sources[0][node.attrs["number"]],
    control.switch_op: _switch,
    control.scan_op: _scan,
    control.while_op: _while,
    control.while_gradient_op: _while_gradient,
}
_FAMILIES: dict[str, Rule] = {
    "elementwise": elementwise.by_element,
    "movement": structure.moved,
    "reduction": structure.reduced,
}
