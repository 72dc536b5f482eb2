"""Loops: values that no step changes are computed once, before the loop, and values that nobody reads are dropped.

    hoist_invariants   a node of a body that depends only on values of the enclosing graph moves there
    prune_loops        a scan loses what nobody reads: outputs y, states that feed nothing but themselves, and the
                       sequences and captured values that only these read

Bits stay: the same kernels run on the same numbers, once.

`Scan`, at the end, is a scan taken apart into lists (states, sequences, captured values, outputs), and built again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphs.ir import INPUT, Graph, Node, ancestors
from graphs.op import RuleTable
from graphs.ops.control import part, scan_op, stacked_specs
from graphs.spec import TensorSpec
from static.passes.rewrite import count_uses
from static.rebuild import collect_graph, rebuild_node, replace_nodes

# Invariants -------------------------------------------------------------------------------------------------------


def hoist_invariants(graph: Graph) -> Graph:
    """Return the graph in which values that are the same in every step of a loop are computed before it."""
    instead = {node: _HOISTS[node.op](node) for node in graph.nodes if node.op in _HOISTS}
    return replace_nodes(graph, {node: new for node, new in instead.items() if new is not node})


_HOISTS: RuleTable[Callable[[Node], Node]] = RuleTable("hoisting", otherwise=lambda node: node)


@_HOISTS.for_op("scan")
def _of_scan(node: Node) -> Node:
    attrs = node.attrs
    makes_a_step = isinstance(attrs["length"], int) and attrs["length"] > 0
    return _out_of_bodies(node, {"body": makes_a_step}, len(node.inputs) - attrs["carry"] - attrs["xs"])


@_HOISTS.for_op("while_loop")
def _of_while(node: Node) -> Node:
    return _out_of_bodies(node, {"condition": True, "body": False}, len(node.inputs) - node.attrs["carry"])


@_HOISTS.for_op("while_loop_gradient")
def _of_while_gradient(node: Node) -> Node:
    return _out_of_bodies(node, {"step": False}, len(node.inputs) - 1 - node.attrs["carry"])


def _out_of_bodies(node: Node, runs: Mapping[str, bool], captured: int) -> Node:
    """Return the loop with the invariants of its bodies as more captured inputs.

    The last `captured` inputs decide which nodes are invariant. `runs` tells of each body whether it runs at least
    once. A body that may not run keeps the nodes that can fail or warn.
    """
    graphs: dict[str, Graph] = {name: node.attrs[name] for name in runs}
    outer = node.inputs[len(node.inputs) - captured :]
    added: list[Node] = []
    moved: dict[str, dict[Node, int]] = {}  # of each body, what leaves it, and as which of the added values it returns
    for name, body in graphs.items():
        inner = body.inputs[len(body.inputs) - captured :]
        invariants = _invariants(body, inner, runs[name])
        values = dict(zip(inner, outer, strict=True))
        for invariant in invariants:
            values.setdefault(invariant, rebuild_node(invariant, values))
        wanted = _frontier(body, set(invariants))
        moved[name] = {invariant: len(added) + i for i, invariant in enumerate(wanted)}
        added += [values[invariant] for invariant in wanted]
    if not added:
        return node
    bodies = {name: _with_inputs(body, added, moved[name]) for name, body in graphs.items()}
    return Node.of(node.op, [*node.inputs, *added], {**node.attrs, **bodies}, node.source)


def _invariants(graph: Graph, outer: Iterable[Node], always: bool) -> list[Node]:
    """Return the nodes that depend only on these inputs and on constants, in order."""
    invariants = dict.fromkeys(outer)
    for node in graph.nodes:
        is_invariant = node.is_constant or (bool(node.inputs) and all(source in invariants for source in node.inputs))
        if is_invariant and not node.op.may_have_effect and (always or _cannot_fail(node)):
            invariants[node] = None
    return list(invariants)


def _cannot_fail(node: Node) -> bool:
    return node.op.fails == "never" or (node.op.fails == "of floats" and not node.spec.is_float)


def _frontier(graph: Graph, invariants: set[Node]) -> list[Node]:
    """Return the invariants that the rest of a body reads, without inputs and constants."""
    read = {source for node in graph.nodes if node not in invariants for source in node.inputs} | set(graph.outputs)
    return [node for node in graph.nodes if node in invariants and node in read and not node.is_source]


def _with_inputs(body: Graph, added: Sequence[Node], moved: dict[Node, int]) -> Graph:
    """Return a body with one more input for each added value; some of these replace nodes of the body."""
    first = len(body.inputs)
    new = [Node.of(INPUT, (), {"name": f"hoisted{first + i}", "spec": a.spec}) for i, a in enumerate(added)]
    inputs = [*body.inputs, *new]
    whole = Graph(body.name, inputs, [*inputs, *(n for n in body.nodes if not n.is_input)], body.outputs)
    return replace_nodes(whole, {node: new[i] for node, i in moved.items()})


# Pruning ----------------------------------------------------------------------------------------------------------


def prune_loops(graph: Graph) -> Graph:
    """Return the graph with scans that compute only values that are read."""
    instead: dict[Node, Node] = {}
    scans = scans_of(graph)
    if not scans:
        return graph
    uses = count_uses(graph)
    for scan in scans:
        scan.parts = [part for part in scan.parts if uses[part]]
        if scan.parts and _prune(scan):
            instead |= scan.parts_of(scan.build(), {})
    return replace_nodes(graph, instead)


def _prune(scan: Scan) -> bool:
    """Remove from a scan what its remaining parts do not need; return whether anything was removed."""
    read = [scan.part_of(part.attrs["number"]) for part in scan.parts]
    before = len(scan.states), len(scan.xs), len(scan.outer), len(scan.ys), scan.save
    scan.y_numbers = [i for i in scan.y_numbers if ("y", i) in read]
    scan.ys = [scan.ys[i] for i in scan.y_numbers]
    scan.save = scan.save and any(kind == "saved" for kind, _ in read)
    kept = [state for i, state in enumerate(scan.old_states) if ("state", i) in read or ("saved", i) in read]
    needed = inputs_of(scan.ys)
    while True:
        needed |= inputs_of([state.after for state in kept])
        more = [state for state in scan.old_states if state.inside in needed and state not in kept]
        if not more:
            break
        kept += more
    scan.states = [state for state in scan.old_states if state in kept]
    scan.xs = [x for x in scan.xs if x.inside in needed]
    scan.outer = [value for value in scan.outer if value.inside in needed]
    return before != (len(scan.states), len(scan.xs), len(scan.outer), len(scan.ys), scan.save)


def inputs_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the inputs of a graph that these nodes depend on."""
    return {node for node in ancestors(nodes) if node.is_input}


