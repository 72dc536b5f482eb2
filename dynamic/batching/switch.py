"""Where ops on tensors go inside a `batched` block: to the batch of the thread, instead of being run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from dynamic import mode, native, shortcuts
from dynamic.batching.deferred import Deferred, settled
from dynamic.prepared import UnlikeError, attributes, has_options, preparer
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
        return dispatch.dispatch(op, [settled(arg) for arg in args], attrs)
    return batch.defer(op, args, attrs)


def install(op: Op) -> None:
    """Give an op its shortcut for deferred values, if it can have one."""
    if op in _tried:
        return
    _tried.add(op)
    if not has_options(op):
        op.shortcuts[Deferred] = _shortcut(op)
    elif op.family not in ("custom", "control"):
        op.shortcuts.update(_with_options(op) if native.loops is None else _compiled(native.loops, op))


_tried: WeakSet[Op] = WeakSet()


def _shortcut(op: Op) -> Callable[..., Any]:
    def defer(*args: Any) -> Any:
        batch = mode.now().batch
        return _bind(op, args, _NO_OPTIONS) if batch is None else batch.defer(op, args, _NO_OPTIONS)

    def defer_two(x: Any, y: Any) -> Any:
        batch = mode.now().batch
        return _bind(op, (x, y), _NO_OPTIONS) if batch is None else batch.defer_two(op, x, y)

    general = defer_two if op.arity == 2 else defer
    if native.loops is None or op.arity not in (1, 2):
        return general
    made: Callable[..., Any] = native.loops.Deferral(op=op, general=general, arity=op.arity)
    return made


def _with_options(op: Op) -> dict[type, Callable[..., Any]]:
    """The same for an op of one input and options, which are prepared once for each shape and dtype."""
    if op.arity != 1:
        return {}
    prepared = preparer(op)

    def defer(x: Any, *args: Any, **options: Any) -> Any:
        batch = mode.now().batch
        if batch is None:
            return op.general(x, *args, **options)
        try:
            attrs, _ = prepared(x.shape, x.dtype.num, *args, **options)
        except _UNPREPARED:
            return op.general(x, *args, **options)
        return batch.defer(op, (x,), attrs)

    return {Deferred: defer}


def _compiled(loops: ModuleType, op: Op) -> dict[type, Callable[..., Any]]:
    """The same for any op with options, also one whose inputs are a sequence, of which the first is deferred."""
    worked_out = attributes(op)

    def sign(batch: Batch, values: Sequence[Deferred], *args: Any, **options: Any) -> Any:
        inputs = [told for value in values for told in (value.shape, value.dtype.num)]
        return batch.sign(op, values, worked_out(inputs, *args, **options))

    if op.arity is not None:
        return {Deferred: loops.Deferral(op=op, general=op.general, arity=op.arity, sign=sign)}
    shortcuts.install(op)  # else that would later take the place of what is put before it here
    general = op.shortcuts.get(list, op.general)
    return dict.fromkeys([list, tuple], loops.Deferral(op=op, general=general, arity=-1, sign=sign))


_UNPREPARED = (*dispatch.BROKEN_RULES, OverflowError, UnlikeError)
_NO_OPTIONS: Attrs = {}

dispatch.interpret(Deferred, _bind)
# Of these a model calls more than of all others together.
for _name, _op in {"__add__": add, "__sub__": subtract, "__mul__": multiply, "__matmul__": matmul}.items():
    setattr(Deferred, _name, _shortcut(_op))
