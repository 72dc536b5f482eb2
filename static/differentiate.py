"""Gradients as part of a graph: the shared rules run on symbols, and so append the backward pass."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphs import reverse, tree
from graphs.builder import Builder
from graphs.errors import NotDifferentiableError, located
from graphs.ir import Node
from graphs.op import Attrs, Op
from graphs.ops.creation import zeros_like
from graphs.ops.movement import identity
from graphs.ops.shapes import dtype_of
from static.symbol import Symbol
from static.trace import current, node_of

Argnums = int | Sequence[int]


def grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns the gradient of `f`, a scalar function, in the arguments `argnums`."""
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def gradient(*args: Any) -> Any:
        return both(*args)[1]

    return gradient


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns `(f(...), gradient)`, to be traced: the backward pass is in the graph.

    Called with arrays, outside a trace, it compiles itself for their specs first. The gradient has the structure of
    the argument, or is a tuple of these when `argnums` is a sequence.
    Raises NotDifferentiableError when f does not return one floating point number, or an argument holds ints.
    """
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(f)
    def both(*args: Any) -> Any:
        builder = current()
        if builder is None:
            return compiled()(*args)
        called, variables = list(args), []
        for position in positions:
            leaves, structure = tree.flatten(args[position])
            symbols = [_variable(builder, leaf) for leaf in leaves]
            called[position] = tree.unflatten(structure, list(symbols))
            variables.append((structure, symbols))
        flat = [s for _, symbols in variables for s in symbols]
        with recording(builder, flat) as pullback:
            output = f(*called)
        reverse.check_seed(output, None)
        one = Symbol(builder, builder.constant(np.ones((), dtype_of(output))))
        found = [_or_zeros(v, g) for v, g in zip(flat, pullback([output], [one]), strict=True)]
        grouped = _regrouped(variables, found)
        return output, grouped[0] if isinstance(argnums, int) else tuple(grouped)

    @functools.cache
    def compiled() -> Callable[..., Any]:
        from static.jit import jit

        return jit(both)

    return both


def _variable(builder: Builder, leaf: Any) -> Symbol:
    """What stands for a leaf while it is differentiated: apart from every other use of the same value."""
    node = builder.append(identity, [node_of(builder, leaf, ())], {})
    if node.spec.dtype.kind != "f":
        raise NotDifferentiableError(
            located(f"gradient with respect to {node.spec.dtype} values; convert them to a float")
        )
    return Symbol(builder, node)


Pullback = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


@contextlib.contextmanager
def recording(builder: Builder, variables: Sequence[Symbol]) -> Iterator[Pullback]:
    """Give `pullback(outputs, cotangents)` for what the block appends: a cotangent, or None, for each variable.

    Loops traced inside the block keep what their gradient needs.
    """
    start = len(builder.nodes)
    builder.saving += 1
    try:
        yield lambda outputs, cotangents: _pull_back(builder, start, variables, outputs, cotangents)
    finally:
        builder.saving -= 1


def _pull_back(
    builder: Builder, start: int, variables: Sequence[Symbol], outputs: Sequence[Any], given: Sequence[Any]
) -> list[Any]:
    sources = {v.node for v in variables}
    active = _active(builder.nodes[start:], sources)
    cotangents: dict[Node, Any] = {}
    for output, cotangent in zip(outputs, given, strict=True):
        if isinstance(output, Symbol) and output.node in active and cotangent is not None:
            held = cotangents.get(output.node)
            cotangents[output.node] = cotangent if held is None else reverse.total(held, cotangent)
    recorded = [node for node in builder.nodes[start:] if node in active and node not in sources]
    line = builder.line
    try:
        reverse.accumulate(reversed(recorded), cotangents, lambda node, g: _pull(builder, active, node, g))
    finally:
        builder.line = line
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


def _pull(builder: Builder, active: set[Node], node: Node, cotangent: Any) -> Iterator[tuple[Node, Any]]:
    builder.line = node.source  # the gradient of a line is put down to that line
    inputs = [Symbol(builder, source) for source in node.inputs]
    out = Symbol(builder, node)
    if node.op in joint_rules:
        found = joint_rules[node.op](node.attrs, inputs, out, cotangent)
        yield from ((s, g) for s, g in zip(node.inputs, found, strict=True) if s in active and g is not None)
        return
    for index, source in enumerate(node.inputs):
        rule = node.op.rule(index)
        if source not in active or rule is None:
            continue
        contribution = rule.apply(cotangent, *rule.capture(index, inputs, out, node.attrs))
        if node.op.broadcasts:
            contribution = reverse.conform(contribution, source.spec.shape, source.spec.dtype)
        yield source, contribution


# Ops that hold subgraphs have one rule for all inputs: attributes, inputs, output and the cotangent of its parts give
# a cotangent, or None, for each input. `static/control.py` fills this in.
JointRule = Callable[[Attrs, list[Symbol], Symbol, Any], list[Any]]
joint_rules: dict[Op, JointRule] = {}


def _or_zeros(variable: Symbol, cotangent: Any) -> Any:
    return zeros_like(variable) if cotangent is None else cotangent


def _regrouped(variables: list[tuple[tree.Structure, list[Symbol]]], flat: list[Symbol]) -> list[Any]:
    """The flat list of gradients as one container per differentiated argument."""
    rest = iter(flat)
    return [tree.unflatten(structure, [next(rest) for _ in symbols]) for structure, symbols in variables]
