"""Blocks: changes that last exactly as long as a `with` statement, even when Ctrl-C ends the block.

Python raises KeyboardInterrupt between two instructions of Python code: also before the first one of an `__exit__`,
which then puts nothing back. So no Python code puts anything back here. A `with` statement looks `__exit__` up before
it enters a block, and keeps the result alive until the block has ended, however it ends. Here that result is an object
of its own, the hold, which no variable, frame or traceback refers to. A block enters each of its changes in a table,
under a weak reference to its hold: `table[ref(hold, table.pop)] = value`. That is one instruction. When the hold dies,
Python calls `table.pop` with the reference, which no signal interrupts, and the table is as it was. A reader takes the
last entry of a table: the innermost block decides, in whatever order blocks are left.

`without_collection` at the end is such a block: it pauses Python's search for garbage in cycles.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import partial
from types import MethodType, TracebackType
from typing import Any, TypeVar
from weakref import ref

V = TypeVar("V")
Exit = Callable[..., None]
Hold = ref[Exit]
Table = dict[ref[Any], V]


class _Exit:
    """The descriptor behind `Block.__exit__`: each lookup by a `with` statement makes a new hold."""

    def __get__(self, block: Block | None, kind: type[Block]) -> Exit:
        if block is None:
            return Block.leave  # an ExitStack, which passes the block itself
        if block._entered:
            return MethodType(Block.leave, block)
        block._hold = ref(hold := partial(block.finish))
        return hold


class Block:
    """A context manager whose changes end with its `with` statement. It can also be entered and left by hand."""

    _hold: Hold | None = None
    _entered: tuple[Exit, ...] = ()  # the holds of code that enters it without `with`

    __exit__ = _Exit()

    @staticmethod
    def finish(_kind: Any, _error: Any, _trace: Any, /) -> None:
        """Finish the block while its changes are still in force; Ctrl-C may interrupt this anywhere."""

    def hold(self) -> Hold:
        """Return the hold under which `__enter__` enters its changes in tables."""
        hold, self._hold = self._hold, None
        return self.by_hand() if hold is None or hold() is None else hold

    def by_hand(self) -> Hold:
        """Return a hold that the block itself keeps alive, for a block entered without a `with` statement."""
        self._entered = (*self._entered, partial(Block.finish))  # no cycle: a block that is dropped ends
        return ref(self._entered[-1])

    def leave(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """The `__exit__` of a block that was entered by hand."""
        try:
            self.finish(kind, error, trace)
        finally:
            self._entered = self._entered[:-1]


def enter(table: Table[V], hold: Hold, value: V) -> None:
    """Enter a value as the last of a table, until the block of the hold has ended."""
    table[ref(hold(), table.pop)] = value


def innermost(table: Table[V], outside: V) -> V:
    """The value that the innermost block entered in a table; `outside` where the table is empty."""
    return next(reversed(table.values()), outside)


class _Undoing(ref[Any]):
    undo: Callable[[], object] = dict  # until it is set: nothing


_undoings: dict[int, _Undoing] = {}
_undo = operator.methodcaller("undo")


def undo_after(hold: Hold, undo: Callable[[], object]) -> None:
    """Call `undo` when the block of a hold has ended. Register it before the change, which `undo` may not find made.

    `undo` must not be a Python function, which Ctrl-C could end before it has begun.
    """
    for number in [number for number, undoing in tuple(_undoings.items()) if undoing() is None]:
        _undoings.pop(number, None)
    undoing = _Undoing(hold(), _undo)
    undoing.undo = undo
    _undoings[id(undoing)] = undoing


class without_collection(Block, ContextDecorator):  # noqa: N801  (`with collector.paused():` reads like a function)
    """Pause Python's search for garbage in cycles inside the block, as a context manager or a decorator.

    Where many objects are made and none is in a cycle, each search walks over all of them and finds nothing.
    """

    def __enter__(self) -> None:
        pause(self.hold())


def pause(hold: Hold) -> None:
    """Pause Python's search for garbage in cycles until the block of a hold has ended."""
    if gc.isenabled():
        undo_after(hold, gc.enable)
        gc.disable()
