"""The executables that a jitted function keeps, and the counts of what it has done."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from static.call.executable import Executable


@dataclass
class Stats:
    """What a jitted function has done: `reasons` says for every compile why it was needed.

    `useful` and `computed` count elements of the arrays with padded axes, before and after padding.
    """

    compiles: int = 0
    hits: int = 0
    misses: int = 0
    evictions: int = 0
    compile_seconds: float = 0.0
    useful: int = 0
    computed: int = 0
    reasons: list[str] = field(default_factory=list)


class Held(OrderedDict[Hashable, Executable]):
    """The executables by key, the one used last at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stats = Stats()
        self._newest: Hashable = None

    def is_hit(self, key: Hashable) -> bool:
        """Whether the executable of this key is held; if so it is used now."""
        if key is not self._newest:
            if key not in self:
                return False
            self.move_to_end(key)
            self._newest = key
        self.stats.hits += 1
        return True

    def keep(self, key: Hashable, executable: Executable) -> None:
        """Hold what was compiled for this key, and is used now."""
        self[key] = executable
        self._newest = key

    def drop(self) -> None:
        """Let go of the one used longest ago."""
        self.popitem(last=False)
        self._newest = None
        self.stats.evictions += 1
