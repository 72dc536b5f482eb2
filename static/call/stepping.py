"""From a function that calls back to an iterator: the function waits while the caller looks at what it has given."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

Item = TypeVar("Item")


class _Closed(BaseException):
    """Nobody wants any more items."""


def stepped(run: Callable[..., Any]) -> Generator[Item, None, None]:
    """Each item that `run(visit=...)` calls `visit` with, as an iterator; what it raises comes out of it.

    A loop in a graph calls its body from inside a kernel, out of which nothing can be yielded: so the run is in a
    thread of its own, which never runs while the caller does. An iterator that is closed ends it.
    """
    wanted, there = threading.Semaphore(0), threading.Semaphore(0)
    items: list[Item] = []
    errors: list[BaseException] = []
    closed = False

    def wait() -> None:
        wanted.acquire()
        if closed:
            raise _Closed

    def visit(item: Item) -> None:
        items.append(item)
        there.release()
        wait()

    def worker() -> None:
        try:
            wait()
            run(visit=visit)
        except BaseException as error:  # noqa: BLE001  (whatever it is belongs to the caller)
            errors.append(error)
        finally:
            there.release()

    context = contextvars.copy_context()  # NumPy's error state among other things
    thread = threading.Thread(target=context.run, args=(worker,), daemon=True)
    thread.start()
    try:
        while True:
            wanted.release()
            there.acquire()
            if not items:
                break
            yield items.pop()
    finally:
        closed = True
        wanted.release()
        thread.join()
    if errors and not isinstance(errors[0], _Closed):
        raise errors[0]
