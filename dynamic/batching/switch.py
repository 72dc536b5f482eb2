"""Where ops on tensors go inside a `batched` block: to the batch of the thread, instead of being run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import ref

from dynamic import grad_mode
from dynamic.batching.deferred import Deferred, settled
from dynamic.batching.shortcuts import shortcut
from graphs import dispatch
from graphs.blocks import Block, Hold, enter, undo_after
from graphs.op import Attrs, Op


def defer(batch: Any, hold: Hold) -> None:
    """Defer this thread's ops on tensors to a batch, until the block of a hold has ended."""
    detour = ref(hold(), dispatch.detours.pop)
    dispatch.detours[detour] = _deferring
    batch.detour = detour
    enter(grad_mode.thread.blocks, hold, grad_mode.now()._replace(batch=batch))


class running(Block):  # noqa: N801
    """Run ops at once inside the block, as fast as outside of that which defers them to a batch."""

    def __init__(self, batch: Any) -> None:
        self._detour = batch.detour

    def __enter__(self) -> None:
        hold, detour = self.hold(), self._detour
        if detour in dispatch.detours:
            undo_after(hold, partial(dispatch.detours.__setitem__, detour, _deferring))
            del dispatch.detours[detour]
        enter(grad_mode.thread.blocks, hold, grad_mode.now()._replace(batch=None))


class redirected(Block):  # noqa: N801
    """Defer ops to another batch inside the block; run them at once if it is None."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __enter__(self) -> None:
        enter(grad_mode.thread.blocks, self.hold(), grad_mode.now()._replace(batch=self._batch))


def _deferring(interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
    """The interpreter of tensors while any thread is in a block: at all other times nobody pays for it."""

    def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        recording, _, batch = grad_mode.now()
        return interpreter(op, args, attrs) if batch is None else batch.defer(recording, op, args, attrs)

    return bind


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The interpreter of deferred values."""
    recording, _, batch = grad_mode.now()
    if batch is None:
        return op.apply([settled(arg) for arg in args], attrs)
    return batch.defer(recording, op, args, attrs)


def install(op: Op) -> None:
    """Give an op its shortcut for deferred values, if it can have one."""
    made = shortcut(op)
    if made is not None:
        op.shortcuts[Deferred] = made


dispatch.interpret(Deferred, _bind)
