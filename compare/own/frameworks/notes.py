"""A limit of time at which the system ends a process, and the notes that it leaves: "3 of 8 calls in 300 s".

`compare.engines.limit` ends a block of Python and goes on; this ends a compiler in native code as well.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Notes:
    """A file that outlives its process: how many calls there are, then a line with the seconds of each that is done."""

    def __init__(self, file: str) -> None:
        self.path = Path(file)

    @contextmanager
    def ended_after(self, seconds: float, calls: int) -> Iterator[None]:
        """Inside, this process dies of SIGALRM after so many seconds, where the system has that: Windows does not."""
        self.path.write_text(f"{calls}\n", "utf-8")
        if not hasattr(signal, "setitimer"):
            yield
            return
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))  # 0 would be no limit
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def add(self, seconds: float) -> None:
        """A call is done."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{seconds!r}\n")

    def read(self) -> tuple[int, list[float]]:
        """How many calls there are and what those took that are done; (0, []) where no pass has begun."""
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        calls, *done = [line for line in text.splitlines(keepends=True) if line.endswith("\n")] or ["0"]
        return int(calls), [float(line) for line in done]


def reached(done: int, calls: int, seconds: float) -> str:
    """What a mode came to: `3 of 8 calls in 300 s`."""
    return f"{done} of {calls} calls in {seconds:.0f} s"
