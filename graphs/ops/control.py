"""Control flow: ordinary Python in the dynamic engine, ops that hold subgraphs while a graph is traced.

The functions (`cond`, `switch`, `while_loop`, `scan`, `fori_loop`) are what a model calls. In the dynamic engine, and
on arrays, the same call just runs. In a trace it becomes one node whose attributes are the graphs of its branches or
body; values of the enclosing function that these read become inputs of the node. The ops follow below the functions.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dims, dispatch, tree
from graphs.dims import Dim, Size
from graphs.errors import ShapeError, locate
from graphs.ir import Graph, graph_cost
from graphs.op import Array, Op, PartCotangents
from graphs.ops.movement import astype, stack
from graphs.ops.shapes import shape_of
from graphs.spec import TensorSpec, TupleSpec

__all__ = ["cond", "fori_loop", "scan", "switch", "while_loop"]

Tree = Any
Body = Callable[..., Any]


def cond(predicate: Array, true: Body, false: Body, *operands: Tree) -> Tree:
    """`true(*operands)` if the predicate holds, else `false(*operands)`; only one of them runs.

    The predicate is one bool. In a trace both branches must return the same structure and specs.
    """
    _check_single("cond", predicate)
    tracer = dispatch.tracer(predicate)
    if tracer is None:
        return (true if bool(predicate) else false)(*operands)
    return tracer.switch(astype(predicate, np.bool_), (false, true), operands)


def switch(index: Array, branches: Sequence[Body], *operands: Tree) -> Tree:
    """`branches[index](*operands)`; an index out of range is clamped to the first or last branch."""
    if not branches:
        raise ShapeError(locate("switch: needs at least one branch"))
    _check_single("switch", index)
    tracer = dispatch.tracer(index)
    if tracer is None:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    return tracer.switch(index, tuple(branches), operands)


def _check_single(name: str, deciding: Array) -> None:
    if not dims.same(dims.product(shape_of(deciding)), 1):
        raise ShapeError(locate(f"{name}: one number decides, not {shape_of(deciding)} of them; reduce it (any, all)"))


def while_loop(condition: Body, body: Body, state: Tree, limit: int | None = None) -> Tree:
    """`state = body(state)` for as long as `condition(state)` holds, but at most `limit` times; returns the last state.

    In a trace `body` must keep the structure and the specs of the state; a Python number in it that one step turns
    into an array becomes an array of that dtype. Differentiable in reverse: a graph that is differentiated keeps the
    state of every iteration, in storage that grows, and its gradient has no gradient. With a `limit` a traced loop is a
    scan of `limit` steps, differentiable to any order: a step after the end only keeps the state, and the gradient has
    room for `limit` states. Raises ValueError for a negative limit.
    """
    if limit is not None and operator.index(limit) < 0:
        raise ValueError(f"while_loop: the limit is {limit}; give the number of turns that are allowed, 0 or more")
    tracer = dispatch.tracer()
    if tracer is not None:
        return tracer.while_loop(condition, body, state, limit)
    turns = itertools.count() if limit is None else range(limit)
    for _ in turns:
        if not bool(condition(state)):
            break
        state = body(state)
    return state


def scan(
    body: Body, state: Tree, xs: Tree = None, length: Size | None = None, reverse: bool = False
) -> tuple[Tree, Tree]:
    """`state, y = body(state, x)` for each x along the first axis of `xs`; returns the last state and all y, stacked.

    `length` is needed when `xs` is None. With `reverse` the last x comes first, and the y keep the order of the x. In a
    trace `body` must keep the structure and specs of the state; a Python number in it that one step turns into an array
    becomes an array of that dtype. The loop is one node for any length, also a symbolic one. The gradient keeps the
    state of every step, and computes other values from inside a step again. Raises ShapeError when the first axes of
    `xs` differ.
    """
    steps = scan_length(xs, length)
    tracer = dispatch.tracer()
    if tracer is not None:
        return tracer.scan(lambda state, x: _pair(body(state, x)), state, xs, steps, reverse)
    ys: list[Any] = []
    count = operator.index(steps)
    for t in reversed(range(count)) if reverse else range(count):
        state, y = _pair(body(state, tree.tree_map(lambda x, t=t: x[t], xs)))
        ys.append(y)
    if not ys:
        raise ShapeError(locate("scan: over nothing the results have no shape; give at least one step"))
    return state, tree.tree_map(lambda *parts: stack(parts), *(reversed(ys) if reverse else ys))


def _pair(result: Any) -> Any:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise ShapeError(locate(f"scan: the body returns {type(result).__name__}; return a pair, the state and y"))
    return result


def fori_loop(lower: Size | Array, upper: Size | Array, body: Body, state: Tree) -> Tree:
    """`state = body(i, state)` for i from `lower` to `upper - 1`; returns the last state.

    In a trace this is a scan, and a while_loop when a bound is computed by the graph itself.
    """
    if dispatch.tracer() is None:
        for i in range(operator.index(lower), operator.index(upper)):
            state = body(i, state)
        return state
    if dispatch.tracer(lower, upper) is not None:
        return while_loop(lambda s: s[0] < upper, lambda s: (s[0] + 1, body(*s)), (lower, state))[1]
    first, last = (b if isinstance(b, Dim) else operator.index(b) for b in (lower, upper))
    length = dims.maximum(last - first, 0)
    return scan(lambda s, _: ((s[0] + 1, body(*s)), ()), (first, state), length=length)[0][1]


def scan_length(xs: Tree, length: Size | None) -> Size:
    """The number of steps, the same for every leaf of `xs`. Raises ShapeError when sizes differ or none is known."""
    leaves = tree.leaves(xs)
    _check_length(length)
    if not all(shape_of(leaf) for leaf in leaves):
        raise ShapeError(locate("scan: a 0-d x has no first axis to go along; expand_dims it, or close over it"))
    sizes = [shape_of(leaf)[0] for leaf in leaves] + ([] if length is None else [length])
    if not sizes:
        raise ShapeError(locate("scan: without xs the number of steps is unknown; give length"))
    if not all(dims.same(size, sizes[0]) for size in sizes):
        raise ShapeError(locate(f"scan: the first axes of xs, and length, differ: {', '.join(map(str, sizes))}"))
    return sizes[0]


def _check_length(length: Any) -> None:
    if length is not None and not isinstance(length, (Dim, int, np.integer)):
        kind = type(length).__name__
        raise ShapeError(locate(f"scan: the length is a size, not a {kind}; with a computed number use while_loop"))


# The ops. Each computes several tensors, and `part` picks one; `static/trace/control.py` makes nodes of them. -------


def _infer_part(x: TensorSpec, *, number: int) -> TensorSpec:
    if not isinstance(x, TupleSpec) or not 0 <= number < len(x.items):
        raise ShapeError(f"there is no part {number}")
    return x.items[number]


part: Op = Op(
    "part",
    lambda x, *, number, out=None: x[number],
    _infer_part,
    rules=(lambda g, number: PartCotangents({number: g}),),
    prepare=lambda x, /, number: ((x,), {"number": number}),
    cost=0,
    family="control",
    view=True,
    doc="One of the tensors that a control-flow op computed.",
)


def _infer_ruled(*specs: TensorSpec, count: int, **_: Any) -> TensorSpec:
    return TupleSpec(specs[:count])


ruled_op: Op = Op(
    "ruled",
    lambda *values, count, **_: values[:count],
    _infer_ruled,
    cost=0,
    family="control",
    arity=None,
    rule_fails=True,
    listed=False,
    doc="The first `count` operands, with a gradient rule of the user's own: it pulls back to the next `inputs`.",
)


def outputs_of(graph: Graph) -> tuple[TensorSpec, ...]:
    """The specs of the outputs of a subgraph."""
    return tuple(output.spec for output in graph.outputs)


def _check_inputs(graph: Graph, specs: Sequence[TensorSpec]) -> None:
    wanted = [node.spec for node in graph.inputs]
    if list(specs) != wanted:
        raise ShapeError(f"the subgraph {graph.name} takes {wanted}, and is given {list(specs)}")


def _check_counts(specs: Sequence[TensorSpec], *counts: Any) -> None:
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) > len(specs):
        raise ShapeError(
            f"{counts} of {len(specs)} operands; numbers of operands are 0 or more, and no more than these"
        )


def _check_flags(*flags: Any) -> None:
    if any(type(flag) is not bool for flag in flags):
        raise ShapeError(f"options are True or False, not {flags}; make them bools")


def _infer_switch(index: TensorSpec, *operands: TensorSpec, branches: tuple[Graph, ...]) -> TensorSpec:
    if isinstance(index, TupleSpec) or not dims.same(index.size, 1):
        raise ShapeError(f"one number decides, not {index}; reduce it (any, all)")
    for branch in branches:
        _check_inputs(branch, operands)
        if outputs_of(branch) != outputs_of(branches[0]):
            raise ShapeError(f"branches return {outputs_of(branches[0])} and {outputs_of(branch)}; make them the same")
    return TupleSpec(outputs_of(branches[0]))


def _switch(index: Array, *operands: Array, branches: Sequence[Body]) -> Any:
    """Run one of several subgraphs; the cost is that of the most expensive one."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def _switch_cost(index: TensorSpec, *_: TensorSpec, out: TensorSpec, branches: tuple[Graph, ...]) -> Size:
    return functools.reduce(dims.maximum, map(_graph_flops, branches))


