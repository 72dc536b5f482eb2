"""Gradients of control flow in a graph, written with the same control flow.

That of a switch is a switch over the branches' gradients, that of a scan is a scan the other way; so they nest, and
scans and switches are differentiable to any order. The inside of a branch or a step is computed again from what went
into it, but for the state after a step of a scan: that is the state before the next one, which was saved. A
while_loop keeps the state of each iteration in storage that grows, and its gradient goes through that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache as cached
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from graphs.builder import Builder
from graphs.errors import NotDifferentiableError, located
from graphs.ir import Graph, Node
from graphs.ops.control import scan_op, switch_op, while_gradient_op, while_op
from graphs.ops.creation import zeros, zeros_like
from graphs.ops.elementwise import add, logical_not, logical_or
from graphs.ops.movement import concat, expand_dims, identity
from graphs.ops.reductions import any as any_op
from graphs.spec import TensorSpec
from static.rebuild import replaced
from static.trace.choice import choice, chosen_by
from static.trace.control import Subgraph, Tracer, appended, building, emit, finished, nodes_of, part_of
from static.trace.differentiate import Cotangent, OpCall, joint_rules, recording
from static.trace.lowering import is_choice
from static.trace.reach import Partial, Reach
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
) -> list[Cotangent]:
    """What reaches the wanted inputs of a graph.

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
    return pullback(outputs, cotangents, known)


