"""The cache of a jitted function: what runs for the layout of a call, and the executables in order of use.

The layout of a call is what its arguments are exactly: containers, order of keys, types, shapes, dtypes, static values.
A call whose layout is known goes past flattening, shape policy and keys.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphs import tree
from static.call.containers import Reader, finder, kind
from static.call.executable import Executable

LAYOUTS = 8  # of containers and types, for which a function is made that reads them; each is asked in turn
KINDS = 1024  # of arguments: what runs for them is noted again when there are more


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


class Entry(NamedTuple):
    """What runs for a layout: the key of the executable, and the function to call with the traced leaves, as arrays."""

    key: Hashable
    run: Callable[[Sequence[Any]], Any]


class Cache:
    """Entries by the layout of a call, and their executables by key, the one used last at the end.

    Nothing in it holds the cache itself: it is freed as soon as nobody uses it, with all its memory.
    """

    def __init__(self) -> None:
        self.stats = Stats()
        self.executables: OrderedDict[Hashable, Executable] = OrderedDict()
        self._newest: Hashable = None
        self._entries: dict[Hashable, Entry] = {}
        self._numbers: dict[Hashable, int] = {}  # of containers and types, in the order in which they came
        self._finders: list[Reader] = []  # may grow while another thread goes through it

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """What runs for the layout of these arguments gives; NotImplemented when nothing is known to."""
        for find in self._finders:
            hit = find(self._entries, args)
            if hit is not NotImplemented:
                (key, run), arrays = hit
                return run(arrays) if self.is_hit(key) else NotImplemented
        return NotImplemented

    def note(self, containers: Hashable, leaves: Sequence[Any], structure: tree.Structure, entry: Entry) -> None:
        """Let this entry run for calls laid out like these arguments; their `containers` know the order of keys.

        The caller must `forget` when it is no longer the one for such arguments.
        """
        signature = containers, *map(type, leaves)
        if signature not in self._numbers:
            if len(self._numbers) >= LAYOUTS:
                return
            number = self._numbers[signature] = len(self._numbers)
            find = finder(leaves, structure, number)
            if find is not None:
                self._finders.append(find)
        if len(self._entries) >= KINDS:
            self._entries.clear()
        self._entries[kind(leaves, self._numbers[signature])] = entry

    def forget(self) -> None:
        """No entry is known from now on; the executables stay."""
        self._entries.clear()

    def is_hit(self, key: Hashable) -> bool:
        """Whether the executable of this key is held; if so it is used now."""
        if key is not self._newest:
            if key not in self.executables:
                return False
            self.executables.move_to_end(key)
            self._newest = key
        self.stats.hits += 1
        return True

    def keep(self, key: Hashable, executable: Executable) -> None:
        """Hold what was compiled for this key, and is used now."""
        self.executables[key] = executable
        self._newest = key

    def drop(self) -> None:
        """Drop the executable used longest ago, and forget every entry."""
        self.executables.popitem(last=False)
        self._newest = None
        self.stats.evictions += 1
        self.forget()