def _graph_flops(graph: Graph) -> Size:
    return graph_cost(graph).flops


switch_op: Op = Op(
    "switch",
    _switch,
    _infer_switch,
    prepare=lambda *args, **attrs: (args, attrs),
    cost=_switch_cost,
    family="control",
)


def _infer_while(*specs: TensorSpec, condition: Graph, body: Graph, carry: int, save: bool) -> TensorSpec:
    _check_counts(specs, carry)
    _check_flags(save)
    _check_inputs(condition, specs)
    _check_inputs(body, specs)
    state = specs[:carry]
    if outputs_of(body) != state:
        raise ShapeError(f"the body turns a state of {state} into {outputs_of(body)}; keep shapes and dtypes")
    if outputs_of(condition) != (TensorSpec((), bool),):
        raise ShapeError(f"the condition returns {outputs_of(condition)}; return one bool")
    return TupleSpec((*state, TupleSpec(state)) if save else state)


def _own(state: Sequence[Any]) -> tuple[Array, ...]:
    """Copy the initial state: the results of a loop, even of one without steps, outlive its operands' buffers."""
    return tuple([np.array(value) for value in state])


def _while(*values: Array, condition: Body, body: Body, carry: int, save: bool) -> Any:
    """Run a subgraph for as long as another returns true; the cost is that of one iteration."""
    state, outer = _own(values[:carry]), values[carry:]
    history = []
    while condition(*state, *outer)[0]:
        if save:
            history.append(state)
        state = tuple(body(*state, *outer))
    return (*state, history) if save else state


