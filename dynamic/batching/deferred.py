"""Deferred tensors: not computed yet, they become ordinary tensors when their values are read.

First shortcuts that defer an op whose first input is deferred faster than dispatch does. Last the interpreter inside a
`batched` block: it sends ops on tensors to the batch of the thread, instead of running them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast
from weakref import ref

import numpy as np

from dynamic import grad_mode
from dynamic.batching.nodes import DeferredNode, Elements, ValueKind, View
from dynamic.options import has_options, may_remember
from dynamic.tensor import Tensor
from graphs import dispatch, ops
from graphs.blocks import Block, Hold, enter, innermost, undo_after
from graphs.errors import InplaceError, locate
from graphs.frontends.torch.methods import Count
from graphs.op import Attrs, Op, Shortcut
from graphs.ops.elementwise import add, multiply, subtract
from graphs.ops.linalg import matmul

_PLAIN = {int, bool, str, type(None)}
_OUTSIDE = grad_mode.Mode()


def shortcut(op: Op) -> Shortcut | None:
    """The shortcut of an op whose first input is deferred; None if it cannot have one."""
    if not has_options(op):
        return of_two(op) if op.arity == 2 else _of_any(op)
    return _of_options(op) if op.arity == 1 and may_remember(op) else None


def of_two(op: Op) -> Shortcut:
    """The shortcut of an op of two inputs without options."""

    def defer(x: Any, y: Any) -> Any:
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        return op.general(x, y) if batch is None else batch.defer_two(recording, op, x, y)

    return defer


def _of_any(op: Op) -> Shortcut:
    def defer(*args: Any) -> Any:
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        return op.general(*args) if batch is None else batch.defer(recording, op, args, {})

    return defer


def _of_options(op: Op) -> Shortcut:
    """The shortcut of an op of one input with options: it caches signatures for plain options, as `prepare` is slow."""

    def defer(x: Any, /, *args: Any, **options: Any) -> Any:
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        arguments = (*args, *options.values())
        types = (*map(type, arguments),)  # 1, 1.0 and True are equal
        if batch is None or not _PLAIN.issuperset(types):
            return op.general(x, *args, **options)
        key = op, recording, x.kind, types, (*options,), arguments
        signature = batch.signatures.get(key)
        if signature is not None:
            return batch.note(signature, (x.run,), x.run.level.depth)
        result = op.general(x, *args, **options)
        node = result.run if type(result) is type(x) else None
        if (
            type(node) is DeferredNode
            and node is not x.run
            and node.signature.call.op is op
            and node.inputs[0] is x.run
        ):
            batch.signatures[key] = node.signature
        return result

    return defer


T = TypeVar("T")
_new = object.__new__

_slots = [name for name in Tensor.__slots__ if not name.startswith("__")]


if TYPE_CHECKING:

    class _Slot(Generic[T]):
        def __get__(self, obj: Any, owner: Any) -> T: ...
        def __set__(self, obj: Any, value: T) -> None: ...


def _settling(name: str) -> Any:
    """A property that settles the deferred value and then reads or sets the slot of its tensor."""

    def get(self: DeferredTensor) -> Any:
        return getattr(settle(self), name)

    def put(self: DeferredTensor, value: Any) -> None:
        setattr(settle(self), name, value)

    return property(get, put)


class DeferredTensor(Tensor):  # type: ignore[misc]  # final for everybody else: this is a tensor's earlier life
    """A tensor whose op has been deferred and has not run: it knows its shape and dtype.

    Reading anything else runs the pending ops and turns the object into an ordinary `Tensor`. Python lets an object
    change its class only between equal layouts, so the attributes of the deferred value live in the tensor's own slots.
    """

    __slots__ = ()

    run: _Slot[Elements] = vars(Tensor)[_slots[0]]
    kind: _Slot[ValueKind] = vars(Tensor)[_slots[1]]
    shape: _Slot[tuple[int, ...]] = vars(Tensor)[_slots[2]]

    _data = _settling("_data")
    _edge = _settling("_edge")
    _grad = _settling("_grad")

    # A model calls these four ops more often than all others together.
    __add__, __sub__, __matmul__ = map(of_two, (add, subtract, matmul))

    def __mul__(self, other: Any) -> Any:
        if type(other) is not DeferredTensor and not getattr(other, "ndim", 0):  # a number: float16 may not hold it
            return super().__mul__(other)
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        return multiply.general(self, other) if batch is None else batch.defer_two(recording, multiply, self, other)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The dtype of the elements."""
        return self.kind.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Count:
        """The number of elements; called, it returns the shape or the size of one axis."""
        return Count(self.kind.size, self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return self.kind.size

    def _look(self, view: Any) -> Any:
        """Return a view of this tensor, without a look at memory that it does not have yet."""
        return view

    def __getitem__(self, key: Any) -> Self:
        shape = self.shape
        if type(key) is int and shape and -shape[0] <= key < shape[0]:  # by far the commonest, and no op is needed
            return self.run.level.batch.row(self, key % shape[0])
        return cast("Self", super().__getitem__(key))

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            return super().__iter__()
        batch = self.run.level.batch
        return iter([cast("Self", batch.row(self, i)) for i in range(self.shape[0])])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_alone()  # before setitem makes views that nobody else sees
        self._replace(ops.setitem(self, value, key))

    def _assign(self, result: Any, key: Any = ...) -> Self:
        del key
        self._check_alone()
        return self._replace(result)

    def _check_alone(self) -> None:
        if type(self.run) is View or hasattr(self.run, "viewed"):
            raise InplaceError(
                locate("in-place change of a deferred value that is a view, or has one; write x = x + y")
            )

    def _replace(self, result: Any) -> Self:
        """Take over another value: in-place change of a deferred tensor needs no memory yet."""
        if type(result) is not DeferredTensor or result.kind is not self.kind:
            return cast("Self", Tensor._assign(settle(self), result))
        self.run = result.run
        return self


def defer_value(run: Elements, kind: ValueKind, values: list[DeferredTensor]) -> DeferredTensor:
    """Make the value of some kind for a run of elements, and append it to `values`."""
    value: DeferredTensor = _new(DeferredTensor)
    value.run = run
    value.kind = kind
    value.shape = kind.shape
    values.append(value)
    return value


def settle(value: Any) -> Any:
    """Turn a deferred value into its tensor, the same object, after running pending ops; other values unchanged."""
    if type(value) is DeferredTensor:
        value.run.level.batch.settle(value)
    return value


def become(value: DeferredTensor, tensor: Tensor) -> None:
    """Change a deferred value into an ordinary tensor with the contents of `tensor`."""
    value.__class__ = Tensor  # type: ignore[assignment]
    for name in _slots:
        setattr(value, name, getattr(tensor, name))


def defer(batch: Any, hold: Hold) -> None:
    """Defer this thread's ops on tensors to a batch, until the block of a hold has ended."""
    detour = ref(hold(), dispatch.detours.pop)
    dispatch.detours[detour] = _deferring
    batch.detour = detour
    enter(grad_mode.thread.blocks, hold, grad_mode.now()._replace(batch=batch))


class running(Block):  # noqa: N801
    """Run ops at once inside the block, without the detour that defers them to a batch."""

    def __init__(self, batch: Any) -> None:
        self._detour = batch.detour

    def __enter__(self) -> None:
        hold, detour = self.hold(), self._detour
        if detour in dispatch.detours:
            undo_after(hold, partial(dispatch.detours.__setitem__, detour, _deferring))
            del dispatch.detours[detour]
        enter(grad_mode.thread.blocks, hold, grad_mode.now()._replace(batch=None))


class redirect(Block):  # noqa: N801
    """Defer ops to another batch inside the block; with None run them at once."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __enter__(self) -> None:
        enter(grad_mode.thread.blocks, self.hold(), grad_mode.now()._replace(batch=self._batch))


def _deferring(interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
    """Wrap the interpreter of tensors while some thread is in a `batched` block; outside it costs nothing."""

    def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        recording, _, batch = grad_mode.now()
        return interpreter(op, args, attrs) if batch is None else batch.defer(recording, op, args, attrs)

    return bind


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The interpreter of ops on deferred values: defers them to the batch, or settles them outside of one."""
    recording, _, batch = grad_mode.now()
    if batch is None:
        return op.apply([settle(arg) for arg in args], attrs)
    return batch.defer(recording, op, args, attrs)


def install(op: Op) -> None:
    """Give an op its shortcut for deferred values, if it can have one."""
    made = shortcut(op)
    if made is not None:
        op.shortcuts[DeferredTensor] = made


dispatch.interpret(DeferredTensor, _bind)
