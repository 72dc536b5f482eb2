"""Where ops on tensors go inside a `batched` block: to the batch of the thread, instead of being run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from dynamic import mode
from dynamic.batching.deferred import Deferred, settled
from dynamic.batching.nodes import Node
from dynamic.options import has_options, may_remember
from graphs import dispatch
from graphs.blocks import Block, Hold, enter, innermost, undo_after
from graphs.op import Attrs, Op, Shortcut
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
        recording, _, batch = mode.now()
        return interpreter(op, args, attrs) if batch is None else batch.defer(recording, op, args, attrs)

    return bind


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The interpreter of deferred values."""
    recording, _, batch = mode.now()
    if batch is None:
        return op.apply([settled(arg) for arg in args], attrs)
    return batch.defer(recording, op, args, attrs)


def install(op: Op) -> None:
    """Give an op its shortcut for deferred values, if it can have one."""
    if not has_options(op):
        op.shortcuts[Deferred] = _two(op) if op.arity == 2 else _any(op)
    elif op.arity == 1 and may_remember(op):
        op.shortcuts[Deferred] = _with_options(op)


def _any(op: Op) -> Shortcut:
    def defer(*args: Any) -> Any:
        recording, _, batch = innermost(mode.thread.blocks, _OUTSIDE)
        return _bind(op, args, {}) if batch is None else batch.defer(recording, op, args, {})

    return defer


def _two(op: Op) -> Shortcut:
    def defer(x: Any, y: Any) -> Any:
        recording, _, batch = innermost(mode.thread.blocks, _OUTSIDE)
        return _bind(op, (x, y), {}) if batch is None else batch.defer_two(recording, op, x, y)

    return defer


def _with_options(op: Op) -> Shortcut:
    """Remember what `prepare` makes of options that are plain values: that takes longer than all else."""

    def defer(x: Deferred, /, *args: Any, **options: Any) -> Any:
        recording, _, batch = innermost(mode.thread.blocks, _OUTSIDE)
        given = (*args, *options.values())
        types = (*map(type, given),)  # 1, 1.0 and True are equal
        if batch is None or not _PLAIN.issuperset(types):
            return op.general(x, *args, **options)
        key = op, recording, x.kind, types, (*options,), given
        signature = batch.signatures.get(key)
        if signature is not None:
            return batch.note(signature, (x.run,), x.run.level.depth)
        result = op.general(x, *args, **options)
        node = result.run if type(result) is Deferred else None
        if type(node) is Node and node is not x.run and node.signature.call.op is op and node.inputs[0] is x.run:
            batch.signatures[key] = node.signature
        return result

    return defer


_PLAIN = {int, bool, str, type(None)}
_OUTSIDE = mode.Mode()

dispatch.interpret(Deferred, _bind)
# Of these a model calls more than of all others together.
for _name, _op in {"__add__": add, "__sub__": subtract, "__mul__": multiply, "__matmul__": matmul}.items():
    setattr(Deferred, _name, _two(_op))
