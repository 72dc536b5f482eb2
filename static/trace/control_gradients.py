"""Gradients of control flow in a graph, written with the same control flow.

That of a switch is a switch over the branches' gradients, that of a scan is a scan the other way; so they nest, and
scans and switches are differentiable to any order. The inside of a branch or a step is computed again from what went
into it, but for the state after a step of a scan: that is the state before the next one, which was saved. A
while_loop keeps the state of each iteration in storage that grows, and its gradient goes through that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from graphs.builder import Builder
from graphs.errors import NotDifferentiableError, located
from graphs.ir import Graph, Node
from graphs.ops.control import scan_op, switch_op, while_gradient_op, while_op
from graphs.ops.creation import zeros, zeros_like
from graphs.ops.elementwise import add
from graphs.ops.movement import concat, expand_dims, identity
from graphs.spec import TensorSpec
from static.rebuild import replaced
from static.trace.control import Subgraph, Tracer, appended, building, emit, finished, nodes_of, part_of
from static.trace.differentiate import OpCall, joint_rules, recording
from static.trace.symbol import Symbol


def inline(graph: Graph, values: Sequence[Any]) -> list[Symbol]:
    """Append the nodes of a graph, without effects, to the one being traced, on these inputs; returns its outputs."""
    return appended(silenced(graph), values)


def silenced(graph: Graph) -> Graph:
    """The graph without its effects: what a gradient computes again is not shown a second time."""
    if not graph.effects:
        return graph
    instead = {node: _silenced(node) for node in graph.effects if not node.op.effect}
    nodes = [node for node in graph.nodes if not node.op.effect]
    return replaced(Graph(graph.name, graph.inputs, nodes, graph.outputs), instead)


def _silenced(node: Node) -> Node:
    attrs = {key: _without_effects(value) for key, value in node.attrs.items()}
    return Node.of(node.op, node.inputs, attrs, node.source)


def _without_effects(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_without_effects(part) for part in value])
    return silenced(value) if isinstance(value, Graph) else value


def pulled(
    graph: Graph,
    values: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[bool],
    results: Sequence[Any] = (),
) -> list[Any]:
    """The cotangents of the wanted inputs of a graph, zeros where nothing reaches one.

    `cotangents` has one, or None, for each output; `results` are the values of the first outputs, where they are known.
    """
    builder = building()
    marked = [_marked(builder, value) for value in values]
    variables = [value for value, want in zip(marked, wanted, strict=True) if want]
    with recording(builder, variables) as pullback:
        outputs = inline(graph, marked)
    given = {value.node for value in marked}
    pairs = zip(outputs, nodes_of(results), strict=False)
    known = {output.node: node for output, node in pairs if output.node not in given}
    found = pullback(outputs, cotangents, known)
    return [zeros_like(v) if g is None else g for v, g in zip(variables, found, strict=True)]


def _marked(builder: Builder, value: Any) -> Symbol:
    return Symbol(builder, builder.append(identity, nodes_of([value]), {}))


def _given(call: OpCall, first: int, count: int) -> list[Any]:
    """The cotangents of some parts, None where there is none."""
    return [call.cotangents.get(i) for i in range(first, first + count)]


def _zeros_for(specs: Sequence[TensorSpec], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents with zeros for those that are missing; None where a part is not floating point."""
    filled = [zeros(s.shape, s.dtype) if g is None else g for s, g in zip(specs, cotangents, strict=True)]
    return [g if s.is_float else None for s, g in zip(specs, filled, strict=True)]


