"""Gradients of control flow in a graph, written with the same control flow.

The gradient of a switch is a switch over the gradients of its branches, and the gradient of a scan is a scan in the
other direction. So they nest, and scans and switches are differentiable to any order. The backward pass computes the
inside of a branch or a step again from its inputs. It does not compute the state after a step of a scan again, which is
the saved state before the next step. A while_loop keeps the state of each iteration in storage that grows, and its
gradient reads that storage.

`_switch_rule`, `_scan_rule` and `_while_rule` are the rules; `rounds` says where in a loop there is a cotangent at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache as cached
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from graphs.errors import NotDifferentiableError, locate
from graphs.ir import Graph, Node
from graphs.ops.control import ruled_op, scan_op, switch_op, while_gradient_op, while_op
from graphs.ops.creation import zeros, zeros_like
from graphs.ops.elementwise import add, greater, less_equal, logical_not, logical_or
from graphs.ops.movement import concat, expand_dims, identity
from graphs.ops.reductions import any as any_op
from graphs.spec import TensorSpec
from static.rebuild import replace_nodes
from static.trace.control import (
    Operands,
    Subgraph,
    Tracer,
    append_graph,
    append_scan,
    building,
    choice,
    choice_test,
    emit,
    finish_subgraphs,
    nodes_of,
    part_of,
    traced_scan,
)
from static.trace.differentiate import Cotangent, OpCall, Partial, Reach, joint_rules, recording
from static.trace.rounds import Marks, there_at
from static.trace.symbol import Symbol
from static.trace.tracing import is_choice

Traced = TypeVar("Traced")


def inline(graph: Graph, values: Sequence[Any]) -> list[Symbol]:
    """Append the nodes of a graph, without effects, to the one being traced, on these inputs; returns its outputs."""
    return append_graph(without_effects(graph), values)


def without_effects(graph: Graph) -> Graph:
    """Return the graph without its effects: a gradient computes values again and must not repeat what was shown."""
    if not graph.effects:
        return graph
    instead = {node: _silence_node(node) for node in graph.effects if not node.op.effect}
    nodes = [node for node in graph.nodes if not node.op.effect]
    return replace_nodes(Graph(graph.name, graph.inputs, nodes, graph.outputs), instead)


def _silence_node(node: Node) -> Node:
    attrs = {key: _without_effects(value) for key, value in node.attrs.items()}
    return Node.of(node.op, node.inputs, attrs, node.source)


def _without_effects(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_without_effects(part) for part in value])
    return without_effects(value) if isinstance(value, Graph) else value


def pull_graph(
    graph: Graph,
    values: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[bool],
    results: Sequence[Any] = (),
) -> list[Cotangent]:
    """Return the cotangents of the wanted inputs of a graph.

    `cotangents` has one entry, or None, for each output. `results` are the values of the first outputs, where they are
    known.
    """
    builder = building()
    marked = [Symbol(builder, builder.append(identity, nodes_of([value]), {})) for value in values]
    variables = [value for value, want in zip(marked, wanted, strict=True) if want]
    with recording(builder, variables) as pullback:
        outputs = inline(graph, marked)
    inputs = {value.node for value in marked}
    pairs = zip(outputs, nodes_of(results), strict=False)
    computed = {output.node: node for output, node in pairs if output.node not in inputs}
    return pullback(outputs, cotangents, computed)


def fill_cotangents(cotangents: Sequence[Cotangent], values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """Return the cotangents of the wanted inputs of a graph, zeros for an input that no cotangent reaches."""
    variables = [value for value, want in zip(values, wanted, strict=True) if want]
    return [
        zeros_like(v) if cotangent.value is None else cotangent.value
        for v, cotangent in zip(variables, cotangents, strict=True)
    ]


def _is_partial(cotangent: Cotangent) -> bool:
    """Whether some path through the graph has no cotangent here."""
    return cotangent.value is None or cotangent.reach is not None


def _given_cotangents(call: OpCall, first: int, count: int) -> list[Any]:
    """Return the cotangents of `count` parts of the node from part `first` on, None for a part without one."""
    return [call.cotangents.get(i) for i in range(first, first + count)]


def _zeros_for(specs: Sequence[TensorSpec], cotangents: Sequence[Any]) -> list[Any]:
    """Return the cotangents with zeros for missing ones, and None for a part that is not floating point."""
    filled = [zeros(s.shape, s.dtype) if g is None else g for s, g in zip(specs, cotangents, strict=True)]
    return [g if s.is_float else None for s, g in zip(specs, filled, strict=True)]


def _there(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _place_values(values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """Return a list that has the values, in order, in the places that are not None or False, and None in the others."""
    rest = iter(values)
    return [None if place is None or place is False else next(rest) for place in places]


def _split(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """Split values into consecutive groups of these sizes, and a last group of the remaining values."""
    rest = iter(values)
    return [*(list(islice(rest, count)) for count in counts), list(rest)]


def _add_cotangents(held: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Add the lists entry by entry; where `more` has None the entry of `held` stays."""
    return [a if b is None else add(a, b) for a, b in zip(held, more, strict=True)]


