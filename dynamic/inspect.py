"""Looking at a tape: how many entries, and how many bytes they hold."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from dynamic.inplace import owner_of
from dynamic.tape import Entry, entries_before
from dynamic.tensor import Tensor


class TapeStats(NamedTuple):
    """What the history of a tensor holds: entries, bytes of the entries themselves, bytes of the saved arrays."""

    nodes: int
    structure_bytes: int
    saved_bytes: int


def tape_stats(tensor: Tensor) -> TapeStats:
    """Count the history of a tensor. Memory shared by several saved arrays is counted once; leaves are not saved."""
    if tensor._entry is None:
        return TapeStats(0, 0, 0)
    entries = entries_before([tensor._entry])
    leaves = {id(owner_of(e._data)) for entry in entries for e in entry.edges if isinstance(e, Tensor)}
    owners = {id(o): o.nbytes for entry in entries for o in _saved(entry) if id(o) not in leaves}
    return TapeStats(len(entries), sum(map(_structure_bytes, entries)), sum(owners.values()))


def _saved(entry: Entry) -> list[Any]:
    values = [v for residuals in entry.residuals or () for v in residuals or ()]
    return [owner_of(v) for v in values if isinstance(v, np.ndarray)]


def _structure_bytes(entry: Entry) -> int:
    parts: list[Any] = [
        entry,
        entry.edges,
        entry.attrs,
        entry.specs,
        entry.residuals,
        *(entry.residuals or ()),
    ]
    return sum(sys.getsizeof(part) for part in parts if part is not None)
