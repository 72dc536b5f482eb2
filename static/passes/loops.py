"""Loops: what no step changes is computed once before them, and what nobody reads is not carried along.

hoist_invariants   a node of a body that depends only on values of the enclosing graph moves there
prune_loops        what nobody reads of a scan goes: outputs y, states that feed nothing but themselves, and the
                   sequences and captured values that only these read

Bits stay: the same kernels run on the same numbers, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphs.ir import CONSTANT, INPUT, Graph, Node, ancestors
from graphs.ops import elementwise
from graphs.ops.control import scan_op, while_gradient_op, while_op
from static.passes.rewrite import count_uses
from static.passes.scans import Scan, scans_of
from static.rebuild import rebuilt, replaced

# Beside views, what may run before a loop that then makes no step: of ints these can neither fail nor warn.
_OF_INTS = frozenset([elementwise.add, elementwise.subtract, elementwise.multiply, elementwise.negative])


# Invariants -------------------------------------------------------------------------------------------------------


def hoist_invariants(graph: Graph) -> Graph:
    """The graph with what is the same in every step of a loop computed before the loop."""
    instead = {node: _hoisted(node) for node in graph.nodes if node.op in (scan_op, while_op, while_gradient_op)}
    return replaced(graph, {node: new for node, new in instead.items() if new is not node})


def _hoisted(node: Node) -> Node:
    attrs = node.attrs
    if node.op is scan_op:
        makes_a_step = isinstance(attrs["length"], int) and attrs["length"] > 0
        return _out_of_bodies(node, {"body": makes_a_step}, len(node.inputs) - attrs["carry"] - attrs["xs"])
    if node.op is while_op:
        return _out_of_bodies(node, {"condition": True, "body": False}, len(node.inputs) - attrs["carry"])
    return _out_of_bodies(node, {"step": False}, len(node.inputs) - 1 - attrs["carry"])


def _out_of_bodies(node: Node, runs: Mapping[str, bool], captured: int) -> Node:
    """The loop, given more values than its last `captured` inputs: what these determine in its bodies.

    `runs` tells of each body whether it runs at least once; what may fail or warn leaves such a one alone.
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
            values.setdefault(invariant, rebuilt(invariant, values))
        wanted = _frontier(body, set(invariants))
        moved[name] = {invariant: len(added) + i for i, invariant in enumerate(wanted)}
        added += [values[invariant] for invariant in wanted]
    if not added:
        return node
    bodies = {name: _with_inputs(body, added, moved[name]) for name, body in graphs.items()}
    return Node.of(node.op, [*node.inputs, *added], {**node.attrs, **bodies}, node.source)


def _invariants(graph: Graph, outer: Iterable[Node], always: bool) -> list[Node]:
    """The nodes that depend on these inputs and constants alone, in order."""
    invariants = dict.fromkeys(outer)
    for node in graph.nodes:
        is_invariant = node.op is CONSTANT or (
            bool(node.inputs) and all(source in invariants for source in node.inputs)
        )
        if is_invariant and not node.op.may_have_effect and (always or _cannot_fail(node)):
            invariants[node] = None
    return list(invariants)


def _cannot_fail(node: Node) -> bool:
    return node.op.family == "source" or node.op.view or (node.op in _OF_INTS and not node.spec.is_float)


def _frontier(graph: Graph, invariants: set[Node]) -> list[Node]:
    """The invariants that the rest of a body reads, apart from what is given or constant already."""
    read = {source for node in graph.nodes if node not in invariants for source in node.inputs} | set(graph.outputs)
    return [node for node in graph.nodes if node in invariants and node in read and node.op not in (INPUT, CONSTANT)]


def _with_inputs(body: Graph, added: Sequence[Node], moved: dict[Node, int]) -> Graph:
    """A body with an input for each added value, some of which take the place of its own nodes."""
    first = len(body.inputs)
    new = [Node.of(INPUT, (), {"name": f"hoisted{first + i}", "spec": a.spec}) for i, a in enumerate(added)]
    inputs = [*body.inputs, *new]
    whole = Graph(body.name, inputs, [*inputs, *(n for n in body.nodes if n.op is not INPUT)], body.outputs)
    return replaced(whole, {node: new[i] for node, i in moved.items()})


# Pruning ----------------------------------------------------------------------------------------------------------


def prune_loops(graph: Graph) -> Graph:
    """The graph with scans that compute only what is read."""
    uses = count_uses(graph)
    instead: dict[Node, Node] = {}
    for scan in scans_of(graph):
        scan.parts = [part for part in scan.parts if uses[part]]
        if scan.parts and _prune(scan):
            instead |= scan.parts_of(scan.build(), {})
    return replaced(graph, instead)


def _prune(scan: Scan) -> bool:
    """Take out of a scan what its parts do not need; whether that is anything."""
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
    """The inputs of a graph that nodes of it depend on."""
    return {node for node in ancestors(nodes) if node.op is INPUT}