def _switch_rule(call: OpCall) -> list[Any]:
    """Return the cotangents of a switch: a second switch, which also says which operands its branches read."""
    if is_choice(call.attrs):
        return _choice_rule(call)
    index, *operands = call.inputs
    branches: tuple[Graph, ...] = call.attrs["branches"]
    parts = {i: _certain_reach(reach.flag()) for i, reach in call.parts.items() if reach is not None}
    of_results = [
        Cotangent(g, parts.get(i)) for i, g in enumerate(_given_cotangents(call, 0, len(branches[0].outputs)))
    ]
    wanted = call.wanted[1:]
    traced, by_branch = [], []
    for number, graph in enumerate(branches):
        reaching: list[Cotangent] = []
        pull = partial(pull_graph, graph, operands, of_results, wanted)
        traced.append(Subgraph(f"branch{number}", lambda _, pull=pull, reaching=reaching: reaching.extend(pull()), []))  # type: ignore[misc]
        by_branch.append(reaching)
    is_told = [_needs_run(ones) for ones in zip(*by_branch, strict=True)]
    for branch, reaching in zip(traced, by_branch, strict=True):
        cotangents_of = partial(fill_cotangents, reaching, operands, wanted)
        branch.give(lambda filled=cotangents_of, at=reaching: [*filled(), *_flags_of(at, is_told)])  # type: ignore[misc]
    graphs, captured = finish_subgraphs(*traced)
    results = emit(switch_op, [*nodes_of([index]), *captured], {"branches": tuple(graphs)}, len(traced[0].outputs))
    cotangents, told = _split(results, len(is_told))
    flags = _place_values(told, is_told)
    reaches = [
        _certain_reach(flag) if flag is not None else _by_branch(index, ones)
        for flag, ones in zip(flags, zip(*by_branch, strict=True), strict=True)
    ]
    return [None, *_place_values([Cotangent(g, r) for g, r in zip(cotangents, reaches, strict=True)], wanted)]


def _needs_run(cotangents: Sequence[Cotangent]) -> bool:
    """Whether only a run knows if the taken branch reads an operand; `cotangents` has that operand's by branch."""
    return any(cotangent.reach is not None for cotangent in cotangents) or (
        len(cotangents) > 2 and any(map(_is_partial, cotangents))
    )


def _by_branch(index: Symbol, cotangents: Sequence[Cotangent]) -> Reach:
    """Return where an operand of a switch is read, by the branch taken; any index above 0 takes the second branch."""
    is_read = [cotangent.value is not None for cotangent in cotangents]
    if all(is_read):
        return None
    if not any(is_read):
        return _certain_reach(np.asarray(False))
    return Partial(lambda: greater(index, 0) if is_read[1] else less_equal(index, 0), (index.node, is_read[1]))


def _flags_of(cotangents: Sequence[Cotangent], asked: Sequence[bool]) -> list[Any]:
    return _flags([cotangent for cotangent, is_asked in zip(cotangents, asked, strict=True) if is_asked])


def _certain_reach(reach: Any) -> Reach:
    return None if reach is None else Partial(lambda: reach)


def _choice_rule(call: OpCall) -> list[Any]:
    """Return the cotangents of a choice: the cotangent of the result goes to the chosen value."""
    g, test = call.cotangents[0], choice_test(call.inputs[0])
    _, then, otherwise = call.wanted
    if_then = Partial(lambda: test, (call.inputs[0].node, True))
    if_not = Partial(lambda: logical_not(test), (call.inputs[0].node, False))
    of_then = Cotangent(choice(test, g, zeros_like(g)), if_then) if then else None
    of_otherwise = Cotangent(choice(test, zeros_like(g), g), if_not) if otherwise else None
    return [None, of_then, of_otherwise]


