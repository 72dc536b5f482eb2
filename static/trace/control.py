"""Control flow in a graph: branches and loop bodies are traced to subgraphs, and one node holds the subgraphs.

A value of the enclosing graph that a subgraph reads becomes an input of the node, after the operands.

Read `Subgraph` first, then the functions that make nodes of loops, `Loop` and `Tracer`, and `choice` at the end.

A choice between two values passes a gradient to the chosen value alone; `where` passes a zero to the other. A zero
cotangent matters: zero times an infinite derivative is NaN. While a graph is traced, and may be differentiated, a
choice is a switch whose branches compute nothing. The finished graph has `where` in its place
(`static/trace/tracing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import capture, dispatch, promotion, tree
from graphs.builder import Builder
from graphs.dims import Size
from graphs.errors import ControlFlowError, GraphError, ShapeError, locate, user_line
from graphs.ir import Graph, Node
from graphs.op import Attrs, Op
from graphs.ops.control import part, ruled_op, scan_op, stacked_specs, switch_op, while_op
from graphs.ops.creation import zeros
from graphs.ops.elementwise import add, where
from graphs.ops.movement import astype, reshape
from graphs.ops.shapes import dtype_of
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec
from static.trace import symbol as weak
from static.trace.symbol import Symbol, callee
from static.trace.tracing import CHOICE, current, is_traced, node_of, of_kind, reading_all, tracing

Body = Callable[..., Any]


class Subgraph:
    """A function of symbols, traced apart to a graph of its own.

    `inputs` are its own, `values` the leaves that it returned, `structure` their container, and `outputs` their nodes.
    """

    def __init__(
        self, name: str, function: Callable[[list[Any]], Any], specs: Sequence[TensorSpec], repeats: bool = False
    ) -> None:
        parent = current()
        self.builder = Builder(name, parent)
        self.builder.repeats = repeats
        self.builder.line = parent.line if parent else ""  # the gradient of a line is put down to that line
        inputs = [self.builder.input(f"arg{i}", spec) for i, spec in enumerate(specs)]
        self.inputs = inputs
        if parent and parent.tensors:
            self.builder.tensors.update(inputs)
        self.give(lambda: function([Symbol(self.builder, node) for node in inputs]))

    def give(self, function: Callable[[], Any]) -> None:
        """Trace `function()` at the end of the subgraph, and make its result the result of the subgraph."""
        with tracing(self.builder):
            result = function()
        self.values, self.structure = tree.flatten(result)
        self.outputs = [node_of(self.builder, value, ()) for value in self.values]

    @property
    def specs(self) -> list[TensorSpec]:
        """The specs of the outputs."""
        return [output.spec for output in self.outputs]

    def finish(self, captured: Sequence[Node]) -> Graph:
        """Return the finished graph; its inputs are its own, then one for each captured node."""
        self.builder.inputs = [*self.inputs, *(self.builder.capture(node) for node in captured)]
        return self.builder.finish(self.outputs)


def finish_subgraphs(*subgraphs: Subgraph) -> tuple[list[Graph], list[Node]]:
    """Finish several subgraphs with one list of captured nodes; return the graphs and that list."""
    captured = list(dict.fromkeys(node for subgraph in subgraphs for node in subgraph.builder.captured))
    return [subgraph.finish(captured) for subgraph in subgraphs], captured


def emit(op: Op, sources: Sequence[Node], attrs: Attrs, count: int) -> list[Symbol]:
    """Append a node of control flow to the graph being traced, and return the first `count` of its parts."""
    builder = building()
    try:
        node = builder.append(op, sources, attrs, builder.line or user_line())
    except GraphError as error:
        raise dispatch.explain_error(op, [source.spec for source in sources], error) from None
    return [part_of(Symbol(builder, node), i) for i in range(count)]


def _counting(start: Sequence[Node], step: Subgraph, *others: Subgraph) -> tuple[list[Node], slice]:
    """Add a counter to the state of a loop whose body asks for the number of the turn.

    Returns the nodes that the loop carries and the slice of the results that is the counter, empty where there is none.
    """
    turn, carry = step.builder.turn, len(start)
    if turn is None:
        return [*start], slice(0)
    step.inputs.insert(carry, turn)
    step.outputs.insert(carry, step.builder.append(add, [turn, step.builder.constant(np.asarray(1))], {}))
    for other in others:
        other.inputs.insert(carry, other.builder.input("turn", turn.spec))
    return [*start, building().constant(np.asarray(0))], slice(carry, carry + 1)


def while_node(start: Sequence[Node], test: Subgraph, step: Subgraph) -> list[Symbol]:
    """Append a while_loop: `step` runs on the state as long as `test` of it holds. Returns the state after it."""
    start, counter = _counting(start, step, test)
    (test_graph, step_graph), captured = finish_subgraphs(test, step)
    attrs = {"condition": test_graph, "body": step_graph, "carry": len(start), "save": building().saving > 0}
    parts = emit(while_op, [*start, *captured], attrs, len(start))
    del parts[counter]
    return parts


def bounded_node(start: Sequence[Node], test: Subgraph, step: Subgraph, limit: int) -> tuple[list[Symbol], Symbol]:
    """Append a scan that stands for at most `limit` turns of a while loop.

    Returns the state after it, and a bool: whether the loop would go on. Once the test has failed, each further step of
    the scan takes the branch that keeps the state and runs no test.
    """
    start, counter = _counting(start, step, test)
    (test_graph, step_graph), captured = finish_subgraphs(test, step)
    outer = [Symbol(building(), node) for node in captured]

    def append_test(state: Sequence[Any]) -> list[Symbol]:
        return append_graph(test_graph, [*state, *outer])

    def take_turn(*state: Any) -> list[Any]:
        after = append_graph(step_graph, [*state, *outer])
        return [*after, *append_test(after)]

    def keep_state(*state: Any) -> list[Any]:
        return [*state, np.asarray(False)]

    def turn(values: list[Any]) -> Any:
        return Tracer().switch(values[-1], (keep_state, take_turn), tuple(values[:-1]))

    first = [*start, *nodes_of(append_test([Symbol(building(), node) for node in start]))]
    parts = scan_node(first, [], Subgraph("body", turn, [node.spec for node in first]), limit)
    going = parts[len(start)]
    del parts[len(start) :], parts[counter]
    return parts, going


def append_graph(graph: Graph, values: Sequence[Any]) -> list[Symbol]:
    """Append the nodes of a graph to the one being traced, on these inputs; returns its outputs."""
    builder = building()
    made: dict[Node, Node] = dict(zip(graph.inputs, nodes_of(values), strict=True))
    for node in graph.nodes:
        if node not in made:
            made[node] = builder.append(node.op, [made[s] for s in node.inputs], node.attrs, node.source)
    return [Symbol(builder, made[output]) for output in graph.outputs]


def scan_node(
    start: Sequence[Node], sequences: Sequence[Node], step: Subgraph, length: Size, reverse: bool = False
) -> list[Symbol]:
    """Append a scan over the slices of `sequences`. Returns the state after it and then the other outputs, stacked."""
    start, counter = _counting(start, step)
    (graph,), captured = finish_subgraphs(step)
    carry, save = len(start), building().saving > 0
    attrs = {"body": graph, "carry": carry, "xs": len(sequences), "length": length, "reverse": reverse, "save": save}
    attrs["rows"] = stacked_specs(graph, carry, length, save)
    parts = emit(scan_op, [*start, *sequences, *captured], attrs, len(step.outputs))
    del parts[counter]
    return parts


def part_of(symbol: Symbol, number: int) -> Symbol:
    """Return one of the tensors that a control-flow node computes, as a symbol of the graph that holds the node."""
    node = symbol.node
    return Symbol(symbol.builder, symbol.builder.append(part, [node], {"number": number}, node.source))


def building() -> Builder:
    """Return the builder of the graph being traced. Raises ControlFlowError where there is none."""
    builder = current()
    if builder is None:
        raise ControlFlowError(locate("control flow is traced while a graph is being made"))
    return builder


def nodes_of(values: Sequence[Any]) -> list[Node]:
    """Return the nodes of these values in the graph being traced; values that are no symbols become constants."""
    return [node_of(building(), value, ()) for value in values]


class Operands:
    """A nested container of which some leaves are traced, and the others (numbers, strings) are static values.

    `numbers` tells which traced leaves stand for Python numbers.
    """

    def __init__(self, container: Any, numbers: Sequence[bool] | None = None) -> None:
        leaves, self.structure = tree.flatten(container)
        self.static = [None if is_traced(leaf) else leaf for leaf in leaves]
        self.nodes = nodes_of([leaf for leaf in leaves if is_traced(leaf)])
        self._numbers = numbers or [False] * len(leaves)

    @property
    def specs(self) -> list[TensorSpec]:
        """The specs of the traced leaves."""
        return [node.spec for node in self.nodes]

    def filled(self, values: Sequence[Symbol]) -> Any:
        """Return the container with these symbols as its traced leaves."""
        rest = iter(values)
        leaves = [next(rest) if static is None else static for static in self.static]
        weakened = [_weak(leaf) if number else leaf for leaf, number in zip(leaves, self._numbers, strict=True)]
        return tree.unflatten(self.structure, weakened)


def _weak(symbol: Symbol) -> Symbol:
    return Symbol(symbol.builder, symbol.node, weak=True)


class Loop(NamedTuple):
    """The body of a loop: `step(state, x)` gives the next state and y; `slices` are the specs of the leaves of x."""

    name: str
    step: Callable[[Any, list[Any]], tuple[Any, Any]]
    slices: Sequence[TensorSpec] = ()

    def trace(self, state: Any) -> tuple[Operands, Subgraph]:
        """Return the state at the start, and the traced body, which returns the leaves of the next state and y.

        Raises ShapeError when the body changes the structure of the state.
        """
        start = self._start(state)

        def body(values: list[Any]) -> tuple[list[Any], Any]:
            after, y = self._step(start, values)
            leaves = self._like(start, after)
            kept = [leaf for leaf, static in zip(leaves, start.static, strict=True) if static is None]
            return [_cast_number(leaf, spec) for leaf, spec in zip(kept, start.specs, strict=True)], y

        return start, Subgraph("body", body, [*start.specs, *self.slices], repeats=True)

    def _start(self, state: Any) -> Operands:
        """Return the state with arrays for its Python numbers; one trial step tells which dtypes hold them.

        A leaf that is a Python number before and after that step stands for a Python number in every step.
        """
        leaves, structure = tree.flatten(state)
        if not any(map(promotion.is_scalar, leaves)):
            return Operands(state)
        after = self._trial_step(Operands(state))
        numbers = [promotion.is_scalar(leaf) for leaf in leaves]
        typed = [
            np.asarray(leaf, _holding(leaf, new)) if number else leaf
            for leaf, new, number in zip(leaves, after, numbers, strict=True)
        ]
        still = [number and weak.is_weak(new) for number, new in zip(numbers, after, strict=True)]
        return Operands(tree.unflatten(structure, typed), still)

    def _trial_step(self, start: Operands) -> list[Any]:
        """Return the leaves of the state after one step, traced in a graph that is thrown away."""
        after: list[Any] = []

        def step(values: list[Any]) -> None:
            after.extend(self._like(start, self._step(start, values)[0]))

        Subgraph("tried", step, [*start.specs, *self.slices])
        return after

    def _step(self, start: Operands, values: list[Any]) -> tuple[Any, Any]:
        count = len(start.nodes)
        return self.step(start.filled(values[:count]), values[count:])

    def _like(self, start: Operands, after: Any) -> list[Any]:
        leaves, structure = tree.flatten(after)
        if structure != start.structure:
            raise ShapeError(
                locate(
                    f"{self.name}: the body turns a state laid out as {tree.describe(start.structure)} into "
                    f"{tree.describe(structure)}; return the same structure"
                )
            )
        for static, leaf in zip(start.static, leaves, strict=True):
            if static is not None and not promotion.is_scalar(static) and leaf != static:
                raise ShapeError(locate(f"{self.name}: the body turns {static!r} into {leaf!r}; only tensors change"))
        return leaves


def _holding(number: Any, after: Any) -> Any:
    """Return a dtype that holds a Python number and a step's value for it; without steps the number stays."""
    return np.result_type(promotion.scalar_dtype(number, [] if weak.is_weak(after) else [after]), dtype_of(after))


