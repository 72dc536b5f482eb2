"""Gradients as part of a graph: the shared rules run on symbols, and so append the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphs import reverse, tree
from graphs.builder import Builder
from graphs.errors import NotDifferentiableError, located
from graphs.ir import Node
from graphs.ops.creation import zeros_like
from graphs.ops.movement import identity
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
        start = len(builder.nodes)
        for position in positions:
            leaves, structure = tree.flatten(args[position])
            symbols = [_variable(builder, leaf) for leaf in leaves]
            called[position] = tree.unflatten(structure, list(symbols))
            variables.append((structure, symbols))
        output = f(*called)
        flat = _gradients(builder, start, output, [s for _, symbols in variables for s in symbols])
        grouped = _regrouped(variables, flat)
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


def _gradients(builder: Builder, start: int, output: Any, variables: list[Symbol]) -> list[Symbol]:
    """The cotangents of the variables, appended to the graph; zeros where the output does not depend on one."""
    reverse.check_seed(output, None)
    active = _active(builder.nodes[start:], variables)
    cotangents: dict[Node, Any] = {}
    if isinstance(output, Symbol) and output.node in active:
        cotangents[output.node] = Symbol(builder, builder.constant(np.ones((), output.dtype)))
    sources = {v.node for v in variables}
    recorded = [node for node in builder.nodes[start:] if node in active and node not in sources]
    reverse.accumulate(reversed(recorded), cotangents, lambda node, g: _pull(builder, active, node, g))
    return [_found(builder, v, cotangents.get(v.node)) for v in variables]


def _active(nodes: Sequence[Node], variables: list[Symbol]) -> set[Node]:
    """The nodes a tape would record: floats computed from a variable through an input that has a rule."""
    active = {v.node for v in variables}
    for node in nodes:
        if node.spec.dtype.kind == "f" and any(s in active and node.op.rule(i) for i, s in enumerate(node.inputs)):
            active.add(node)
    return active


def _pull(builder: Builder, active: set[Node], node: Node, cotangent: Any) -> Iterator[tuple[Node, Any]]:
    inputs = [Symbol(builder, source) for source in node.inputs]
    for index, source in enumerate(node.inputs):
        rule = node.op.rule(index)
        if source not in active or rule is None:
            continue
        contribution = rule.apply(cotangent, *rule.capture(index, inputs, Symbol(builder, node), node.attrs))
        if node.op.broadcasts:
            contribution = reverse.conform(contribution, source.spec.shape, source.spec.dtype)
        yield source, contribution


def _found(builder: Builder, variable: Symbol, cotangent: Any) -> Symbol:
    if cotangent is None:
        cotangent = zeros_like(variable)
    return Symbol(builder, node_of(builder, cotangent, ()))


def _regrouped(variables: list[tuple[tree.Structure, list[Symbol]]], flat: list[Symbol]) -> list[Any]:
    """The flat list of gradients as one container per differentiated argument."""
    rest = iter(flat)
    return [tree.unflatten(structure, [next(rest) for _ in symbols]) for structure, symbols in variables]
