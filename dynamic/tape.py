"""The tape: what is kept of each op that runs on tensors that require gradients.

The tape is no list. Each recorded result points at the entry of the op that made it, and each entry at the entries
of its inputs, so that dropping a result frees what only it needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from dynamic import inplace, mode
from dynamic.tensor import Tensor
from graphs import dispatch, promotion
from graphs.errors import GraphError
from graphs.op import Attrs, Op

Edge = Union["Entry", Tensor, None]
Hook = Callable[[Any], Any]


class Entry:
    """One recorded op.

    edges        for each input, the entry that made it, the leaf tensor it is, or None where no gradient flows
    residuals    for each input, what its VJP rule needs; None once backward has used and freed them
    specs        for each input, the (shape, dtype) its cotangent must be brought back to, None where it has it
    ndims        the number of axes of each input (None for a Python number), where its PyTorch name hangs on that
    sequence     when it was recorded
    """

    __slots__ = ("__weakref__", "attrs", "edges", "hooks", "ndims", "op", "residuals", "sequence", "specs")

    def __init__(self, op: Op, attrs: Attrs, edges: Sequence[Edge], residuals: Any, specs: Any) -> None:
        self.op = op
        self.attrs = attrs
        self.edges = edges
        self.residuals = residuals
        self.specs = specs
        self.ndims: tuple[int | None, ...] | None = None
        self.sequence = inplace.clock.tick()
        self.hooks: list[Hook] | None = None

    def release(self) -> None:
        """Let go of what backward has used."""
        self.residuals = None
        self.edges = ()

    def name(self) -> str:
        """PyTorch's name for the op's backward: `MulBackward0`."""
        from dynamic.printing import grad_fn_name

        ndims = {} if self.ndims is None else {"ndims": self.ndims}
        return grad_fn_name(self.op.name, {**self.attrs, **ndims})

    @property
    def next_functions(self) -> Sequence[Edge]:
        """What the inputs came from."""
        return self.edges

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """Run an op at once, and record it when a gradient will need it: the interpreter for tensors."""
    arrays = []
    for arg in args:
        if type(arg) is not Tensor:
            return _bind_mixed(op, args, attrs)
        arrays.append(arg._data)
    data = dispatch.execute(op, arrays, attrs)
    if op.rules and mode.state.recording and data.dtype.kind == "f":
        return wrap(data, _entry(op, args, arrays, data, attrs))
    return wrap(data)


def _bind_mixed(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The same where numbers or arrays stand beside tensors."""
    values = _lifted(op, args)
    if values is None:
        return _other_interpreter(args)(op, args, attrs)
    arrays = [v._data if type(v) is Tensor else v for v in values]
    data = dispatch.execute(op, arrays, attrs)
    if not op.rules or not mode.state.recording or data.dtype.kind != "f":
        return wrap(data)
    entry = _entry(op, values, arrays, data, attrs)
    if entry is not None:
        entry.ndims = tuple([None if promotion.is_scalar(a) else v.ndim for a, v in zip(args, values, strict=True)])
    return wrap(data, entry)


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


def _entry(op: Op, values: Sequence[Any], arrays: Sequence[Any], data: Any, attrs: Attrs) -> Entry | None:
    """The entry of an op that has just run, with exactly what its rules name; None when no gradient flows."""
    edges: list[Edge] = []
    wanted = 0
    for i, value in enumerate(values):
        edge: Edge = None
        if type(value) is Tensor:
            edge = value._entry
            if edge is None:
                edge = value if value._requires_grad else None
            elif edge.sequence < inplace.clock.latest:
                inplace.check_view(value)
            if edge is not None and (op.rules[i] if op.arity is not None else op.rules[0]) is None:
                edge = None
        if edge is not None:
            wanted |= 1 << i
        edges.append(edge)
    if not wanted:
        return None
    residuals = op.saver(wanted, len(edges))(arrays, data, attrs)
    entry = Entry(op, attrs, edges, residuals, _specs(arrays, data) if op.broadcasts else None)
    if op.family != "elementwise":
        entry.ndims = tuple([a.ndim for a in arrays])
    return entry


def _specs(arrays: Sequence[Any], data: Any) -> list[Any] | None:
    """The specs that cotangents must be brought back to; None when all have them."""
    shape, dtype = data.shape, data.dtype
    specs: list[Any] | None = None
    for i, array in enumerate(arrays):
        if array.shape != shape or array.dtype != dtype:
            specs = specs or [None] * len(arrays)
            specs[i] = (array.shape, array.dtype)
    return specs


def wrap(data: np.ndarray[Any, Any], entry: Entry | None = None) -> Tensor:
    """A tensor around an array, without a copy or a check."""
    tensor = Tensor.__new__(Tensor)
    tensor._data = data
    tensor._entry = entry
    tensor._requires_grad = False
    tensor.grad = None
    tensor._hooks = None
    return tensor


def entries_before(roots: Sequence[Entry]) -> list[Entry]:
    """Every entry that led to the roots, the latest first. Iterative: a tape may be deeper than the stack."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if type(edge) is Entry and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=_SEQUENCE, reverse=True)


_SEQUENCE = operator.attrgetter("sequence")


dispatch.interpret(Tensor, bind)