def _cast_number(leaf: Any, spec: TensorSpec) -> Any:
    """Return a Python number of the next state in the dtype of the state; any other leaf as it is."""
    if not weak.is_weak(leaf) or not np.can_cast(dtype_of(leaf), spec.dtype, "safe"):
        return leaf
    return np.asarray(leaf, spec.dtype) if promotion.is_scalar(leaf) else astype(leaf, spec.dtype)


class Tracer:
    """Append nodes of control flow: `graphs.ops.control` calls these methods while a graph is being traced."""

    def switch(self, index: Any, branches: Sequence[Body], operands: tuple[Any, ...]) -> Any:
        """Append a switch node. Raises ShapeError when branches return different structures or specs."""
        arguments = Operands(operands)
        traced = [
            Subgraph(f"branch{i}", lambda values, f=branch: callee(f)(*arguments.filled(values)), arguments.specs)  # type: ignore[misc]
            for i, branch in enumerate(branches)
        ]
        numbers = [
            all(map(weak.is_weak, values)) for values in zip(*(subgraph.values for subgraph in traced), strict=False)
        ]
        _agree(traced)
        graphs, captured = finish_subgraphs(*traced)
        sources = [*nodes_of([reshape(astype(index, np.int64), ())]), *arguments.nodes, *captured]
        parts = emit(switch_op, sources, {"branches": tuple(graphs)}, len(traced[0].outputs))
        weakened = [_weak(result) if number else result for result, number in zip(parts, numbers, strict=True)]
        return tree.unflatten(traced[0].structure, weakened)

    def while_loop(self, condition: Body, body: Body, state: Any, limit: int | None = None) -> Any:
        """Append a while_loop, or with a limit a scan. Raises ShapeError when the body changes structure or specs."""
        condition, body = callee(condition), callee(body)
        start, step = Loop("while_loop", lambda state, _: (body(state), ())).trace(state)
        test = Subgraph("condition", lambda values: condition(start.filled(values)), start.specs)
        if limit is not None:
            return start.filled(bounded_node(start.nodes, test, step, limit)[0])
        return start.filled(while_node(start.nodes, test, step))

    def scan(self, body: Body, state: Any, xs: Any, length: Size, reverse: bool) -> tuple[Any, Any]:
        """Append a scan node. Raises ShapeError when the body changes the structure or specs of the state."""
        sequences = Operands(xs)
        return append_scan(*traced_scan(callee(body), state, sequences), sequences, length, reverse)

    callee = staticmethod(callee)

    def ruled(self, values: Sequence[Any], inputs: Sequence[Any], state: Any, pull: Pull) -> list[Any]:
        """Return the values with a gradient rule that the user wrote; the rule reads the state and the cotangents."""
        if capture.pause_depth() > building().paused:
            return list(values)
        rule = OwnRule(values, len(inputs), state, pull)
        with reading_all():  # where forward has changed an input, the node before the change is its operand
            changed = nodes_of(inputs)
        sources = [*nodes_of(values), *changed, *nodes_of(rule.symbols)]
        return emit(ruled_op, sources, {"count": len(values), "rule": rule}, len(values))