while_op: Op = Op(
    "while_loop",
    _while,
    _infer_while,
    prepare=lambda *args, **attrs: (args, attrs),
    cost=lambda *specs, out, condition, body, carry, save: _graph_flops(condition) + _graph_flops(body),
    family="control",
)


def _infer_while_gradient(
    history: TensorSpec, *specs: TensorSpec, step: Graph, carry: int, reverse: bool
) -> TensorSpec:
    if not isinstance(history, TupleSpec):
        raise ShapeError(f"goes through the states that a while_loop has saved, not {history}")
    _check_counts(specs, carry)
    _check_flags(reverse)
    _check_inputs(step, [*specs[:carry], *history.items, *specs[carry:]])
    if outputs_of(step) != specs[:carry]:
        raise ShapeError(f"a step turns cotangents of {specs[:carry]} into {outputs_of(step)}")
    return TupleSpec(outputs_of(step))


def _while_gradient(history: Sequence[Any], *values: Array, step: Body, carry: int, reverse: bool) -> Any:
    """`values` are the cotangents of the state, zeros for the cotangents of outer values, and the outer values."""
    cotangents, outer = _own(values[:carry]), values[carry:]
    for state in reversed(history) if reverse else history:
        cotangents = tuple(step(*cotangents, *state, *outer))
    return cotangents


