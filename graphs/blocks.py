"""Blocks: what a `with` statement changes while it lasts and not a moment longer, also where Ctrl-C ends it.

Python raises KeyboardInterrupt between two instructions of Python code: also before the first one of an `__exit__`,
which then puts nothing back. So no Python code puts anything back here. A `with` statement looks `__exit__` up before
it enters a block, and holds what it found until the block has ended, however it ends. What it finds here is an object
of its own, the hold, which no variable, frame or traceback refers to. All that a block changes it enters in tables,
under weak references to its hold: `table[ref(hold, table.pop)] = value`. That is one instruction. When the hold dies,
Python calls `table.pop` with the reference, which no signal interrupts, and the table is as it was. Whoever asks what
is switched on reads the last entry of a table: the innermost block decides, in whatever order blocks are left.

Python's search for garbage in cycles, put off while it would only cost time.
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
    """What a `with` statement finds as `__exit__`: each time a new hold."""

    def __get__(self, block: Block | None, kind: type[Block]) -> Exit:
        if block is None:
            return Block.leave  # an ExitStack, which passes the block itself
        if block._entered:
            return MethodType(Block.leave, block)
        block._hold = ref(hold := partial(block.finish))
        return hold


class Block:
    """A context manager whose changes end with their `with` statement; also entered and left by hand."""

    _hold: Hold | None = None
    _entered: tuple[Exit, ...] = ()  # the holds of code that enters it without `with`

    __exit__ = _Exit()

    @staticmethod
    def finish(_kind: Any, _error: Any, _trace: Any, /) -> None:
        """What is still to be done when the block is left, with its changes in force; Ctrl-C may end it anywhere."""

    def hold(self) -> Hold:
        """What `__enter__` enters its changes under."""
        hold, self._hold = self._hold, None
        return self.by_hand() if hold is None or hold() is None else hold

    def by_hand(self) -> Hold:
        """The same where no `with` statement holds the block: it holds itself."""
        self._entered = (*self._entered, partial(Block.finish))  # no cycle: a block that is dropped ends
        return ref(self._entered[-1])

    def leave(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """`__exit__` of a block that was entered by hand."""
        try:
            self.finish(kind, error, trace)
        finally:
            self._entered = self._entered[:-1]


def enter(table: Table[V], hold: Hold, value: V) -> None:
    """Let a table hold a value, as the last, until the block of that hold has ended."""
    table[ref(hold(), table.pop)] = value


def innermost(table: Table[V], outside: V) -> V:
    """The value of the innermost block in a table; `outside` of any, another."""
    return next(reversed(table.values()), outside)


class _Undoing(ref[Any]):
    undo: Callable[[], object] = dict  # until it is set: nothing


_undoings: dict[int, _Undoing] = {}
_undo = operator.methodcaller("undo")


def undo_after(hold: Hold, undo: Callable[[], object]) -> None:
    """Call `undo` when the block of a hold has ended; before the change, which it must bear not to find.

    It must not be a function in Python, which Ctrl-C could end before it has begun.
    """
    for number in [number for number, undoing in tuple(_undoings.items()) if undoing() is None]:
        _undoings.pop(number, None)
    undoing = _Undoing(hold(), _undo)
    undoing.undo = undo
    _undoings[id(undoing)] = undoing


class without_collection(Block, ContextDecorator):  # noqa: N801  (`with collector.paused():` reads like a function)
    """Look for no garbage in cycles inside the block, as a context manager or a decorator.

    Where many objects are made and none is in a cycle, each search walks over all of them and finds nothing.
    """

    def __enter__(self) -> None:
        pause(self.hold())


def pause(hold: Hold) -> None:
    """The same until the block of a hold has ended."""
    if gc.isenabled():
        undo_after(hold, gc.enable)
        gc.disable()
