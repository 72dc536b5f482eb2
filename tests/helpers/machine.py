"""A machine on which time passes as a test says: who had a core, and who waited for one."""

from __future__ import annotations

from compare.engines import process


class Machine:
    """The clock and the scheduler that `compare.engines.process.SpentSeconds` reads."""

    def __init__(self, monkeypatch):
        self.at, self.shares = 0.0, {}
        monkeypatch.setattr(process.time, "monotonic", lambda: self.at)
        monkeypatch.setattr(process, "shares", lambda _: dict(self.shares))

    def passes(self, seconds, **threads):
        """So many seconds, of which each thread named ran and waited so many; the others have ended."""
        before, self.at = self.shares, self.at + seconds
        self.shares = {
            name: tuple(int(old + new * 1e9) for old, new in zip(before.get(name, (0, 0)), share, strict=True))
            for name, share in threads.items()
        }