def traced_scan(body: Body, state: Any, sequences: Operands) -> tuple[Operands, Subgraph]:
    """Return the state at the start of a scan, and its traced body. Raises ShapeError as `Tracer.scan` does."""
    slices = [TensorSpec(spec.shape[1:], spec.dtype) for spec in sequences.specs]
    return Loop("scan", lambda state, x: body(state, sequences.filled(x)), slices).trace(state)


def append_scan(start: Operands, step: Subgraph, sequences: Operands, length: Size, reverse: bool) -> tuple[Any, Any]:
    """Append the scan node of a traced body. Returns the state after it, and its ys."""
    parts = scan_node(start.nodes, sequences.nodes, step, length, reverse)
    after, ys = tree.unflatten(step.structure, parts)
    return start.filled(after), ys


Pull = Callable[..., Sequence[Any]]


class OwnRule:
    """A gradient rule that the user wrote, and the container `state` that the rule reads.

    `pull(state, cotangents, zeros)` returns the gradients of the inputs. `cotangents` has one entry for each value,
    None where no cotangent has arrived; `zeros(spec)` makes a zero cotangent. The `symbols` of the state are operands
    of the node, so that the rule can run in another graph. A leaf of the state that is one of the values is read from
    the node's result.
    """

    def __init__(self, values: Sequence[Any], inputs: int, state: Any, pull: Pull) -> None:
        self.values, self.inputs, self.pull = len(values), inputs, pull
        numbers = {id(value): number for number, value in enumerate(values)}
        self._leaves, self._structure = tree.flatten(state)
        self._results = [numbers.get(id(leaf)) for leaf in self._leaves]
        self.symbols = [
            leaf for leaf, n in zip(self._leaves, self._results, strict=True) if isinstance(leaf, Symbol) and n is None
        ]

    def __call__(self, operands: Sequence[Symbol], out: Symbol, cotangents: Mapping[int, Any]) -> Sequence[Any]:
        """Return the gradients of the inputs, for the cotangents of the values by number."""
        held = iter(operands[self.values + self.inputs :])
        leaves = [
            part_of(out, n) if n is not None else next(held) if isinstance(leaf, Symbol) else leaf
            for leaf, n in zip(self._leaves, self._results, strict=True)
        ]
        reaching = [
            of_kind(cotangents[n], is_tensor=True) if cotangents.get(n) is not None else None
            for n in range(self.values)
        ]
        return self.pull(tree.unflatten(self._structure, leaves), reaching, self._zeros)

    @staticmethod
    def _zeros(spec: TensorSpec) -> Symbol:
        return of_kind(zeros(spec.shape, spec.dtype), is_tensor=True)


