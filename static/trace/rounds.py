"""In which rounds of a loop each float of the state has a cotangent: a value that a round does not read has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphs.ir import Graph, Node, ancestors
from static.trace.differentiate import Cotangent, OpCall, graphs_in, joint_rules


class Marks:
    """The floats of a loop's state that have a cotangent before and after every round, and marks for the other floats.

    A mark is a bool that goes from round to round beside the cotangents. There are no marks where a zero cotangent
    stays a zero throughout.
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
        """Whether each float of the state has a mark."""
        return [not is_certain and not self._keeps_zeros for is_certain in self.is_certain]

    @property
    def ends(self) -> list[Any]:
        """The bools, for floats with a mark, whether the state after the loop has a cotangent."""
        return self.values_with_mark(self._ends)

    @property
    def saved(self) -> list[Any]:
        """The bools, for floats with a mark, whether the saved states have a cotangent."""
        return self.values_with_mark(self._saved)

    def values_with_mark(self, values: Iterable[Any]) -> list[Any]:
        """Return the values whose float has a mark; `values` has one for each float of the state, and may have more."""
        return [value for value, is_marked in zip(values, self.is_marked, strict=False) if is_marked]

    def reads(self, inputs: Iterable[Node], wanted: Iterable[bool]) -> list[bool]:
        """Whether every round reads each wanted input of the body, where there are no marks to tell."""
        return [all(node in read for read in self._read) for node, want in zip(inputs, wanted, strict=True) if want]

    def hold(self, before: Sequence[Cotangent]) -> bool:
        """Whether a round gives a cotangent to each float without a mark; if not, mark those for the next try."""
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
    """Return for each round, the last first, the outputs that have cotangents and the nodes that they depend on.

    The list ends where the rounds repeat. It is empty where a zero cotangent may become something else in some round.
    """
    unsafe = [node for node in ancestors(o for o in body.outputs if o.spec.is_float) if _may_poison(node)]
    if any(map(graphs_in, unsafe)):
        return []  # only the run knows which part of it is read
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
    """Whether a gradient rule of a node, or of a graph that it holds, may turn a zero cotangent into NaN."""
    inside = graphs_in(node)
    if inside:
        return any(_may_poison(part) for graph in inside for part in graph.nodes)
    return (node.op.differentiable or node.op in joint_rules) and not node.op.zero_safe


def there_at(call: OpCall, numbers: Iterable[int], floats: Iterable[bool]) -> list[Any]:
    """Return a bool for each of these parts, whether it has a cotangent; None for a part that is no float."""
    told = []
    for number, is_float in zip(numbers, floats, strict=False):
        reach = call.parts.get(number)
        there = np.asarray(number in call.cotangents) if reach is None else reach.flag()
        told.append(there if is_float else None)
    return told