@dataclass
class State:
    """A state: its value before the loop, in a step, and after the step."""

    start: Node
    inside: Node
    after: Node


@dataclass
class StepInput:
    """A value that goes into each step (whole, or its entry for the step), and the body's input for it."""

    value: Node
    inside: Node


@dataclass
class Scan:
    """A scan taken apart into lists that passes change; `parts` are the nodes that pick its results.

    `old_states` are the states of the original scan, and `y_numbers` the original number of each y: parts are numbered
    by the original scan.
    """

    node: Node
    body: Graph
    states: list[State]
    xs: list[StepInput]
    outer: list[StepInput]
    ys: list[Node]
    save: bool
    parts: list[Node]
    old_states: list[State]
    y_numbers: list[int]

    def part_of(self, number: int) -> tuple[str, int]:
        """Return the kind and number of a part of the original scan: ("state" or "y" or "saved", number)."""
        carry = len(self.old_states)
        ys = len(self.node.attrs["body"].outputs) - carry
        if number < carry:
            return "state", number
        return ("y", number - carry) if number < carry + ys else ("saved", number - carry - ys)

    def add_sequence(self, value: Node) -> Node:
        """Give each step its entry of an array; return the body's input for it."""
        spec = TensorSpec(value.spec.shape[1:], value.spec.dtype)
        inside = Node.of(INPUT, (), {"name": f"each{len(self.xs)}", "spec": spec})
        self.xs.append(StepInput(value, inside))
        return inside

    def collect(self) -> Graph:
        """Return the body that the lists describe now."""
        inputs = [*(s.inside for s in self.states), *(x.inside for x in self.xs), *(o.inside for o in self.outer)]
        outputs = [*(s.after for s in self.states), *self.ys]
        return collect_graph(self.body.name, inputs, outputs, self.body.nodes)

    def change(self, body: Graph) -> None:
        """Replace the body by another one with the same inputs and as many outputs."""
        self.body = body
        for state, after in zip(self.states, body.outputs, strict=False):
            state.after = after
        self.ys = list(body.outputs[len(self.states) :])

    def build(self) -> Node:
        """Return the scan that the lists describe now."""
        body = self.collect()
        carry, length = len(self.states), self.node.attrs["length"]
        attrs = {"body": body, "carry": carry, "xs": len(self.xs), "save": self.save}
        attrs["rows"] = stacked_specs(body, carry, length, self.save)
        sources = [*(s.start for s in self.states), *(x.value for x in self.xs), *(o.value for o in self.outer)]
        return Node.of(scan_op, sources, {**self.node.attrs, **attrs}, self.node.source)

    def parts_of(self, made: Node, instead: dict[Node, Node]) -> dict[Node, Node]:
        """Map each part of the original scan to the same part of the new one, or to its entry in `instead`."""
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
    """Return one of the tensors that a scan computes."""
    return Node.of(part, [scan], {"number": number}, source)


def is_scan(node: Node) -> bool:
    """Whether a node is a scan: a loop of a given number of steps."""
    return node.op is scan_op


def scans_of(graph: Graph) -> list[Scan]:
    """Return the scans of a graph that have no effects and whose results are read through parts alone."""
    parts: dict[Node, list[Node]] = {n: [] for n in graph.nodes if is_scan(n) and not n.has_effect}
    for node in graph.nodes if parts else ():
        for source in node.inputs:
            if source in parts and node.is_part:
                parts[source].append(node)
            elif source in parts:
                del parts[source]
    outputs = set(graph.outputs) if parts else ()
    return [_open_scan(node, picked) for node, picked in parts.items() if node not in outputs]


def _open_scan(node: Node, parts: list[Node]) -> Scan:
    body, carry, xs = node.attrs["body"], node.attrs["carry"], node.attrs["xs"]
    entering = [StepInput(value, inside) for value, inside in zip(node.inputs, body.inputs, strict=True)]
    states = [State(g.value, g.inside, after) for g, after in zip(entering[:carry], body.outputs, strict=False)]
    ys = list(body.outputs[carry:])
    sequences, outer = entering[carry : carry + xs], entering[carry + xs :]
    return Scan(node, body, states, sequences, outer, ys, node.attrs["save"], parts, list(states), list(range(len(ys))))
