"""How long a worker may take without progress: a limit that a slow or busy machine does not reach by itself.

Seconds in which a worker waited for a core count for nothing, where the system tells them (Linux); what a machine takes
longer than the one on which limits were set is a factor on them (`Pace.slowness` in `compare.run.pace`).
"""

from __future__ import annotations

import time
from pathlib import Path

LOOKS, OFTEN = 10, 1.0
"""How often a worker is looked at before its limit, and the most seconds between two looks."""


class Allowance:
    """The seconds that a process may take until it makes progress; `look` must be called `every` so many seconds."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.every = min(seconds / LOOKS, OFTEN)
        self._pid, self._seconds = pid, seconds
        self._at, self._waited = time.monotonic(), _waited(pid)
        self._charged = 0.0

    def renew(self) -> None:
        """The process has made progress."""
        self._charged = 0.0

    def look(self) -> bool:
        """Whether nothing was left at the last look: what is told now may wait for a core of this process."""
        is_over = self._charged >= 0.99 * self._seconds  # looks come a moment early
        at, waited = time.monotonic(), _waited(self._pid)
        self._charged += max(0.0, (at - self._at) - (waited - self._waited))
        self._at, self._waited = at, waited
        return is_over


def _waited(pid: int) -> float:
    """The seconds for which a process has waited for a core; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