def _scan_rule(call: OpCall) -> list[Any]:
    """Return the cotangents of a scan: a scan in the other direction.

    Its state holds the cotangents of the state and the sums of the cotangents of outer values.
    """
    attrs, carry, body = call.attrs, call.attrs["carry"], call.attrs["body"]
    _, xs, outer = _split(call.inputs, carry, attrs["xs"])
    _, wanted_xs, wanted_outer = _split(call.wanted, carry, attrs["xs"])
    specs, ys = [output.spec for output in body.outputs], len(body.outputs) - carry
    floats = [spec.is_float for spec in specs[:carry]]
    of_state = _zeros_for(specs[:carry], _given_cotangents(call, 0, carry))
    of_ys = _given_cotangents(call, carry, ys)
    # At second order the saved states have cotangents too, because the first gradient reads them.
    of_saved = _given_cotangents(call, carry + ys, carry)
    partly: list[Cotangent] = []
    marks = Marks(call, carry)

    def step(state: Any, x: Any) -> Any:
        (of_after, of_outer, marked), (before, after, slices, of_y, of_before) = state, x
        cotangents = [*_place_values(_with_marks(of_after, marked, marks), of_state), *_place_values(of_y, of_ys)]
        values, all_wanted = [*before, *slices, *outer], [*floats, *wanted_xs, *wanted_outer]
        partly[:] = pull_graph(body, values, cotangents, all_wanted, after)
        reaching = fill_cotangents(partly, values, all_wanted)
        into, of_slices, more = _split(reaching, sum(floats), sum(wanted_xs))
        read = [g for g, is_float in zip(_place_values(of_before, of_saved), floats, strict=True) if is_float]
        marks_before = _merge_flags(_flags(marks.values_with_mark(partly)), marks.saved)
        return (_add_cotangents(into, read), _add_cotangents(of_outer, more), marks_before), of_slices

    saved = [part_of(call.out, carry + ys + i) for i in range(carry)]
    sums = [zeros_like(value) for value, want in zip(outer, wanted_outer, strict=True) if want]
    steps = Operands((saved, _shift_states(call, saved), xs, _there(of_ys), _there(of_saved)))
    start, traced = _steady(marks, partly, lambda: traced_scan(step, (_there(of_state), sums, marks.ends), steps))
    (of_start, of_outer, marked), of_xs = append_scan(start, traced, steps, attrs["length"], not attrs["reverse"])
    makes_a_step = isinstance(attrs["length"], int) and attrs["length"] > 0
    is_read = zip(marks.reads(body.inputs[carry:], call.wanted[carry:]), partly[sum(floats) :], strict=True)
    others = [makes_a_step and always and not _is_partial(cotangent) for always, cotangent in is_read]
    reaches = _reaches(marks, marked, others, cached(lambda: _scan_reach(call, saved)))
    told = [Cotangent(g, reach) for g, reach in zip([*of_start, *of_xs, *of_outer], reaches, strict=True)]
    return _place_values(told, [*floats, *wanted_xs, *wanted_outer])


def _scan_reach(call: OpCall, saved: Sequence[Any]) -> list[Any]:
    """Return, for each input of a scan that wants a cotangent, a bool: whether some step reads it.

    The bools go backward through the steps as cotangents do.
    """
    attrs, carry, body = call.attrs, call.attrs["carry"], call.attrs["body"]
    _, xs, outer = _split(call.inputs, carry, attrs["xs"])
    floats = [output.spec.is_float for output in body.outputs]
    wanted = [*floats[:carry], *call.wanted[carry:]]
    count, of_xs = sum(floats[:carry]), sum(call.wanted[carry : carry + attrs["xs"]])
    ends = there_at(call, range(len(floats)), floats)
    of_saved = _there(there_at(call, range(len(floats), len(floats) + carry), floats))  # read at second order

    def step(state: Any, x: Any) -> Any:
        (of_after, of_outer), (before, slices) = state, x
        seeds = _seeds(body, [*_place_values(of_after, floats[:carry]), *ends[carry:]])
        flags = _flags(pull_graph(body, [*before, *slices, *outer], seeds, wanted))
        into, read, more = _split(flags, count, of_xs)
        return (_merge_flags(into, of_saved), _merge_flags(of_outer, more)), read

    start = [end for end, is_float in zip(ends[:carry], floats, strict=False) if is_float]
    never = [np.asarray(False)] * (sum(wanted) - count - of_xs)
    (into, more), read = Tracer().scan(step, (start, never), (saved, xs), attrs["length"], not attrs["reverse"])
    return [*into, *(any_op(is_read) for is_read in read), *more]