def _agree(branches: Sequence[Subgraph]) -> None:
    """Raise ShapeError unless all branches return the same; a Python number takes the dtype that the others return."""
    first = branches[0]
    for branch in branches:
        if branch.structure != first.structure:
            raise ShapeError(
                locate(f"switch: branches return {first.structure} and {branch.structure}; return the same from each")
            )
    for i, values in enumerate(zip(*(branch.values for branch in branches), strict=True)):
        common = np.result_type(*map(dtype_of, values)) if all(map(weak.is_weak, values)) else None
        for branch in branches:
            if promotion.is_scalar(branch.values[i]):
                number = (
                    np.asarray(branch.values[i], common)
                    if common
                    else promotion.weak_to_array(branch.values[i], values)
                )
                branch.outputs[i] = branch.builder.constant(number)
    for branch in branches:
        if branch.specs != first.specs:
            raise ShapeError(locate(f"switch: branches return {first.specs} and {branch.specs}; make them the same"))


def _tracer(*deciding: Any) -> Tracer | None:
    """Return a Tracer while a graph is made and a deciding value is a symbol (or there is none), else None."""
    if current() is None or (deciding and not any(isinstance(value, Symbol) for value in deciding)):
        return None
    return Tracer()


dispatch.trace_control(_tracer)


def choice(test: Any, then: Any, otherwise: Any) -> Any:
    """Return `then` where a bool scalar holds, else `otherwise`: a switch for two floats of one spec, else `where`."""
    if is_scalar(then) or is_scalar(otherwise):
        return where(test, then, otherwise)
    then_node, else_node = nodes_of([then, otherwise])
    is_constant = then_node.is_constant and else_node.is_constant
    if is_constant or not then_node.spec.is_float or then_node.spec != else_node.spec:
        return where(test, then, otherwise)
    branches = _returning(1, [then_node.spec, else_node.spec]), _returning(0, [then_node.spec, else_node.spec])
    return emit(switch_op, [*nodes_of([astype(test, np.int64)]), then_node, else_node], {"branches": branches}, 1)[0]


def _returning(number: int, specs: Sequence[TensorSpec]) -> Graph:
    builder = Builder(CHOICE)
    inputs = [builder.input(f"arg{i}", spec) for i, spec in enumerate(specs)]
    return builder.finish([inputs[number]])


def choice_test(index: Symbol) -> Any:
    """Return the bool test of a choice, computed from the index of its switch."""
    return astype(index, np.bool_)
