"""In what order deferred ops run, and which of them together.

What is ordered are levels, the ops of one bundle and one depth, and not single ops: there are a hundred times fewer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from dynamic.batching.nodes import DeferredNode, Level
from dynamic.batching.signatures import Bundle

Schedule = Callable[[Sequence[Level]], Iterator[list[Level]]]
"""From levels, by depth, to the levels that run together."""


def by_depth(levels: Sequence[Level]) -> Iterator[list[Level]]:
    """Each level alone, the lowest first (Looks et al., 2017)."""
    for level in levels:
        yield [level]


def by_agenda(levels: Sequence[Level]) -> Iterator[list[Level]]:
    """All that can run of the bundle whose remaining ops have the lowest depth on average (Neubig et al., 2017)."""
    depths: defaultdict[Bundle, int] = defaultdict(int)
    counts: defaultdict[Bundle, int] = defaultdict(int)

    def count(level: Level, sign: int) -> None:
        depths[level.bundle] += sign * level.depth * len(level.nodes)
        counts[level.bundle] += sign * len(level.nodes)

    for level in levels:
        count(level, 1)
    _link(levels)
    agenda = _Agenda(levels)
    while agenda.ready:
        chosen = agenda.take(min(agenda.ready, key=lambda bundle: depths[bundle] / counts[bundle]))
        for level in chosen:
            count(level, -1)
        yield chosen


def by_path(levels: Sequence[Level]) -> Iterator[list[Level]]:
    """All that can run of the bundle that starts the longest path to the end, as in list scheduling (Hu, 1961).

    Chains of different lengths then end together, rather than begin together.
    """
    _link(levels)
    for level in reversed(levels):
        level.rank = max([user.rank for user in level.users], default=0) + 1
    agenda = _Agenda(levels)
    while agenda.ready:
        yield agenda.take(max(agenda.ready, key=agenda.ranks.__getitem__))


def _link(levels: Sequence[Level]) -> None:
    """Note which levels read each level, and how many levels it waits for."""
    for level in levels:
        sources = _awaited(level.nodes)
        level.waiting = len(sources)
        for source in sources:
            source.users.append(level)


class _Agenda:
    """The levels whose inputs are there, by bundle, and the highest of their ranks."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.ready: defaultdict[Bundle, list[Level]] = defaultdict(list)
        self.ranks: defaultdict[Bundle, int] = defaultdict(int)
        for level in levels:
            if not level.waiting:
                self._add(level)

    def _add(self, level: Level) -> None:
        self.ready[level.bundle].append(level)
        self.ranks[level.bundle] = max(self.ranks[level.bundle], level.rank)

    def take(self, bundle: Bundle) -> list[Level]:
        """The levels of a bundle that can run. Taking them makes ready the bundles that waited only for these."""
        chosen = self.ready.pop(bundle)
        del self.ranks[bundle]
        for level in chosen:
            for user in level.users:
                user.waiting -= 1
                if not user.waiting:
                    self._add(user)
        return chosen


def _awaited(nodes: list[DeferredNode]) -> set[Level]:
    """The levels of what some nodes read that have not run."""
    return {level for level in {run.level for node in nodes for run in node.inputs} if not level.ran}


SCHEDULES: dict[str, Schedule] = {"path": by_path, "agenda": by_agenda, "depth": by_depth}
