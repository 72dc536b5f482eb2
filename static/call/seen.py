"""Calls seen before: arguments like those of one of them take its way, past flattening, policy and keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from graphs import tree
from static.call import layout

LAYOUTS = 8  # for which a function is made that reads them; each is asked in turn
KINDS = 1024  # of arguments of one layout

Way = Callable[..., Any]


class Seen:
    """Knows arguments by what they are exactly: containers, order of keys, types, shapes, dtypes, static values.

    Whoever adds a way must see to it that it stays the one for such arguments, or forget.
    """

    def __init__(self) -> None:
        self._ways: dict[Hashable, dict[Hashable, Way]] = {}
        self._calls: list[tuple[layout.Call, dict[Hashable, Way]]] = []  # may grow while another thread goes through it

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """What the way of these arguments gives; NotImplemented when none is known, or it says so."""
        for call, ways in self._calls:
            result = call(ways, args)
            if result is not NotImplemented:
                return result
        return NotImplemented

    def add(self, found: Hashable, leaves: Sequence[Any], structure: tree.Structure, way: Way) -> None:
        """Let `way(*arrays)` be called for arguments like these, with those of their leaves that are traced.

        `found` is their layout, with the order of the keys of a dict.
        """
        known = found, *map(type, leaves)
        if known not in self._ways:
            if len(self._ways) >= LAYOUTS:
                return
            self._ways[known] = {}
            call = layout.finder(leaves, structure)
            if call is not None:
                self._calls.append((call, self._ways[known]))
        ways = self._ways[known]
        if len(ways) >= KINDS:
            ways.clear()
        ways[layout.kind(leaves)] = way

    def forget(self) -> None:
        """No way is known from now on."""
        for ways in self._ways.values():
            ways.clear()