def _shift_states(call: OpCall, saved: Sequence[Any]) -> list[Any]:
    """Return the states after each step of a scan: the saved states before the next step, and then the last state.

    The list is empty where the number of steps is not known.
    """
    if building().general or not isinstance(call.attrs["length"], int) or not call.attrs["length"]:
        return []
    last = [expand_dims(part_of(call.out, i), axis=0) for i in range(len(saved))]
    if call.attrs["reverse"]:
        return [concat([end, states[:-1]]) for end, states in zip(last, saved, strict=True)]
    return [concat([states[1:], end]) for end, states in zip(last, saved, strict=True)]


def _while_rule(call: OpCall) -> list[Any]:
    """Return the cotangents of a while_loop: they go through the saved states, the last first.

    The sums of the cotangents of outer values go along.
    """
    carry, body = call.attrs["carry"], call.attrs["body"]
    specs = [output.spec for output in body.outputs]
    floats, wanted_outer = [spec.is_float for spec in specs], call.wanted[carry:]
    of_state = _zeros_for(specs, _given_cotangents(call, 0, carry))
    outer = call.inputs[carry:]
    sums = [zeros_like(v) for v, want in zip(outer, wanted_outer, strict=True) if want]
    marks = Marks(call, carry)
    partly: list[Cotangent] = []

    def step(values: list[Any]) -> list[Any]:
        of_after, of_outer, marked, before = _split(values, sum(floats), len(sums), sum(marks.is_marked))
        all_wanted = [*floats, *wanted_outer]
        partly[:] = pull_graph(body, before, _place_values(_with_marks(of_after, marked, marks), of_state), all_wanted)
        into, more = _split(fill_cotangents(partly, before, all_wanted), sum(floats))
        return [*into, *_add_cotangents(of_outer, more), *_flags(marks.values_with_mark(partly))]

    def trace_step() -> tuple[list[Any], Subgraph]:
        start = [*_there(of_state), *sums, *marks.ends]
        return start, Subgraph("step", step, [node.spec for node in nodes_of([*start, *call.inputs])])

    carried_back = _through(part_of(call.out, carry), *_steady(marks, partly, trace_step), outer, reverse=True)
    of_start, of_outer, marked = _split(carried_back, sum(floats), len(sums))
    others = [False] * len(sums)  # there may be no round at all
    reaches = _reaches(marks, marked, others, cached(lambda: _while_reach(call)))
    told = [Cotangent(g, reach) for g, reach in zip([*of_start, *of_outer], reaches, strict=True)]
    return _place_values(told, [*floats, *wanted_outer])


def _while_reach(call: OpCall) -> list[Any]:
    """Return, for each input of a while_loop that wants a cotangent, a bool: whether some round reads it.

    The bools go backward through the saved states.
    """
    carry, body = call.attrs["carry"], call.attrs["body"]
    floats = [output.spec.is_float for output in body.outputs]
    wanted, count = [*floats, *call.wanted[carry:]], sum(floats)
    start = [*_there(there_at(call, range(len(floats)), floats)), *[np.asarray(False)] * (sum(wanted) - count)]

    def step(values: list[Any]) -> list[Any]:
        of_after, of_outer, before = _split(values, count, sum(wanted) - count)
        flags = _flags(pull_graph(body, before, _seeds(body, _place_values(of_after, floats)), wanted))
        return [*flags[:count], *_merge_flags(of_outer, flags[count:])]

    traced = Subgraph("reached", step, [node.spec for node in nodes_of([*start, *call.inputs])])
    return _through(part_of(call.out, carry), start, traced, call.inputs[carry:], reverse=True)


def _reaches(
    marks: Marks, marked: Sequence[Any], others: Iterable[bool], reached: Callable[[], list[Any]]
) -> list[Reach]:
    """Return where each input of a loop that wants a cotangent has one: first the floats of its state, then the others.

    A float with a mark takes the value of its mark before the loop (`marked`). An input that certainly has a cotangent
    gets None. `reached()` tells the rest.
    """
    flags = _place_values(marked, marks.is_marked)
    states = zip(marks.is_certain, flags, strict=True)
    asked = [(is_certain, flag) for is_certain, flag in states] + [(is_certain, None) for is_certain in others]
    return [
        None if is_certain else Partial(lambda i=i, flag=flag: reached()[i] if flag is None else flag)  # type: ignore[misc]
        for i, (is_certain, flag) in enumerate(asked)
    ]


