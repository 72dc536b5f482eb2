"""Marks: where the state of a loop has cotangents, from round to round, for what a round leaves unread has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphs.ir import Graph, Node, ancestors
from static.trace.differentiate import Cotangent, OpCall, joint_rules
from static.trace.reach import graphs_in


class Marks:
    """Which floats of a loop's state have a cotangent before and after every round, and marks for the others.

    A mark is a bool that goes from round to round beside the cotangents. There are none where a zero stays a zero.
    """

    def __init__(self, call: OpCall, carry: int) -> None:
        body: Graph = call.attrs["body"]
        floats = [output.spec.is_float for output in body.outputs]
        there = {i for i in range(len(floats)) if i in call.cotangents and call.parts.get(i) is None}
        rounds = _rounds(body, carry, there)
        self._keeps_zeros = bool(rounds)
        self._read = [read for _, read in rounds]
        always = set.intersection(*([there for there, _ in rounds] or [there]))
        self.is_certain = [i in always for i in range(carry) if floats[i]]
        saved = range(len(floats), len(floats) + carry)
        self._ends, self._saved = _bools(there_at(call, range(carry), floats)), _bools(there_at(call, saved, floats))

    @property
    def is_marked(self) -> list[bool]:
        """Whether each float has a mark."""
        return [not is_certain and not self._keeps_zeros for is_certain in self.is_certain]

    @property
    def ends(self) -> list[Any]:
        """The marks at the end of the loop."""
        return self.of_marked(self._ends)

    @property
    def saved(self) -> list[Any]:
        """Whether what was saved of each float with a mark has a cotangent."""
        return self.of_marked(self._saved)

    def of_marked(self, values: Iterable[Any]) -> list[Any]:
        """Of one value for each float, or for these and more, those of floats with a mark."""
        return [value for value, is_marked in zip(values, self.is_marked, strict=False) if is_marked]

    def reads(self, inputs: Iterable[Node], wanted: Iterable[bool]) -> list[bool]:
        """Whether each round reads these wanted inputs of the body, where there are no marks to tell."""
        return [all(node in read for read in self._read) for node, want in zip(inputs, wanted, strict=True) if want]

    def hold(self, before: Sequence[Cotangent]) -> bool:
        """Whether a round gives a cotangent to each float without a mark; if not, these get one, for another try."""
        if self._keeps_zeros:
            return True
        kept = [
            is_certain and cotangent.value is not None and cotangent.reach is None
            for is_certain, cotangent in zip(self.is_certain, before, strict=False)
        ]
        is_held, self.is_certain = kept == self.is_certain, kept
        return is_held


def _bools(flags: Iterable[Any]) -> list[Any]:
    return [flag for flag in flags if flag is not None]


def _rounds(body: Graph, carry: int, there: set[int]) -> list[tuple[set[int], set[Node]]]:
    """Which outputs have cotangents in each round and which nodes these read, the last first, until that repeats.

    [] where a zero may become something else in some round.
    """
    unsafe = [node for node in ancestors(o for o in body.outputs if o.spec.is_float) if _may_poison(node)]
    if any(map(graphs_in, unsafe)):
        return []  # which part of it is read, only the run knows
    ys = {i for i in there if i >= carry}
    rounds: list[tuple[set[int], set[Node]]] = []
    while there not in [earlier for earlier, _ in rounds]:
        read = ancestors(body.outputs[i] for i in there)
        if not read.issuperset(unsafe):
            return []
        rounds.append((there, read))
        there = ys | {i for i, node in enumerate(body.inputs[:carry]) if node.spec.is_float and node in read}
    return rounds


def _may_poison(node: Node) -> bool:
    """Whether a zero cotangent may become something else at a node, or in a graph that it holds."""
    inside = graphs_in(node)
    if inside:
        return any(_may_poison(part) for graph in inside for part in graph.nodes)
    return (node.op.differentiable or node.op in joint_rules) and not node.op.zero_safe


def there_at(call: OpCall, numbers: Iterable[int], floats: Iterable[bool]) -> list[Any]:
    """Whether each of these parts has a cotangent: a bool, None for what is no float."""
    told = []
    for number, is_float in zip(numbers, floats, strict=False):
        reach = call.parts.get(number)
        there = np.asarray(number in call.cotangents) if reach is None else reach.flag()
        told.append(there if is_float else None)
    return told
