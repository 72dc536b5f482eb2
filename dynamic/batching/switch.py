"""Where ops on tensors go inside a `batched` block: to the batch of the thread, instead of being run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from dynamic import mode
from dynamic.batching.deferred import Deferred, settled
from dynamic.options import has_options
from graphs import dispatch
from graphs.blocks import Block, Hold, enter, undo_after
from graphs.op import Attrs, Op
from graphs.ops.elementwise import add, multiply, subtract
from graphs.ops.linalg import matmul

if TYPE_CHECKING:
    from dynamic.batching.batch import Batch


def defer(batch: Batch, hold: Hold) -> None:
    """Defer this thread's ops on tensors to a batch, until the block of a hold has ended."""
    detour = ref(hold(), dispatch.detours.pop)
    dispatch.detours[detour] = _deferring
    batch.detour = detour
    enter(mode.thread.blocks, hold, mode.now()._replace(batch=batch))


class running(Block):  # noqa: N801
    """Run ops at once inside the block, as fast as outside of that which defers them to a batch."""

    def __init__(self, batch: Batch) -> None:
        self._detour = batch.detour

    def __enter__(self) -> None:
        hold, detour = self.hold(), self._detour
        if detour in dispatch.detours:
            undo_after(hold, partial(dispatch.detours.__setitem__, detour, _deferring))
            del dispatch.detours[detour]
        enter(mode.thread.blocks, hold, mode.now()._replace(batch=None))


def _deferring(interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
    """The interpreter of tensors while any thread is in a block: at all other times nobody pays for it."""

    def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        batch = mode.now().batch
        return interpreter(op, args, attrs) if batch is None else batch.defer(op, args, attrs)

    return bind


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The interpreter of deferred values."""
    batch = mode.now().batch
    if batch is None:
        return op.apply([settled(arg) for arg in args], attrs)
    return batch.defer(op, args, attrs)


def install(op: Op) -> None:
    """Give an op its shortcut for deferred values, if it can have one."""
    if Deferred not in op.shortcuts and not has_options(op):
        op.shortcuts[Deferred] = _shortcut(op)


def _shortcut(op: Op) -> Callable[..., Any]:
    def defer(*args: Any) -> Any:
        batch = mode.now().batch
        return _bind(op, args, _NO_OPTIONS) if batch is None else batch.defer(op, args, _NO_OPTIONS)

    def defer_two(x: Any, y: Any) -> Any:
        batch = mode.now().batch
        return _bind(op, (x, y), _NO_OPTIONS) if batch is None else batch.defer_two(op, x, y)

    return defer_two if op.arity == 2 else defer


_NO_OPTIONS: Attrs = {}

dispatch.interpret(Deferred, _bind)
# Of these a model calls more than of all others together.
for _name, _op in {"__add__": add, "__sub__": subtract, "__mul__": multiply, "__matmul__": matmul}.items():
    setattr(Deferred, _name, _shortcut(_op))
