"""The tape: what is kept of each op that runs on tensors that require gradients.

The tape is no list. Each recorded result points at the entry of the op that made it, and each entry at the entries
of its inputs, so that dropping a result frees what only it needed.
"""

from __future__ import annotations

import itertools
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

clock = itertools.count(1)  # orders entries and in-place changes; `next` is atomic


class Entry:
    """One recorded op.

    edges        for each input, the entry that made it, the leaf tensor it is, or None where no gradient flows
    residuals    for each input, what its VJP rule needs; None once backward has used and freed them
    specs        for each input, the (shape, dtype) its cotangent must be brought back to, None where it has it
    ndims        the number of axes of each input (None for a Python number), where its PyTorch name hangs on that
    sequence     when it was recorded
    """

    __slots__ = ("__weakref__", "attrs", "edges", "hooks", "ndims", "op", "residuals", "sequence", "specs")

    def __init__(self, op: Op, attrs: Attrs, edges: tuple[Edge, ...], residuals: Any, specs: Any) -> None:
        self.op = op
        self.attrs = attrs
        self.edges = edges
        self.residuals = residuals
        self.specs = specs
        self.ndims: tuple[int | None, ...] | None = None
        self.sequence = next(clock)
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
    def next_functions(self) -> tuple[Edge, ...]:
        """What the inputs came from."""
        return self.edges

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """Run an op at once, and record it when a gradient will need it: the interpreter for tensors."""
    tensors = args if _all_tensors(args) else _lifted(op, args)
    if tensors is None:
        return _other_interpreter(args)(op, args, attrs)
    arrays = [t._data if type(t) is Tensor else t for t in tensors]
    data = dispatch.execute(op, arrays, attrs)
    if not mode._mode.recording or not op.rules or data.dtype.kind != "f":
        return wrap(data)
    edges = tuple([_edge(op, i, t) for i, t in enumerate(tensors)])
    if not any(edge is not None for edge in edges):
        return wrap(data)
    entry = _entry(op, attrs, edges, arrays, data)
    if tensors is not args or op.family != "elementwise":
        entry.ndims = tuple([None if promotion.is_scalar(a) else t.ndim for a, t in zip(args, tensors, strict=True)])
    return wrap(data, entry)


def _all_tensors(args: Sequence[Any]) -> bool:
    return all(type(a) is Tensor for a in args)


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


def _edge(op: Op, index: int, value: Any) -> Edge:
    if type(value) is not Tensor or op.rule(index) is None:
        return None
    if value._entry is not None:
        inplace.check_view(value)
        return value._entry
    return value if value._requires_grad else None


def _entry(op: Op, attrs: Attrs, edges: tuple[Edge, ...], arrays: Sequence[Any], data: Any) -> Entry:
    """The entry of an op that has just run, with exactly what its rules name."""
    residuals = tuple(
        [None if edge is None else op.rule(i).capture(i, arrays, data, attrs) for i, edge in enumerate(edges)]  # type: ignore[union-attr]
    )
    specs = None
    if op.broadcasts:
        spec, kind = data.shape, data.dtype
        specs = [None if a.shape == spec and a.dtype == kind else (a.shape, a.dtype) for a in arrays]
    return Entry(op, attrs, edges, residuals, specs)


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
    return sorted(seen, key=lambda entry: -entry.sequence)


dispatch.interpret(Tensor, bind)
