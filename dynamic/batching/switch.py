"""Where ops on tensors go inside a `batched` block: to the batch of the thread, instead of being run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from dynamic import native, shortcuts
from dynamic.batching.deferred import Deferred, settled
from dynamic.prepared import UnlikeError, attributes, has_options, may_remember, preparer
from dynamic.tensor import Tensor
from graphs import dispatch
from graphs.op import Attrs, Op
from graphs.ops.elementwise import add, multiply, subtract
from graphs.ops.linalg import matmul

if TYPE_CHECKING:
    from dynamic.batching.batch import Batch


class _State(threading.local):
    batch: Batch | None = None


state = _State()


def _defer_to(batch: Batch | None) -> None:
    state.batch = batch
    if native.loops is not None:
        native.loops.defer_to(batch)  # which have a variable for each thread of their own


@contextmanager
def deferring(batch: Batch) -> Iterator[None]:
    """Defer this thread's ops on tensors to a batch, inside the block."""
    _switch.enter()
    _defer_to(batch)
    try:
        yield
    finally:
        _defer_to(None)
        _switch.leave()


@contextmanager
def redirected(batch: Batch | None) -> Iterator[None]:
    """Defer ops to another batch inside the block; run them at once if it is None."""
    before = state.batch
    _defer_to(batch)
    try:
        yield
    finally:
        _defer_to(before)


@contextmanager
def running() -> Iterator[None]:
    """Run ops at once inside the block, as fast as outside of any."""
    with redirected(None):
        _switch.leave()
        try:
            yield
        finally:
            _switch.enter()


class _Switch:
    """The interpreter of tensors, replaced while any thread is in a block: at all other times nobody pays for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._before = dispatch.interpreters[Tensor]

    def enter(self) -> None:
        with self._lock:
            if not self._blocks:
                self._before = dispatch.interpreters[Tensor]
                dispatch.interpret(Tensor, self.bind)
            self._blocks += 1

    def leave(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                dispatch.interpret(Tensor, self._before)

    def bind(self, op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        batch = state.batch
        return self._before(op, args, attrs) if batch is None else batch.defer(op, args, attrs)


_switch = _Switch()


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The interpreter of deferred values."""
    batch = state.batch
    if batch is None:
        return op.apply([settled(arg) for arg in args], attrs)
    return batch.defer(op, args, attrs)


def install(op: Op) -> None:
    """Give an op its shortcut for deferred values, if it can have one."""
    if op in _tried:
        return
    _tried.add(op)
    if not has_options(op):
        op.shortcuts[Deferred] = _shortcut(op)
    elif may_remember(op):
        op.shortcuts.update(_with_options(op) if native.loops is None else _compiled(native.loops, op))


_tried: WeakSet[Op] = WeakSet()


def _shortcut(op: Op) -> Callable[..., Any]:
    def defer(*args: Any) -> Any:
        batch = state.batch
        return _bind(op, args, _NO_OPTIONS) if batch is None else batch.defer(op, args, _NO_OPTIONS)

    def defer_two(x: Any, y: Any) -> Any:
        batch = state.batch
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
        batch = state.batch
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
