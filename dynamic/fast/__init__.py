"""The compiled tape: it does what `dynamic/tape.py` and `dynamic/walk.py` say, and calls them where a case is unusual.

    loops.py       the compiled module
    connect.py     what Python lends it
    records.py     ops run and recorded
    pullbacks.py   how an entry passes its cotangent back: by known kernel calls, or by the rules
    learned.py     kernel calls read for each shape, dtype and option
    programs.py    kernel calls as numbers
    samples.py     kernel calls read off the rules

Importing this raises ImportError where the compiled module was not built, or does not know this NumPy's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from dynamic import inplace, mode, tape
from dynamic import walk as textbook
from dynamic.entry import Edge, Entry
from dynamic.fast import loops
from dynamic.fast.connect import connect
from dynamic.fast.loops import watchers
from dynamic.fast.pullbacks import pullback
from dynamic.fast.records import install, operators
from dynamic.tape import History
from graphs import reverse
from graphs.op import Attrs, Op

__all__ = ["bind", "history", "operators", "step", "walk", "watchers"]


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """What the compiled interpreter calls for an op that is new to it, and where anything is unusual."""
    install(op)
    return tape.bind(op, args, attrs, pullback)


connect()
mode.followed(loops.follow)
bind = loops.binder(_bind)


def history(roots: Iterable[Edge]) -> History:
    """Every entry and leaf that led to the roots."""
    return History(*loops.history(roots))


def walk(
    entries: list[Entry],
    cotangents: dict[Any, Any],
    wanted: frozenset[Edge],
    useful: Container[Edge] | None,
    *,
    retain: bool,
    create_graph: bool,
) -> dict[Any, Any]:
    """Visit the entries, the latest first; the cotangents of the leaves, and of the entries that are `wanted`."""
    reached: dict[Any, Any] = {}
    is_plain = not create_graph and useful is None
    if is_plain and loops.walk(entries, cotangents, reached, wanted, bool(retain), _attend, textbook.hooked, _carry):
        return reached
    return reached | textbook.walk(entries, cotangents, wanted, useful, retain=retain, create_graph=create_graph)


def _attend(entry: Entry, cotangents: dict[Any, Any]) -> None:
    """Do for an entry what is unusual before its cotangent is carried on."""
    textbook.prepare(entry)
    if entry.hooks:
        cotangents[entry] = textbook.hooked(entry, cotangents.pop(entry))


def _carry(entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
    """Carry a cotangent to the inputs of an entry by the rules, where ops are observed."""
    for edge, contribution in textbook.carry(entry, cotangents.pop(entry), retain=keep):
        reverse.arrive(cotangents, edge, contribution)
        del contribution  # while the next rule runs, nothing but `cotangents` holds it


def step(f: Callable[..., Any], args: tuple[Any, ...], positions: list[int]) -> tuple[Any, ...] | None:
    """The value and gradients of `f(*args)` in one compiled call: `dynamic/loops/step.c` says what it returns."""
    return loops.step(_TOOLS, f, args, positions)


def _walked(entries: list[Entry], cotangents: dict[Any, Any]) -> dict[Any, Any]:
    return walk(entries, cotangents, frozenset(), None, retain=False, create_graph=False)


_TOOLS = (_walked, inplace.owned, tape.zeros)
