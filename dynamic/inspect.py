"""Looking at a tape: how many entries, and how many bytes they hold."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from dynamic.entry import Entry
from dynamic.inplace import owner_of
from dynamic.tapes import history
from dynamic.tensor import Tensor


class TapeStats(NamedTuple):
    """What the history of a tensor holds: entries, bytes of the entries themselves, bytes of the saved arrays."""

    nodes: int
    structure_bytes: int
    saved_bytes: int


def tape_stats(tensor: Tensor) -> TapeStats:
    """Count the history of a tensor. Memory shared by several saved arrays is counted once; leaves are not saved."""
    if tensor._edge is None:
        return TapeStats(0, 0, 0)
    entries, ends = history([tensor._edge])
    leaves = {id(owner_of(leaf._data)) for end in ends if (leaf := end.tensor()) is not None}
    owners = {id(o): o.nbytes for entry in entries for o in _saved(entry) if id(o) not in leaves}
    return TapeStats(len(entries), sum(map(_structure_bytes, entries)), sum(owners.values()))


def _saved(entry: Entry) -> list[Any]:
    return [owner_of(value) for value in entry.saved or () if isinstance(value, np.ndarray)]


def _structure_bytes(entry: Entry) -> int:
    """The entry and what it alone holds, but for the arrays."""
    saved = [value for value in entry.saved or () if isinstance(value, tuple)]
    parts: list[Any] = [entry, entry.edges, entry.saved, entry.shape, entry.sequence, *saved]
    if entry.attrs:
        parts.append(entry.attrs)
    return sum(sys.getsizeof(part) for part in parts if part is not None and part != ())
