"""Gradients as part of a graph: the shared rules run on symbols, and so append the backward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphs import reverse, tree
from graphs.builder import Builder
from graphs.errors import NotDifferentiableError, located
from graphs.ir import GradientLine, Node
from graphs.op import Attrs, Op
from graphs.ops.creation import zeros_like
from graphs.ops.movement import identity
from graphs.ops.shapes import dtype_of
from graphs.pullback import pullback
from graphs.transforms import Function, Pull
from static import clock
from static.trace.converting import callee
from static.trace.symbol import Symbol
from static.trace.tracing import current, node_of, reading_all


def recorded(f: Function, args: Sequence[Any], positions: Sequence[int]) -> tuple[Any, Pull]:
    """Trace `f(*args)`; its outputs, and what pulls cotangents back to the arguments in `positions`.

    What `graphs.transforms` is made of.
    """
    builder = _builder()
    called, structures, variables = list(args), [], []
    for position in positions:
        leaves, structure = tree.flatten(args[position])
        symbols = [_variable(builder, leaf) for leaf in leaves]
        called[position] = tree.unflatten(structure, list(symbols))
        structures.append(structure)
        variables += symbols
    with recording(builder, variables) as pullback:
        outputs = callee(f)(*called)
    results = tree.leaves(outputs)

    def pull(cotangents: Mapping[int, Any]) -> tuple[Any, ...]:
        with reading_all():
            seeds = [_seed(results[i], g) for i, g in cotangents.items()]
            found = pullback([results[i] for i in cotangents], seeds)
        rest = iter([zeros_like(v) if g is None else g for v, g in zip(variables, found, strict=True)])
        return tuple([tree.unflatten(s, [next(rest) for _ in range(s.num_leaves)]) for s in structures])

    return outputs, pull


def _builder() -> Builder:
    builder = current()
    if builder is None:
        raise NotDifferentiableError(located("a pullback was used after its trace had ended; call it inside the trace"))
    return builder


def _variable(builder: Builder, leaf: Any) -> Symbol:
    """What stands for a leaf while it is differentiated: apart from every other use of the same value."""
    node = builder.append(identity, [node_of(builder, leaf, ())], {})
    check_floating(node.spec.dtype)
    return Symbol(builder, node)


def check_floating(dtype: np.dtype[Any]) -> None:
    """Raise NotDifferentiableError unless values of this dtype have gradients."""
    if dtype.kind != "f":
        raise NotDifferentiableError(located(f"gradient with respect to {dtype} values; convert them to a float"))


def _seed(output: Any, cotangent: Any) -> Symbol:
    """A cotangent as a symbol, so that what the rules do with it is appended; None is the 1 of a scalar."""
    builder = _builder()
    value = np.ones((), dtype_of(output)) if cotangent is None else cotangent
    return Symbol(builder, node_of(builder, value, ()))


Known = Mapping[Node, Node]
Backward = Callable[..., list[Any]]


@contextlib.contextmanager
def recording(builder: Builder, variables: Sequence[Symbol]) -> Iterator[Backward]:
    """Give `pullback(outputs, cotangents)` for what the block appends: a cotangent, or None, for each variable.

    A third argument says which nodes need not be computed for it, since others hold their values.
    Loops traced inside the block keep what their gradient needs.
    """
    start = len(builder.nodes)
    builder.saving += 1
    try:
        yield lambda outputs, given, known=_NOTHING: pull_back(builder, start, variables, outputs, given, known)
    finally:
        builder.saving -= 1


_NOTHING: Known = MappingProxyType({})


def pull_back(
    builder: Builder,
    start: int,
    variables: Sequence[Symbol],
    outputs: Sequence[Any],
    given: Sequence[Any],
    known: Known = _NOTHING,
) -> list[Any]:
    """The cotangent, or None, of each variable, through the nodes of the builder from number `start` on.

    Rules read the values of nodes that are `known` from those nodes.
    """
    with clock.phase("differentiate"):
        return _pulled_back(builder, start, variables, outputs, given, known)


def _pulled_back(
    builder: Builder,
    start: int,
    variables: Sequence[Symbol],
    outputs: Sequence[Any],
    given: Sequence[Any],
    known: Known,
) -> list[Any]:
    sources = {v.node for v in variables}
    active = _active(builder.nodes[start:], sources)
    cotangents: dict[Node, Any] = {}
    for output, cotangent in zip(outputs, given, strict=True):
        if isinstance(output, Symbol) and output.node in active and cotangent is not None:
            held = cotangents.get(output.node)
            cotangents[output.node] = cotangent if held is None else reverse.total(held, cotangent)
    recorded = [node for node in builder.nodes[start:] if node in active and node not in sources]
    here = _builder()  # the graph itself, or the body of a loop in it
    line = here.line
    try:
        reverse.accumulate(reversed(recorded), cotangents, lambda node, g: _pull(builder, active, known, node, g))
    finally:
        here.line = line
    return [cotangents.get(v.node) for v in variables]


def _active(nodes: Sequence[Node], sources: set[Node]) -> set[Node]:
    """The nodes a tape would record: floats computed from a source through an input that has a rule."""
    active = set(sources)
    for node in nodes:
        if node.spec.is_float and any(s in active and _has_rule(node, i) for i, s in enumerate(node.inputs)):
            active.add(node)
    return active


def _has_rule(node: Node, index: int) -> bool:
    return node.op in joint_rules or node.op.rule(index) is not None


def _pull(builder: Builder, active: set[Node], known: Known, node: Node, cotangent: Any) -> Iterator[tuple[Node, Any]]:
    _builder().line = GradientLine(node.source)  # the gradient of a line is put down to that line
    *inputs, out = [Symbol(builder, known.get(one, one)) for one in (*node.inputs, node)]
    if node.op in joint_rules:
        call = OpCall(node.attrs, inputs, out, cotangent, [source in active for source in node.inputs])
        found = joint_rules[node.op](call)
        return ((s, g) for s, g in zip(node.inputs, found, strict=True) if s in active and g is not None)
    wanted = sum(1 << i for i, s in enumerate(node.inputs) if s in active and node.op.rule(i) is not None)
    rules = pullback(node.op, wanted, len(inputs))
    return rules.pull(node.inputs, [*rules.save(inputs, out, node.attrs), cotangent])


class OpCall(NamedTuple):
    """A call of an op, with its cotangent (that of its parts, where it has several), and which inputs want one."""

    attrs: Attrs
    inputs: list[Symbol]
    out: Symbol
    cotangents: Any
    wanted: list[bool]


# Ops with one rule for all inputs, which gives a cotangent, or None, for each: those that hold subgraphs
# (`static/trace/control_gradients.py`), and concat (`static/trace/concat_gradient.py`).
JointRule = Callable[[OpCall], Iterable[Any]]
joint_rules: dict[Op, JointRule] = {}
