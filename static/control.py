"""Control flow in a graph: branches and bodies traced to subgraphs, and the gradients of the nodes that hold them.

A gradient is written with the same control flow: that of a switch is a switch over the branches' gradients, that of a
scan is a scan the other way. So they nest, and scans and switches are differentiable to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dispatch, reverse, tree
from graphs.builder import Builder
from graphs.dims import Size
from graphs.errors import GraphError, NotDifferentiableError, ShapeError, located, user_line
from graphs.ir import Graph, Node
from graphs.op import Attrs, Op
from graphs.ops.control import part, scan_op, stacked, switch_op, while_gradient_op, while_op
from graphs.ops.creation import zeros_like
from graphs.ops.movement import astype, reshape
from graphs.ops.shapes import dtype_of, shape_of
from graphs.spec import TensorSpec
from static.differentiate import joint_rules, recording
from static.symbol import Symbol
from static.trace import current, is_traced, node_of, tracing

Flat = Callable[[list[Any]], Sequence[Any]]


class Subgraph:
    """A function of symbols traced apart; what it reads of the enclosing graph is captured."""

    def __init__(self, name: str, function: Flat, specs: Sequence[TensorSpec]) -> None:
        self.builder = Builder(name, current())
        inputs = [self.builder.input(f"arg{i}", spec) for i, spec in enumerate(specs)]
        with tracing(self.builder):
            results = function([Symbol(self.builder, node) for node in inputs])
            self.outputs = [node_of(self.builder, value, ()) for value in results]
        self._inputs = inputs

    @property
    def specs(self) -> list[TensorSpec]:
        """What it returns."""
        return [output.spec for output in self.outputs]

    def finish(self, captured: Sequence[Node]) -> Graph:
        """The graph, with an input for each of these nodes of the enclosing graph after its own."""
        self.builder.inputs = [*self._inputs, *(self.builder.capture(node) for node in captured)]
        return self.builder.finish(self.outputs)


def _finished(*subgraphs: Subgraph) -> tuple[list[Graph], list[Node]]:
    """The graphs of several subgraphs with one list of captured nodes, and that list."""
    captured = list(dict.fromkeys(node for subgraph in subgraphs for node in subgraph.builder.captured))
    return [subgraph.finish(captured) for subgraph in subgraphs], captured


def _emit(op: Op, sources: Sequence[Node], attrs: Attrs, count: int) -> list[Symbol]:
    """A node of the graph being traced, and the first `count` of its parts."""
    builder = _builder()
    try:
        node = builder.append(op, sources, attrs, builder.line or user_line())
    except GraphError as error:
        raise dispatch.explained(op, [source.spec for source in sources], error) from None
    return [Symbol(builder, builder.append(part, [node], {"number": i})) for i in range(count)]


def _builder() -> Builder:
    builder = current()
    if builder is None:
        raise GraphError("control flow is traced while a graph is being made")
    return builder


def _nodes(values: Sequence[Any]) -> list[Node]:
    return [node_of(_builder(), value, ()) for value in values]


class Operands:
    """A nested container of which some leaves are traced and the others are static values."""

    def __init__(self, container: Any) -> None:
        leaves, self.structure = tree.flatten(container)
        self.static = [None if _varies(leaf) else leaf for leaf in leaves]
        self.values = [leaf for leaf in leaves if _varies(leaf)]

    def filled(self, values: Sequence[Any]) -> Any:
        """The container with other traced leaves."""
        rest = iter(values)
        return tree.unflatten(self.structure, [next(rest) if s is None else s for s in self.static])


def _varies(leaf: Any) -> bool:
    return is_traced(leaf) or isinstance(leaf, (bool, int, float))


class Tracer:
    """Makes nodes of control flow: what `graphs.ops.control` calls while a graph is being traced."""

    def switch(self, index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
        """A switch node. Raises ShapeError when branches return different structures or specs."""
        given = Operands(operands)
        nodes = _nodes(given.values)
        structures: list[tree.Structure] = []

        def flat(branch: Callable[..., Any], values: list[Any]) -> list[Any]:
            leaves, structure = tree.flatten(branch(*given.filled(values)))
            structures.append(structure)
            return leaves

        specs = [node.spec for node in nodes]
        traced = [
            Subgraph(f"branch{i}", lambda values, b=branch: flat(b, values), specs)  # type: ignore[misc]
            for i, branch in enumerate(branches)
        ]
        for structure, subgraph in zip(structures, traced, strict=True):
            if structure != structures[0] or subgraph.specs != traced[0].specs:
                raise ShapeError(
                    located(f"branches return {traced[0].specs} and {subgraph.specs}; return the same from both")
                )
        graphs, captured = _finished(*traced)
        position = reshape(astype(index, np.int64), ())
        sources = [*_nodes([position]), *nodes, *captured]
        parts = _emit(switch_op, sources, {"branches": tuple(graphs)}, len(traced[0].specs))
        return tree.unflatten(structures[0], parts)

    def while_loop(self, condition: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
        """A while_loop node. Raises ShapeError when the body changes the structure or specs of the state."""
        given, step = _steady("while_loop", state, lambda s: (body(s), ()), [])
        specs = [node.spec for node in _nodes(given.values)]
        test = Subgraph("condition", lambda values: [condition(given.filled(values))], specs)
        (test_graph, step_graph), captured = _finished(test, step)
        attrs = {"condition": test_graph, "body": step_graph, "carry": len(specs), "save": _builder().saving > 0}
        parts = _emit(while_op, [*_nodes(given.values), *captured], attrs, len(specs))
        return given.filled(parts)

    def scan(self, body: Callable[..., Any], state: Any, xs: Any, length: Size, reverse: bool) -> tuple[Any, Any]:
        """A scan node. Raises ShapeError when the body changes the structure or specs of the state."""
        sequences = Operands(xs)
        slices = [TensorSpec(shape_of(x)[1:], dtype_of(x)) for x in sequences.values]
        results: list[Operands] = []

        def stepped(carried: Any, x: list[Any]) -> tuple[Any, list[Any]]:
            after, y = body(carried, sequences.filled(x))
            results.append(Operands(y))
            return after, results[-1].values

        given, step = _steady("scan", state, stepped, slices)
        (graph,), captured = _finished(step)
        carry, save = len(given.values), _builder().saving > 0
        attrs = {"body": graph, "carry": carry, "xs": len(slices), "length": length, "reverse": reverse, "save": save}
        attrs["rows"] = stacked(graph, carry, length, save)
        sources = [*_nodes(given.values), *_nodes(sequences.values), *captured]
        parts = _emit(scan_op, sources, attrs, len(step.specs))
        return given.filled(parts[:carry]), results[-1].filled(parts[carry:])


def _steady(
    name: str, state: Any, body: Callable[..., tuple[Any, Sequence[Any]]], more: Sequence[TensorSpec]
) -> tuple[Operands, Subgraph]:
    """The state and the traced body. Python numbers in the state take the dtype that the body gives them."""
    given = Operands(state)

    def flat(values: list[Any]) -> list[Any]:
        count = len(given.values)
        after, extra = body(given.filled(values[:count]), *([values[count:]] if more or name == "scan" else []))
        leaves = Operands(after)
        if leaves.structure != given.structure or len(leaves.values) != count:
            raise ShapeError(located(f"{name}: the body turns the state into another structure; return the same"))
        return [*leaves.values, *extra]

    step = Subgraph(name, flat, [*(node.spec for node in _nodes(given.values)), *more])
    for i, (value, spec) in enumerate(zip(given.values, step.specs, strict=False)):
        if isinstance(value, (bool, int, float)) and spec.shape == () and spec.dtype != node_dtype(value):
            given.values[i] = np.asarray(value, spec.dtype)
    return given, Subgraph(name, flat, [*(node.spec for node in _nodes(given.values)), *more])


def node_dtype(value: Any) -> np.dtype[Any]:
    """The dtype a number has on its own."""
    return np.asarray(value).dtype


# Gradients ------------------------------------------------------------------------------------------------------


def inline(graph: Graph, values: Sequence[Any]) -> list[Symbol]:
    """Append the nodes of a graph to the one being traced, on these inputs; returns its outputs."""
    builder = _builder()
    made: dict[Node, Node] = dict(zip(graph.inputs, _nodes(values), strict=True))
    for node in graph.nodes:
        if node not in made:
            made[node] = builder.append(node.op, [made[s] for s in node.inputs], node.attrs, node.source)
    return [Symbol(builder, made[output]) for output in graph.outputs]


def _pulled(graph: Graph, values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of a graph's floating point inputs, zeros where nothing reaches one."""
    builder = _builder()
    variables = [_marked(builder, value) for value in values]
    floats = [v for v in variables if v.node.spec.is_float]
    with recording(builder, floats) as pullback:
        outputs = inline(graph, variables)
    found = pullback(outputs, cotangents)
    return [zeros_like(v) if g is None else g for v, g in zip(floats, found, strict=True)]


