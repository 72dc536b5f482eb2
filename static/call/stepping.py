"""From a function that calls back to an iterator: the function waits while the caller looks at what it has given."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

Item = TypeVar("Item")


def stepped(run: Callable[..., Any]) -> Generator[Item, None, None]:
    """Each item that `run(visit=...)` calls `visit` with, as an iterator; what it raises comes out of it.

    A loop in a graph calls its body from inside a kernel, out of which nothing can be yielded: so the run is in a
    thread of its own, which never runs while the caller does. An iterator that is closed ends it.
    """
    turns = _Turns()

    def visit(item: Item) -> None:
        turns.give(item)

    def worker() -> None:
        try:
            turns.started()
            run(visit=visit)
        except BaseException as error:  # noqa: BLE001  (whatever it is belongs to the caller)
            turns.error = None if isinstance(error, _Closed) else error
        finally:
            turns.done()

    context = contextvars.copy_context()  # NumPy's error state among other things
    thread = threading.Thread(target=context.run, args=(worker,), daemon=True)
    thread.start()
    try:
        while turns.next():
            yield turns.item
    finally:
        turns.close()
        thread.join()
    if turns.error is not None:
        raise turns.error


class _Closed(BaseException):
    """Nobody wants any more items."""


class _Turns:
    """Whose turn it is: the caller's, or that of the thread that makes the items."""

    def __init__(self) -> None:
        self.item: Any = None
        self.error: BaseException | None = None
        self._wanted, self._there = threading.Semaphore(0), threading.Semaphore(0)
        self._finished = self._closed = False

    def started(self) -> None:
        """In the thread: wait until the first item is wanted."""
        self._wanted.acquire()
        if self._closed:
            raise _Closed

    def give(self, item: Any) -> None:
        """In the thread: hand over an item, and wait until the next is wanted."""
        self.item = item
        self._there.release()
        self.started()

    def done(self) -> None:
        """In the thread: there are no more items."""
        self._finished = True
        self._there.release()

    def next(self) -> bool:
        """For the caller: wait for the next item; whether there is one."""
        self._wanted.release()
        self._there.acquire()
        return not self._finished

    def close(self) -> None:
        """For the caller: end the thread at the item that it has given last."""
        self._closed = True
        self._wanted.release()
