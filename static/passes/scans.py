"""A scan taken apart: its states, sequences, captured values and outputs as lists, to be put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphs.ir import INPUT, Graph, Node
from graphs.ops.control import part, scan_op, stacked
from graphs.spec import TensorSpec
from static.rebuild import collected


@dataclass
class State:
    """A state: its value before the loop, in a step, and after the step."""

    start: Node
    inside: Node
    after: Node


@dataclass
class Given:
    """A value that goes into each step, whole or its entry of the step, and what stands for it there."""

    value: Node
    inside: Node


@dataclass
class Scan:
    """A scan that passes change; `parts` are the nodes that pick what it computes.

    `old_states` are the states it had before, and `y_numbers` what the number of each y was: parts are numbered so.
    """

    node: Node
    body: Graph
    states: list[State]
    xs: list[Given]
    outer: list[Given]
    ys: list[Node]
    save: bool
    parts: list[Node]
    old_states: list[State]
    y_numbers: list[int]

    def part_of(self, number: int) -> tuple[str, int]:
        """What a part of the old scan is: ("state" | "y" | "saved", its number)."""
        carry = len(self.old_states)
        ys = len(self.node.attrs["body"].outputs) - carry
        if number < carry:
            return "state", number
        return ("y", number - carry) if number < carry + ys else ("saved", number - carry - ys)

    def add_sequence(self, value: Node) -> Node:
        """Give each step its entry of an array; what stands for it in the body."""
        spec = TensorSpec(value.spec.shape[1:], value.spec.dtype)
        inside = Node.of(INPUT, (), {"name": f"each{len(self.xs)}", "spec": spec})
        self.xs.append(Given(value, inside))
        return inside

    def collect(self) -> Graph:
        """The body that the lists describe now."""
        inputs = [*(s.inside for s in self.states), *(x.inside for x in self.xs), *(o.inside for o in self.outer)]
        outputs = [*(s.after for s in self.states), *self.ys]
        return collected(self.body.name, inputs, outputs, self.body.nodes)

    def change(self, body: Graph) -> None:
        """Let the steps do what another body does, of the same inputs and as many outputs."""
        self.body = body
        for state, after in zip(self.states, body.outputs, strict=False):
            state.after = after
        self.ys = list(body.outputs[len(self.states) :])

    def build(self) -> Node:
        """The scan with what the lists hold now."""
        body = self.collect()
        carry, length = len(self.states), self.node.attrs["length"]
        attrs = {"body": body, "carry": carry, "xs": len(self.xs), "save": self.save}
        attrs["rows"] = stacked(body, carry, length, self.save)
        sources = [*(s.start for s in self.states), *(x.value for x in self.xs), *(o.value for o in self.outer)]
        return Node.of(scan_op, sources, {**self.node.attrs, **attrs}, self.node.source)

    def parts_of(self, made: Node, instead: dict[Node, Node]) -> dict[Node, Node]:
        """What stands for each part of the old scan: the same part of the new one, unless `instead` says otherwise."""
        replacement = dict(instead)
        for old in self.parts:
            if old not in replacement:
                replacement[old] = pick(made, self._number(old.attrs["number"]), old.source)
        return replacement

    def _number(self, number: int) -> int:
        kind, i = self.part_of(number)
        if kind == "y":
            return len(self.states) + self.y_numbers.index(i)
        place = _index(self.states, self.old_states[i])
        return place if kind == "state" else len(self.states) + len(self.ys) + place


def _index(items: Sequence[object], wanted: object) -> int:
    return next(i for i, item in enumerate(items) if item is wanted)


def pick(scan: Node, number: int, source: str) -> Node:
    """One of the tensors that a scan computes."""
    return Node.of(part, [scan], {"number": number}, source)


def scans_of(graph: Graph) -> list[Scan]:
    """The scans of a graph without effects in them whose results are only picked."""
    parts: dict[Node, list[Node]] = {n: [] for n in graph.nodes if n.op is scan_op and not n.has_effect}
    for node in graph.nodes if parts else ():
        for source in node.inputs:
            if source in parts and node.op is part:
                parts[source].append(node)
            elif source in parts:
                del parts[source]
    outputs = set(graph.outputs) if parts else ()
    return [_taken_apart(node, picked) for node, picked in parts.items() if node not in outputs]


def _taken_apart(node: Node, parts: list[Node]) -> Scan:
    body, carry, xs = node.attrs["body"], node.attrs["carry"], node.attrs["xs"]
    entering = [Given(value, inside) for value, inside in zip(node.inputs, body.inputs, strict=True)]
    states = [State(g.value, g.inside, after) for g, after in zip(entering[:carry], body.outputs, strict=False)]
    ys = list(body.outputs[carry:])
    sequences, outer = entering[carry : carry + xs], entering[carry + xs :]
    return Scan(node, body, states, sequences, outer, ys, node.attrs["save"], parts, list(states), list(range(len(ys))))