def _there(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _placed(values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """Values in the places that are not None or False, None in the others."""
    rest = iter(values)
    return [None if place is None or place is False else next(rest) for place in places]


def _split(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """Consecutive groups of these sizes, and the rest."""
    rest = iter(values)
    return [*(list(islice(rest, count)) for count in counts), list(rest)]


def _added(held: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Sums one by one; where there is nothing more (None), what was held."""
    return [a if b is None else add(a, b) for a, b in zip(held, more, strict=True)]


def _switch_rule(call: OpCall) -> list[Any]:
    index, *operands = call.inputs
    branches: tuple[Graph, ...] = call.attrs["branches"]
    given = _given(call, 0, len(branches[0].outputs))
    wanted = call.wanted[1:]
    backward = [
        lambda values, cotangents, graph=graph: pulled(graph, values, _placed(cotangents, given), wanted)
        for graph in branches
    ]
    return [None, *_placed(Tracer().switch(index, backward, (operands, _there(given))), wanted)]


def _scan_rule(call: OpCall) -> list[Any]:
    """A scan the other way, whose state are the cotangents of the state, and the sums of those of outer values."""
    attrs, carry, body = call.attrs, call.attrs["carry"], call.attrs["body"]
    _, xs, outer = _split(call.inputs, carry, attrs["xs"])
    _, wanted_xs, wanted_outer = _split(call.wanted, carry, attrs["xs"])
    specs, ys = [output.spec for output in body.outputs], len(body.outputs) - carry
    floats = [spec.is_float for spec in specs[:carry]]
    of_state = _zeros_for(specs[:carry], _given(call, 0, carry))
    of_ys = _given(call, carry, ys)
    # What was saved for a gradient is itself read by that gradient, and so has a cotangent at second order.
    of_saved = _given(call, carry + ys, carry)

    def step(state: Any, x: Any) -> Any:
        (of_after, of_outer), (before, after, slices, of_y, of_before) = state, x
        cotangents = [*_placed(of_after, of_state), *_placed(of_y, of_ys)]
        found = pulled(body, [*before, *slices, *outer], cotangents, [*floats, *wanted_xs, *wanted_outer], after)
        into, of_slices, more = _split(found, sum(floats), sum(wanted_xs))
        read = [g for g, is_float in zip(_placed(of_before, of_saved), floats, strict=True) if is_float]
        return (_added(into, read), _added(of_outer, more)), of_slices

    saved = [part_of(call.out, carry + ys + i) for i in range(carry)]
    sums = [zeros_like(value) for value, want in zip(outer, wanted_outer, strict=True) if want]
    start, steps = (_there(of_state), sums), (saved, _shifted(call, saved), xs, _there(of_ys), _there(of_saved))
    (of_start, of_outer), of_xs = Tracer().scan(step, start, steps, attrs["length"], not attrs["reverse"])
    return [*_placed(of_start, floats), *_placed(of_xs, wanted_xs), *_placed(of_outer, wanted_outer)]


def _shifted(call: OpCall, saved: Sequence[Any]) -> list[Any]:
    """The states after each step of a scan: those before the next, and the last; none where their number is open."""
    if building().general or not isinstance(call.attrs["length"], int) or not call.attrs["length"]:
        return []
    last = [expand_dims(part_of(call.out, i), axis=0) for i in range(len(saved))]
    if call.attrs["reverse"]:
        return [concat([end, states[:-1]]) for end, states in zip(last, saved, strict=True)]
    return [concat([states[1:], end]) for end, states in zip(last, saved, strict=True)]


def _while_rule(call: OpCall) -> list[Any]:
    """Cotangents go through the saved states, the last first, and the sums of those of outer values with them."""
    carry, body = call.attrs["carry"], call.attrs["body"]
    specs = [output.spec for output in body.outputs]
    floats, wanted_outer = [spec.is_float for spec in specs], call.wanted[carry:]
    of_state = _zeros_for(specs, _given(call, 0, carry))
    outer = call.inputs[carry:]
    start = [*_there(of_state), *(zeros_like(v) for v, want in zip(outer, wanted_outer, strict=True) if want)]

    def step(values: list[Any]) -> list[Any]:
        of_after, of_outer, before = _split(values, sum(floats), sum(wanted_outer))
        found = pulled(body, before, _placed(of_after, of_state), [*floats, *wanted_outer])
        into, more = _split(found, sum(floats))
        return [*into, *_added(of_outer, more)]

    traced = Subgraph("step", step, [node.spec for node in nodes_of([*start, *call.inputs])])
    found = _through(part_of(call.out, carry), traced, start, outer, reverse=True)
    return [*_placed(found[: sum(floats)], floats), *_placed(found[sum(floats) :], wanted_outer)]


def _while_gradient_rule(call: OpCall) -> list[Any]:
    """The gradient is linear in the cotangents it carries, and its transpose goes through the states the other way."""
    count, graph = call.attrs["carry"], call.attrs["step"]
    if any(want for i, want in enumerate(call.wanted) if not 1 <= i <= count):
        rule = "while_loop: its gradient has no gradient in a graph"
        message = f"{rule}; use scan, or give the loop a limit, or run it in the dynamic engine"
        raise NotDifferentiableError(located(message, building().line))
    history, *values = call.inputs
    cotangents, outer = values[:count], values[count:]
    start = _zeros_for([output.spec for output in graph.outputs], _given(call, 0, count))

    def step(values: list[Any]) -> list[Any]:
        given, held = values[:count], values[count:]
        anywhere = [zeros_like(cotangent) for cotangent in cotangents]
        return pulled(graph, [*anywhere, *held], given, [i < count for i in range(len(graph.inputs))])

    traced = Subgraph("step", step, [node.spec for node in graph.inputs])
    found = _through(history, traced, start, outer, reverse=not call.attrs["reverse"])
    return [None, *found, *(None for _ in outer)]


def _through(history: Symbol, step: Subgraph, start: Sequence[Any], outer: Sequence[Any], reverse: bool) -> list[Any]:
    """A node that carries cotangents through the states a loop has saved; `step` captures nothing."""
    (graph,), _ = finished(step)
    attrs = {"step": graph, "carry": len(start), "reverse": reverse}
    return emit(while_gradient_op, nodes_of([history, *start, *outer]), attrs, len(start))


joint_rules.update(
    {switch_op: _switch_rule, scan_op: _scan_rule, while_op: _while_rule, while_gradient_op: _while_gradient_rule}
)