def filled(found: Sequence[Cotangent], values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """The cotangents of the wanted inputs of a graph, zeros where nothing reaches one."""
    variables = [value for value, want in zip(values, wanted, strict=True) if want]
    return [zeros_like(v) if one.value is None else one.value for v, one in zip(variables, found, strict=True)]


def _is_partial(one: Cotangent) -> bool:
    """Whether a cotangent is not there on every path."""
    return one.value is None or one.reach is not None


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
    """A switch over what the branches pull back, and over whether they read each operand at all."""
    if is_choice(call.attrs):
        return _choice_rule(call)
    index, *operands = call.inputs
    branches: tuple[Graph, ...] = call.attrs["branches"]
    parts = {i: _known(reach.known()) for i, reach in call.parts.items() if reach is not None}
    given = [Cotangent(g, parts.get(i)) for i, g in enumerate(_given(call, 0, len(branches[0].outputs)))]
    wanted = call.wanted[1:]
    traced, found = [], []
    for number, graph in enumerate(branches):
        one: list[Cotangent] = []
        pull = partial(pulled, graph, operands, given, wanted)
        traced.append(Subgraph(f"branch{number}", lambda _, pull=pull, one=one: one.extend(pull()), []))  # type: ignore[misc]
        found.append(one)
    is_partial = [any(map(_is_partial, ones)) for ones in zip(*found, strict=True)]
    for branch, one in zip(traced, found, strict=True):
        branch.give(lambda one=one: [*filled(one, operands, wanted), *_reaches(one, is_partial)])  # type: ignore[misc]
    graphs, captured = finished(*traced)
    results = emit(switch_op, [*nodes_of([index]), *captured], {"branches": tuple(graphs)}, len(traced[0].outputs))
    cotangents, reaches = _split(results, len(is_partial))
    known = _placed(reaches, is_partial)
    return [None, *_placed([Cotangent(g, _known(r)) for g, r in zip(cotangents, known, strict=True)], wanted)]


def _reaches(found: Sequence[Cotangent], is_partial: Sequence[bool]) -> list[Any]:
    """Whether each cotangent is there that is not there in all branches: bools, which may be known."""
    return [
        np.asarray(one.value is not None) if one.reach is None else one.reach.known()
        for one, asked in zip(found, is_partial, strict=True)
        if asked
    ]


def _known(reach: Any) -> Reach:
    return None if reach is None else Partial(lambda: reach)


def _choice_rule(call: OpCall) -> list[Any]:
    """The cotangent goes to what was chosen."""
    index, *_ = call.inputs
    g, test = call.cotangents[0], chosen_by(index)
    ways = (choice(test, g, zeros_like(g)), test), (choice(test, zeros_like(g), g), logical_not(test))
    return [None, *(Cotangent(one, Partial(lambda way=way: way)) for one, way in ways)]  # type: ignore[misc]


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
    is_partial: list[bool] = []

    def step(state: Any, x: Any) -> Any:
        (of_after, of_outer), (before, after, slices, of_y, of_before) = state, x
        cotangents = [*_placed(of_after, of_state), *_placed(of_y, of_ys)]
        values, all_wanted = [*before, *slices, *outer], [*floats, *wanted_xs, *wanted_outer]
        partly = pulled(body, values, cotangents, all_wanted, after)
        is_partial[:] = map(_is_partial, partly)
        found = filled(partly, values, all_wanted)
        into, of_slices, more = _split(found, sum(floats), sum(wanted_xs))
        read = [g for g, is_float in zip(_placed(of_before, of_saved), floats, strict=True) if is_float]
        return (_added(into, read), _added(of_outer, more)), of_slices

    saved = [part_of(call.out, carry + ys + i) for i in range(carry)]
    sums = [zeros_like(value) for value, want in zip(outer, wanted_outer, strict=True) if want]
    start, steps = (_there(of_state), sums), (saved, _shifted(call, saved), xs, _there(of_ys), _there(of_saved))
    (of_start, of_outer), of_xs = Tracer().scan(step, start, steps, attrs["length"], not attrs["reverse"])
    reached = cached(lambda: _reached_by_scan(call, saved))
    results = zip([*of_start, *of_xs, *of_outer], is_partial, strict=True)
    told = [Cotangent(g, Partial(lambda i=i: reached()[i]) if p else None) for i, (g, p) in enumerate(results)]  # type: ignore[misc]
    return _placed(told, [*floats, *wanted_xs, *wanted_outer])


def _reached_by_scan(call: OpCall, saved: Sequence[Any]) -> list[Any]:
    """Whether some step reads each input that wants a cotangent: bools that go through the steps as cotangents do."""
    attrs, carry, body = call.attrs, call.attrs["carry"], call.attrs["body"]
    _, xs, outer = _split(call.inputs, carry, attrs["xs"])
    floats = [output.spec.is_float for output in body.outputs]
    wanted = [*floats[:carry], *call.wanted[carry:]]
    count, of_xs = sum(floats[:carry]), sum(call.wanted[carry : carry + attrs["xs"]])
    ends = _there_at(call, range(len(floats)), floats)
    of_saved = _there(_there_at(call, range(len(floats), len(floats) + carry), floats))  # read at second order

    def step(state: Any, x: Any) -> Any:
        (of_after, of_outer), (before, slices) = state, x
        seeds = _seeds(body, [*_placed(of_after, floats[:carry]), *ends[carry:]])
        found = _flags(pulled(body, [*before, *slices, *outer], seeds, wanted))
        into, read, more = _split(found, count, of_xs)
        return (_merged(into, of_saved), _merged(of_outer, more)), read

    start = [end for end, is_float in zip(ends[:carry], floats, strict=False) if is_float]
    never = [np.asarray(False)] * (sum(wanted) - count - of_xs)
    (into, more), read = Tracer().scan(step, (start, never), (saved, xs), attrs["length"], not attrs["reverse"])
    return [*into, *(any_op(one) for one in read), *more]


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
        all_wanted = [*floats, *wanted_outer]
        found = filled(pulled(body, before, _placed(of_after, of_state), all_wanted), before, all_wanted)
        into, more = _split(found, sum(floats))
        return [*into, *_added(of_outer, more)]

    traced = Subgraph("step", step, [node.spec for node in nodes_of([*start, *call.inputs])])
    found = _through(part_of(call.out, carry), traced, start, outer, reverse=True)
    reached = cached(lambda: _reached_by_while(call))  # there may be no round at all
    told = [Cotangent(g, Partial(lambda i=i: reached()[i])) for i, g in enumerate(found)]  # type: ignore[misc]
    return _placed(told, [*floats, *wanted_outer])


def _reached_by_while(call: OpCall) -> list[Any]:
    """Whether some round reads each input that wants a cotangent: bools that go through the saved states."""
    carry, body = call.attrs["carry"], call.attrs["body"]
    floats = [output.spec.is_float for output in body.outputs]
    wanted, count = [*floats, *call.wanted[carry:]], sum(floats)
    start = [*_there(_there_at(call, range(len(floats)), floats)), *[np.asarray(False)] * (sum(wanted) - count)]

    def step(values: list[Any]) -> list[Any]:
        of_after, of_outer, before = _split(values, count, sum(wanted) - count)
        found = _flags(pulled(body, before, _seeds(body, _placed(of_after, floats)), wanted))
        return [*found[:count], *_merged(of_outer, found[count:])]

    traced = Subgraph("reached", step, [node.spec for node in nodes_of([*start, *call.inputs])])
    return _through(part_of(call.out, carry), traced, start, call.inputs[carry:], reverse=True)


def _there_at(call: OpCall, numbers: Iterable[int], floats: Iterable[bool]) -> list[Any]:
    """Whether each of these parts has a cotangent: a bool, None for what is no float."""
    told = []
    for number, is_float in zip(numbers, floats, strict=False):
        reach = call.parts.get(number)
        there = np.asarray(number in call.cotangents) if reach is None else reach.known()
        told.append(there if is_float else None)
    return told


def _seeds(body: Graph, reached: Sequence[Any]) -> list[Any]:
    """Cotangents of the outputs of a round of which only matters whether they are there."""
    outputs = zip(body.outputs, reached, strict=True)
    return [None if end is None else Cotangent(zeros(o.spec.shape, o.spec.dtype), _known(end)) for o, end in outputs]


def _flags(found: Sequence[Cotangent]) -> list[Any]:
    return [np.asarray(False) if one.reach is None else one.reach.known() for one in found]


def _merged(held: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    return [logical_or(one, other) for one, other in zip(held, more, strict=True)]


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
        inputs, wanted = [*anywhere, *held], [i < count for i in range(len(graph.inputs))]
        return filled(pulled(graph, inputs, given, wanted), inputs, wanted)

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
