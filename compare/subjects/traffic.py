"""The traffic of a function with the world outside its process: files, processes, connections, clocks.

Python tells of most by audit events (PEP 578). A hook for them cannot be removed, so there is one, set when it is
first needed, that does nothing unless somebody listens. A profiler, which sees each call, tells of clocks and the
environment (`watch_traffic`). Traffic of C code by itself is not seen.

Traffic of a library for itself does not count: its files, bytecode, and files that it reads as it is imported. Files
that it keeps at its first use, compiled code or fonts, do not recur in a second call (`compare.subjects.effects`).
"""

from __future__ import annotations

import _collections_abc
import datetime as dt
import genericpath
import io
import linecache
import os
import pathlib
import random
import secrets
import socket
import sys
import time
import tokenize
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from compare.errors import FunctionError, is_library, is_users

Heard = Callable[[str, str], None]
"""A function that gets an effect and the line of the user's."""

FORKS = "goes on as two processes"
"""The effect of a user's line that calls os.fork itself: a library's fork does not come back to the user's code."""
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
    "socket.getaddrinfo": "opens a connection",
    "os.listdir": "reads a folder",
    "os.scandir": "reads a folder",
}
"""The effect of each event except `open`, which reads or writes."""
WITH_PATH = {"open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.listdir", "os.scandir"}
READS = {"reads a file", "reads a folder"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
"""The folders where libraries ask about the machine: an effect only where the user's own line opens a file there."""
_listeners: list[tuple[Heard, tuple[str, ...]]] = []

CLOCK, ENVIRONMENT, SYSTEM_DRAW, LOOK = "reads a clock", "reads os.environ", "draws from os.urandom", "looks at a file"
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_CALLS: dict[Any, str] = {
    **{getattr(time, name): CLOCK for kind in _CLOCKS for name in (kind, f"{kind}_ns") if hasattr(time, name)},
    **dict.fromkeys((time.localtime, time.gmtime, time.ctime, time.strftime), CLOCK),
    **{getattr(os, name): SYSTEM_DRAW for name in ("urandom", "getrandom") if hasattr(os, name)},
    **dict.fromkeys((os.stat, os.lstat, os.access), LOOK),
    time.sleep: "sleeps",
}
"""The effect of a call of each C function."""
_METHODS: list[tuple[type, str, str]] = [
    (dt.date, "now utcnow today", CLOCK),
    (socket.socket, "recv recvfrom recv_into recvfrom_into recvmsg accept", "reads from a connection"),
    (socket.socket, "send sendall sendmsg", "sends over a connection"),
    (io.IOBase, "read read1 readline readlines readinto", "reads a file"),
    (io.IOBase, "write writelines", "writes to a file"),
]
"""The effects of calls of methods: a class, its methods' names, and the effect."""
_ASKING = (_collections_abc.Mapping.get, genericpath.exists, os.getenv, os.path.join, pathlib.Path.exists, uuid.uuid4)
_THROUGH = {f.__code__.co_filename for f in (*_ASKING, random.Random.seed, secrets.token_bytes)}
"""The files of Python through which a user's line asks; questions of other code do not count."""
ASKS = READS | {CLOCK, ENVIRONMENT, SYSTEM_DRAW, LOOK, "reads stdin", "reads from a connection"}
"""The effects that only ask: the answer could be an argument instead."""
_SOURCES = {linecache.__file__, tokenize.__file__}


@contextmanager
def overheard(heard: Heard, caches: tuple[str, ...] = ()) -> Iterator[None]:
    """A context in which `heard` gets each outside effect of a user's line, once per event.

    Effects through files of a framework with these suffixes are left out: they keep code that it compiles, also of a
    loop that it compiles anew in each call.
    """
    _hook()
    listener = heard, caches
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def one_process(name: str) -> Iterator[None]:
    """A context in which a user's line may not fork. Raises FunctionError in the first process; the others end.

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
    sys.addaudithook(_hear_event)


def _hear_event(event: str, args: tuple[Any, ...]) -> None:
    if not _listeners:
        return
    what = _open_phrase(*args) if event == "open" else WHAT.get(event)
    if what is None:
        return
    caller = sys._getframe(1)  # this call is an audited event itself, and may not recur
    frame = _users(caller)
    if frame is None or (event in WITH_PATH and _is_a_librarys(args[0], caller)):
        return
    if event.startswith("os.fork") and frame is caller:
        what = FORKS
    for heard, caches in tuple(_listeners):
        if not _passes(caller, frame, caches):
            heard(what, line(frame))


def _passes(caller: FrameType | None, users: FrameType, files: tuple[str, ...]) -> bool:
    """Return whether a user's line acts through one of these files."""
    while files and caller is not None and caller is not users:
        if caller.f_code.co_filename.replace(os.sep, "/").endswith(files):
            return True
        caller = caller.f_back
    return False


def _open_phrase(_: Any, mode: str | None, flags: int) -> str:
    writes = set(mode or "") & set("wax+") if mode else flags & _WRITING
    return "writes to a file" if writes else "reads a file"


def _is_a_librarys(path: Any, caller: FrameType) -> bool:
    """Return whether a file is one that libraries use for themselves, or a descriptor, whose opening was told."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return True
    where = str(Path(os.fsdecode(path)).absolute())
    if is_library(where) or Path(where).parent.name == "__pycache__" or where == os.devnull:
        return True
    return where.startswith(_SYSTEM) and _asking(caller) is None


def _users(frame: FrameType | None) -> FrameType | None:
    """Return the nearest user's frame; None where Python imports, or reads source in order to show it."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib") or name in _SOURCES:
            return None
        if is_users(name):
            return frame
        frame = frame.f_back
    return None


# What is asked without an event ------------------------------------------------------------------------------


@contextmanager
def watch_traffic(heard: Heard) -> Iterator[None]:
    """A context in which `heard` gets a user's line that uses clocks, environment, open files or connections."""
    environment = os._Environ.__getitem__.__code__
    before = sys.getprofile()

    def trace_calls(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            what = _asks(called)
        elif event == "call" and frame.f_code is environment:
            what = ENVIRONMENT
        else:
            return
        users = _asking(frame) if what else None
        if what and users:
            heard(what, line(users))

    sys.setprofile(trace_calls)
    try:
        yield
    finally:
        sys.setprofile(before)


def _asks(called: Any) -> str | None:
    """Return the effect of a call of a C function; None if it has none."""
    try:
        what = _CALLS.get(called)
    except TypeError:  # a method of an unhashable object
        what = None
    owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
    if what or owner is None:
        return what
    kind = owner if isinstance(owner, type) else type(owner)
    if issubclass(kind, (io.BytesIO, io.StringIO)):
        return None
    for base, names, what in _METHODS:  # no generator, which Dynamo refuses where it compiles what is watched
        if issubclass(kind, base) and name in names.split():
            return what
    return None


def _asking(frame: FrameType | None) -> FrameType | None:
    """Return the user's frame that asks, directly or through files of Python's that do so for it; else None."""
    while frame is not None and frame.f_code.co_filename in _THROUGH:
        frame = frame.f_back
    return frame if frame is not None and is_users(frame.f_code.co_filename) else None


def line(frame: FrameType) -> str:
    """Return the line that a frame is at, as `mine.py:12`."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