def _marked(builder: Builder, value: Any) -> Symbol:
    from graphs.ops.movement import identity

    return Symbol(builder, builder.append(identity, _nodes([value]), {}))


def _cotangents(specs: Sequence[TensorSpec], given: reverse.Parts, first: int = 0) -> list[Any]:
    """A cotangent for each of these parts: zeros where none came, None where there is no gradient."""
    return [_cotangent(spec, given.get(first + i)) if spec.is_float else None for i, spec in enumerate(specs)]


def _cotangent(spec: TensorSpec, given: Any) -> Any:
    from graphs.ops.creation import zeros

    return zeros(spec.shape, spec.dtype) if given is None else given


def _floats(values: Sequence[Any]) -> list[Any]:
    return [v for v in values if v is not None and dtype_of(v).kind == "f"]


def _spread(values: Sequence[Symbol], found: Sequence[Any]) -> list[Any]:
    """The cotangents found for floating point values, in the places of all values."""
    rest = iter(found)
    return [next(rest) if v.node.spec.is_float else None for v in values]


def _switch_rule(attrs: Attrs, inputs: list[Symbol], out: Symbol, g: reverse.Parts) -> list[Any]:
    index, *operands = inputs
    branches: tuple[Graph, ...] = attrs["branches"]
    cotangents = _cotangents([o.spec for o in branches[0].outputs], g)
    backward = [
        lambda values, cts, graph=branch: _pulled(graph, values, _restored(cts, cotangents)) for branch in branches
    ]
    found = Tracer().switch(index, backward, (list(operands), _floats(cotangents)))
    return [None, *_spread(operands, found)]