while_gradient_op: Op = Op(
    "while_loop_gradient",
    _while_gradient,
    _infer_while_gradient,
    prepare=lambda *args, **attrs: (args, attrs),
    cost=lambda history, *specs, out, step, carry, reverse: _graph_flops(step),
    family="control",
    doc="Carries cotangents through the iterations of a while_loop, the last first; the transpose of that if not.",
)


def _infer_scan(
    *specs: TensorSpec, body: Graph, carry: int, xs: int, length: Size, reverse: bool, save: bool, rows: Any
) -> TensorSpec:
    _check_counts(specs, carry, xs)
    _check_flags(reverse, save)
    if not isinstance(length, Dim) and (type(length) is not int or length < 0):
        raise ShapeError(f"the length is 0 or more, not {length!r}; count the steps")
    state, outer = specs[:carry], specs[carry + xs :]
    if not all(spec.ndim and dims.same(spec.shape[0], length) for spec in specs[carry : carry + xs]):
        raise ShapeError(f"goes along {length} elements of each x, not along {specs[carry : carry + xs]}; slice them")
    slices = [TensorSpec(spec.shape[1:], spec.dtype) for spec in specs[carry : carry + xs]]
    _check_inputs(body, [*state, *slices, *outer])
    if outputs_of(body)[:carry] != state:
        raise ShapeError(f"the body turns a state of {state} into {outputs_of(body)[:carry]}; keep shapes and dtypes")
    if rows != stacked_specs(body, carry, length, save):
        raise ShapeError(f"the body stacks {stacked_specs(body, carry, length, save)}, not {rows}")
    return TupleSpec((*state, *rows))


def stacked_specs(body: Graph, carry: int, length: Size, save: bool) -> tuple[TensorSpec, ...]:
    """The specs of the arrays that a scan stacks: the y of each step and, when it saves, the state before each step."""
    each = [*outputs_of(body)[carry:], *(outputs_of(body)[:carry] if save else ())]
    return tuple(TensorSpec((length, *spec.shape), spec.dtype) for spec in each)


def _scan(
    *values: Array, body: Body, carry: int, xs: int, length: int, reverse: bool, save: bool, rows: Sequence[TensorSpec],
    out: Sequence[Array | None] | None = None,
) -> Any:  # fmt: skip
    """Run a subgraph once for each element along the first axis of its inputs.

    `out` gives the arrays to stack into, with None for each array that shall be allocated.
    """
    state, sequences, outer = _own(values[:carry]), values[carry : carry + xs], values[carry + xs :]
    buffers = out or [None] * len(rows)
    stacks = [np.empty(r.shape, r.dtype) if array is None else array for r, array in zip(rows, buffers, strict=True)]
    saved = stacks[len(stacks) - carry :] if save else []
    for t in reversed(range(length)) if reverse else range(length):
        for stacked_states, value in zip(saved, state, strict=False):
            stacked_states[t] = value
        results = body(*state, *[x[t] for x in sequences], *outer)
        state = tuple(results[:carry])
        for stacked_ys, value in zip(stacks, results[carry:], strict=False):
            stacked_ys[t] = value
    return (*state, *stacks)


scan_op: Op = Op(
    "scan",
    _scan,
    _infer_scan,
    prepare=lambda *args, **attrs: (args, attrs),
    cost=lambda *specs, out, body, length, **_: _graph_flops(body) * length,
    family="control",
)
