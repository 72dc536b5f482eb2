"""What a function does to the world outside its process: files, other processes, connections, the environment.

Python tells of these by audit events (PEP 578). A hook for them cannot be taken back, so there is one, set when it is
first needed, that does nothing unless somebody listens. What C code does by itself raises no event.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

from compare.errors import FunctionError, is_users
from compare.own import reach

Heard = Callable[[str, str], None]
"""Takes what was done, and the line of the user's."""

FORKS = "goes on as two processes"
"""What a line of the user's does that calls os.fork itself: one of a library does not come back to the user's code."""
WHAT = {
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder",
    "os.truncate": "writes to a file",
    "os.putenv": "changes os.environ",
    "os.unsetenv": "changes os.environ",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "subprocess.Popen": "starts a process",
    "socket.connect": "opens a connection",
    "socket.sendto": "sends over a connection",
}
"""What each event means but that of `open`, which reads or writes."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_listeners: list[Heard] = []


@contextmanager
def overheard(heard: Heard) -> Iterator[None]:
    """Inside, what a line of the user's does to the outside is told to `heard`, once for each event."""
    _hook()
    _listeners.append(heard)
    try:
        yield
    finally:
        _listeners.remove(heard)


@contextmanager
def one_process(name: str) -> Iterator[None]:
    """Inside, a line of the user's may not fork. Raises FunctionError, in the first process; the others end.

    Each copy of this process would go on and measure as well.
    """
    own, end, forks = os.getpid(), os._exit, list[str]()
    try:
        with overheard(lambda what, line: forks.append(line) if what == FORKS else None):
            yield
    finally:
        if os.getpid() != own:
            end(0)
    if forks:
        raise FunctionError(f"{name}: {forks[0]}: os.fork() has both processes go on, and both would be measured")


@cache
def _hook() -> None:
    sys.addaudithook(_told)


def _told(event: str, args: tuple[Any, ...]) -> None:
    if not _listeners:
        return
    what = _written(*args) if event == "open" else WHAT.get(event)
    if what is None:
        return
    caller = sys._getframe(1)  # an event too, of which nothing may come
    frame = _users(caller)
    if event.startswith("os.fork") and frame is caller:
        what = FORKS
    if frame is not None:
        for heard in tuple(_listeners):
            heard(what, reach.line(frame))


def _written(_: Any, mode: str | None, flags: int) -> str | None:
    writes = set(mode or "") & set("wax+") if mode else flags & _WRITING
    return "writes to a file" if writes else None


def _users(frame: FrameType | None) -> FrameType | None:
    """The nearest frame of the user's; None where an import is under way, which writes its own caches."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return None
        if is_users(name):
            return frame
        frame = frame.f_back
    return None