def _restored(floats: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    rest = iter(floats)
    return [None if value is None else next(rest) for value in like]


def _scan_rule(attrs: Attrs, inputs: list[Symbol], out: Symbol, g: reverse.Parts) -> list[Any]:
    carry, count, body, length = attrs["carry"], attrs["xs"], attrs["body"], attrs["length"]
    if not attrs["save"]:
        raise NotDifferentiableError(located("scan: traced before it was differentiated; call it inside grad"))
    xs, outer = inputs[carry : carry + count], inputs[carry + count :]
    ys = len(body.outputs) - carry
    saved = [_part(out, carry + ys + i) for i in range(carry)]
    specs = [output.spec for output in body.outputs]
    of_state = _cotangents(specs[:carry], g)
    of_ys = _cotangents(attrs["rows"][:ys], g, carry)
    # What was saved for a gradient is itself read by that gradient, and so has a cotangent at second order.
    used = any(i >= carry + ys for i in g)
    of_saved = _floats(_cotangents(attrs["rows"][ys:], g, carry + ys)) if used else []

    def step(state: tuple[list[Any], list[Any]], x: tuple[list[Any], ...]) -> Any:
        (of_after, of_outer), (before, slices, of_y, of_before) = state, x
        given = [*_restored(of_after, of_state), *_restored(of_y, of_ys)]
        values = [*before, *slices, *outer]
        found = _spread([_symbol(v) for v in values], _pulled(body, values, given))
        added = [a + b for a, b in zip(of_outer, _floats(found[carry + count :]), strict=True)]
        into = _floats(found[:carry])
        into = [a + b for a, b in zip(into, of_before, strict=True)] if used else into
        return (into, added), _floats(found[carry : carry + count])

    start = (_floats(of_state), [zeros_like(v) for v in outer if v.node.spec.is_float])
    steps = (saved, list(xs), _floats(of_ys), of_saved)
    (of_start, of_outer), of_xs = Tracer().scan(step, start, steps, length, not attrs["reverse"])
    return _spread(inputs, [*of_start, *of_xs, *of_outer])


def _symbol(value: Any) -> Symbol:
    return value if isinstance(value, Symbol) else Symbol(_builder(), _nodes([value])[0])


def _part(out: Symbol, index: int) -> Symbol:
    return Symbol(_builder(), _builder().append(part, [out.node], {"number": index}))


def _while_rule(attrs: Attrs, inputs: list[Symbol], out: Symbol, g: reverse.Parts) -> list[Any]:
    carry, body = attrs["carry"], attrs["body"]
    if not attrs["save"]:
        raise NotDifferentiableError(located("while_loop: traced before it was differentiated; call it inside grad"))
    state, outer = inputs[:carry], inputs[carry:]
    of_state = _cotangents([output.spec for output in body.outputs], g)
    start = [*_floats(of_state), *(zeros_like(v) for v in outer if v.node.spec.is_float)]
    here = len(_floats(of_state))

    def step(values: list[Any]) -> list[Any]:
        given, before = values[: len(start)], values[len(start) :]
        found = _spread([_symbol(v) for v in before], _pulled(body, before, _restored(given[:here], of_state)))
        added = [a + b for a, b in zip(given[here:], _floats(found[carry:]), strict=True)]
        return [*_floats(found[:carry]), *added]

    nodes = _nodes([*start, *inputs])
    traced = Subgraph("step", step, [node.spec for node in nodes])
    (graph,), captured = _finished(traced)
    if captured:
        raise GraphError("the gradient of a loop read a value that is no input of the loop")
    sources = [_part(out, carry).node, *nodes[: len(start)], *(v.node for v in outer)]
    found = _emit(while_gradient_op, sources, {"step": graph, "carry": len(start)}, len(start))
    return _spread([*state, *outer], found)


def _no_second_order(attrs: Attrs, inputs: list[Symbol], out: Symbol, g: reverse.Parts) -> list[Any]:
    raise NotDifferentiableError(
        located("while_loop: its gradient has no gradient in a graph; use scan, or run it in the dynamic engine")
    )


joint_rules.update(
    {switch_op: _switch_rule, scan_op: _scan_rule, while_op: _while_rule, while_gradient_op: _no_second_order}
)


def _tracer(*deciding: Any) -> Tracer | None:
    """Whoever traces control flow, when a graph is being made and what decides is not all known."""
    if current() is None or (deciding and not any(isinstance(value, Symbol) for value in deciding)):
        return None
    return Tracer()


dispatch.trace_control(_tracer)
