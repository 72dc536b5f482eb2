"""Changes in place while a function is traced: the memory gets a new value, which all its views show.

`z[1] += 1` changes `z[1]`, a view. Its new value is written back through the view (`_WRITE_BACK`), which gives the new
value of the memory. `static/trace/views.py` says what other names of that memory stand for from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import capture
from graphs.builder import Builder
from graphs.errors import ControlFlowError, DTypeError, GraphError, locate
from graphs.ir import Node
from graphs.op import RuleTable
from graphs.ops.control import ruled_op
from graphs.ops.indexing import setitem, take
from graphs.ops.movement import astype, flip, identity, permute_dims, reshape, stop_gradient
from graphs.ops.slicing import getitem
from graphs.ops.slicing import setitem as set_slice
from static.trace.control import OwnRule, emit
from static.trace.symbol import Symbol, overwriters
from static.trace.tracing import current, forbidden, memory
from static.trace.views import chain, is_doubtful, picks_one, present


def change(symbol: Symbol, result: Any) -> bool:
    """Change the memory of a symbol to the value of a result; return True.

    Raises GraphError where the change would be seen outside the graph, and for a result of another shape or kind.
    """
    builder = current()
    if builder is None or symbol.builder is not builder or not isinstance(result, Symbol):
        rule = "a value is changed in place in another graph than its own"
        raise GraphError(locate(f"{rule}; use a new value, or leave inplace=True out"))
    node = present(builder, symbol.node)
    if memory(node).is_source:
        rule = "an argument is changed in place, which a graph cannot"
        raise ControlFlowError(locate(f"{rule}; use a new value, as in x = x + 1, or leave inplace=True out"))
    result = fit_dtype(result, symbol)
    if not _write_back(builder, symbol, node, result):
        _forbid(builder, memory(node))
        symbol.node = _own_memory(builder, result.node)
    return True


overwriters.append(change)


def fit_dtype(result: Any, symbol: Symbol) -> Any:
    """Return a result in the dtype of the symbol that is changed to it.

    Raises GraphError where its shape is another, and DTypeError where its kind is.
    """
    have, want = result.node.spec, symbol.node.spec
    if have.shape != want.shape:
        raise GraphError(locate(f"{want} cannot hold {have}; leave inplace=True out"))
    if have.dtype == want.dtype:
        return result
    is_whole = have.dtype.kind in "iu" and want.dtype.kind in "iu"
    if not is_whole and not np.can_cast(have.dtype, want.dtype, "same_kind"):
        raise DTypeError(
            locate(f"in-place change of {want.dtype} values to {have.dtype}; convert the tensor with astype first")
        )
    return astype(result, want.dtype)


def _forbid(builder: Builder, owner: Node) -> None:
    """Forbid every read of memory, and of its views, whose value after a change is not known."""
    rule = "memory that was changed in place is read under another name"
    forbidden()[owner] = GraphError(locate(f"{rule}; read it anew, or leave inplace=True out"))
    builder.overwritten.append(owner)


def _own_memory(builder: Builder, node: Node) -> Node:
    """Return a node with the same value in memory of its own."""
    copy = builder.append(identity, [node], {})
    builder.copies.add(copy)
    return copy


# Written back through a view ------------------------------------------------------------------------------------------


def _write_back(builder: Builder, symbol: Symbol, node: Node, result: Symbol) -> bool:
    """Give the memory of a symbol its new value; False where a view on the way cannot be written through.

    `node` is the present node of the symbol. What is changed under `no_grad` keeps the history that it had.
    """
    steps, owner = chain(builder, node)
    is_paused = capture.pause_depth() > builder.paused
    is_detached = any(map(_is_cut, steps))
    if is_detached and (_has_history(result.node) or (not is_paused and _has_history(owner))):
        return False  # the value would have a history under this name alone, or ops that read it before, another value
    value: Any = result
    for step in steps:
        if is_doubtful(builder, step):
            return False
        value = _write_through(step, Symbol(builder, step.inputs[0]), value)
        if value is None:
            return False
    new = _own_memory(builder, value.node)
    if (is_detached or is_paused) and owner.spec.is_float and _has_history(owner):
        new = _with_history(builder, new, owner)
    if owner in builder.tensors:
        builder.tensors.add(new)
    builder.present[owner] = new
    symbol.node = present(builder, node)
    return True


def _write_through(view: Node, base: Symbol, value: Any) -> Any:
    """Return a base with a value where a view shows it, None where that is not known."""
    return _WRITE_BACK[view.op](view, base, value)


_WRITE_BACK: RuleTable[Callable[[Node, Symbol, Any], Any]] = RuleTable("writing back", otherwise=lambda *_: None)
_WRITE_BACK.enter(
    {
        getitem: lambda view, base, value: set_slice(base, value, view.attrs["key"]),
        reshape: lambda _, base, value: reshape(value, base.shape),
        permute_dims: lambda view, _, value: permute_dims(value, np.argsort(view.attrs["axes"]).tolist()),
        flip: lambda view, _, value: flip(value, view.attrs["axis"]),
    }
)
_WRITE_BACK.enter(dict.fromkeys((identity, stop_gradient), lambda *values: values[-1]))


@_WRITE_BACK.for_op(take)
def _write_picked(view: Node, base: Symbol, value: Any) -> Any:
    if not picks_one(view):
        return None
    return setitem(base, value, (*(slice(None),) * view.attrs["axis"], Symbol(base.builder, view.inputs[1])))


def _is_cut(node: Node) -> bool:
    """Whether a node is a view through which no gradient passes."""
    return node.op.view and not node.op.rules


def _has_history(node: Node) -> bool:
    """Whether a gradient could pass through a node to an input of its graph."""
    waiting, seen = [node], set[Node]()
    while waiting:
        node = waiting.pop()
        if node in seen or not node.spec.is_float or _is_cut(node):
            continue
        seen.add(node)
        if node.is_input:
            return True
        waiting += node.inputs
    return False


def _with_history(builder: Builder, value: Node, history: Node) -> Node:
    """Return a node with a value, whose gradient passes to another node as it is."""
    rule = OwnRule([Symbol(builder, value)], 1, {}, lambda _, cotangents, __: cotangents)
    (new,) = emit(ruled_op, [value, history], {"count": 1, "rule": rule}, 1)
    node: Node = new.node
    return node
