"""The tape: what is kept of each op that runs on tensors that require gradients.

The tape is no list. Each recorded result points at the entry of the op that made it, and each entry at the entries
of its inputs, so that dropping a result frees what only it needed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamic import inplace, mode, native, shortcuts
from dynamic.entry import Edge, Entry, Leaf
from dynamic.pullback import pullback
from dynamic.tensor import Tensor
from graphs import dispatch, promotion
from graphs.errors import GraphError
from graphs.op import Attrs, Op


def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """Run an op at once, and record it when a gradient will need it: the interpreter for tensors.

    An op that has a shortcut comes here the first time only, and when the shortcut stands aside. Compiled loops do the
    same for all ops, and come here when anything is out of the ordinary.
    """
    return dispatch.by_detours(run)(op, args, attrs) if dispatch.detours else run(op, args, attrs)


def run(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The same where nobody detours ops."""
    arrays, edges, mixed = [], [], False
    for arg in args:
        if type(arg) is not Tensor:
            mixed = True
            break
        arrays.append(arg._data)
        edges.append(arg._edge)
    if mixed:
        values = _lifted(op, args)
        if values is None:
            return _other_interpreter(args)(op, args, attrs)
        arrays = [v._data if type(v) is Tensor else v for v in values]
        edges = [v._edge if type(v) is Tensor else None for v in values]
    data = dispatch.execute(op, arrays, attrs)  # the one place where kernels of tensors run, but for `shortcuts`
    shortcuts.install(op)
    if not op.rules or not mode.now().recording or data.dtype.kind != "f" or not any(edges):
        return wrap(data)
    return wrap(data, _entry(op, args, arrays, edges, data, attrs))


def _lifted(op: Op, args: Sequence[Any]) -> list[Any] | None:
    """The arguments with scalars and lists as arrays; None when another interpreter must see them."""
    result = []
    for arg in args:
        if type(arg) is not Tensor and type(arg) is not np.ndarray:
            if dispatch.interpreter_of(arg) is not None:
                return None
            try:
                arg = promotion.typed(arg, args)
            except GraphError as error:
                raise dispatch.explained(op, args, error) from None
        result.append(arg)
    return result


def _other_interpreter(args: Sequence[Any]) -> dispatch.Interpreter:
    found = (dispatch.interpreter_of(a) for a in args if type(a) is not Tensor)
    return next(i for i in found if i is not None)


def _entry(
    op: Op, args: Sequence[Any], arrays: Sequence[Any], edges: list[Edge], data: Any, attrs: Attrs
) -> Entry | None:
    """The entry of an op that has just run, with exactly what its rules name; None when no gradient flows."""
    wanted = 0
    for i, edge in enumerate(edges):
        if edge is None:
            continue
        if edge.sequence < inplace.clock.rewritten:
            inplace.check_view(args[i])
        if (op.rules[i] if op.arity is not None else op.rules[0]) is None:
            edges[i] = None
        else:
            wanted |= 1 << i
    if not wanted:
        return None
    entry = Entry()
    entry.pullback = pullback(op, wanted, len(edges), _ndims(op, args, arrays))
    entry.attrs = attrs
    entry.edges = tuple(edges)
    entry.saved = entry.pullback.save(arrays, data, attrs)
    entry.shape = data.shape
    entry.dtype = data.dtype
    entry.sequence = inplace.clock.tick()
    entry.hooks = None
    return entry


def _ndims(op: Op, args: Sequence[Any], arrays: Sequence[Any]) -> tuple[int | None, ...] | None:
    """The number of axes of each input, None for a Python number; None where nothing hangs on it."""
    if op.family != "elementwise":
        return tuple([None if promotion.is_scalar(a) else v.ndim for a, v in zip(args, arrays, strict=True)])
    if all(type(a) is Tensor for a in args):
        return None
    # Whether there is an axis is all that counts, and fewer kinds of pullbacks are fewer to compile.
    return tuple([None if promotion.is_scalar(a) else min(v.ndim, 1) for a, v in zip(args, arrays, strict=True)])


def wrap(data: np.ndarray[Any, Any], edge: Edge = None) -> Tensor:
    """A tensor around an array, without a copy or a check."""
    tensor: Tensor = _new(Tensor)
    tensor._data = data
    tensor._edge = edge
    tensor.grad = None
    return tensor


_new = object.__new__


class History(NamedTuple):
    """What led to some tensors: entries, the latest last, and leaves."""

    entries: list[Entry]
    leaves: set[Leaf]


def history(roots: Iterable[Edge]) -> History:
    """Every entry and leaf that led to the roots. Iterative: a tape may be deeper than the stack."""
    if native.loops is not None:
        return History(*native.loops.history(roots))
    entries: list[Entry] = []
    leaves: set[Leaf] = set()
    seen: set[Edge] = {None}
    pending: list[Iterable[Edge]] = [roots]
    for edges in pending:  # which grows meanwhile
        for edge in edges:
            if edge not in seen:
                seen.add(edge)
                if type(edge) is Entry:
                    entries.append(edge)
                    pending.append(edge.edges)
                else:
                    leaves.add(edge)  # type: ignore[arg-type]  # the only other edge
    entries.sort(key=_SEQUENCE)
    return History(entries, leaves)


_SEQUENCE = operator.attrgetter("sequence")


dispatch.interpret(Tensor, bind if native.loops is None else native.loops.binder(bind))