def _steady(marks: Marks, before: Sequence[Cotangent], traced: Callable[[], Traced]) -> Traced:
    """Trace a round of the backward loop, again and again until its marks hold after the round too.

    `before` has the cotangents that the round gives, by then.
    """
    result = traced()
    while not marks.hold(before):
        result = traced()
    return result


def _with_marks(cotangents: Sequence[Any], marked: Sequence[Any], marks: Marks) -> list[Any]:
    """Return the cotangents, each with its Reach where the float has a mark."""
    flags = _place_values(marked, marks.is_marked)
    return [Cotangent(g, _certain_reach(flag)) for g, flag in zip(cotangents, flags, strict=True)]


def _seeds(body: Graph, reached: Sequence[Any]) -> list[Any]:
    """Return zero cotangents of the outputs of a round: only the flags whether they are there matter."""
    outputs = zip(body.outputs, reached, strict=True)
    return [
        None if end is None else Cotangent(zeros(o.spec.shape, o.spec.dtype), _certain_reach(end)) for o, end in outputs
    ]


def _flags(cotangents: Sequence[Cotangent]) -> list[Any]:
    """Return a bool for each cotangent: whether it is there."""
    return [
        np.asarray(cotangent.value is not None) if cotangent.reach is None else cotangent.reach.flag()
        for cotangent in cotangents
    ]


def _merge_flags(held: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    return [logical_or(flag, other) for flag, other in zip(held, more, strict=True)]


def _while_gradient_rule(call: OpCall) -> list[Any]:
    """Return the cotangents of a while_loop's gradient, which is linear in its cotangents.

    Its transpose goes through the saved states in the other direction. Raises NotDifferentiableError for other inputs.
    """
    count, graph = call.attrs["carry"], call.attrs["step"]
    if any(want for i, want in enumerate(call.wanted) if not 1 <= i <= count):
        rule = "while_loop: its gradient has no gradient in a graph"
        message = f"{rule}; use scan, or give the loop a limit, or run it in the dynamic engine"
        raise NotDifferentiableError(locate(message, building().line))
    history, *values = call.inputs
    carried, outer = values[:count], values[count:]
    floats = [output.spec.is_float for output in graph.outputs]  # the others are marks
    start = _there(_zeros_for([output.spec for output in graph.outputs], _given_cotangents(call, 0, count)))

    def step(values: list[Any]) -> list[Any]:
        cotangents, held = values[: len(start)], values[len(start) :]
        anywhere = [
            zeros_like(v) if is_float else np.asarray(True) for v, is_float in zip(carried, floats, strict=True)
        ]
        inputs, wanted = [*anywhere, *held], [*floats, *(False for _ in held)]
        return fill_cotangents(pull_graph(graph, inputs, _place_values(cotangents, floats), wanted), inputs, wanted)

    kept = [node for i, node in enumerate(graph.inputs) if i >= count or floats[i]]
    traced = Subgraph("step", step, [node.spec for node in kept])
    carried_back = _through(history, start, traced, outer, reverse=not call.attrs["reverse"])
    return [None, *_place_values(carried_back, floats), *(None for _ in outer)]


def _through(history: Symbol, start: Sequence[Any], step: Subgraph, outer: Sequence[Any], reverse: bool) -> list[Any]:
    """Append a node that carries cotangents through the saved states of a loop; `step` captures nothing."""
    (graph,), _ = finish_subgraphs(step)
    attrs = {"step": graph, "carry": len(start), "reverse": reverse}
    return emit(while_gradient_op, nodes_of([history, *start, *outer]), attrs, len(start))


def _ruled_rule(call: OpCall) -> list[Any]:
    """Return the gradients that the user's rule gives, and None for the values and the symbols of its state."""
    rule = call.attrs["rule"]
    return [*([None] * rule.values), *rule(call.inputs, call.out, call.cotangents), *(None for _ in rule.symbols)]


joint_rules.enter(
    {
        switch_op: _switch_rule,
        scan_op: _scan_rule,
        while_op: _while_rule,
        while_gradient_op: _while_gradient_rule,
        ruled_op: _ruled_rule,
    }
)
