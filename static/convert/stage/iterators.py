"""Iterators: what may be taken of them where the graph has to say the same as Python, which cannot move one back."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import numpy as np

from static.convert.stage.places import is_ours
from static.convert.stage.unknown import refuse
from static.trace.symbol import Symbol

TAKEN_WHOLE: tuple[type, ...] = (
    enumerate,
    zip,
    type(reversed([])),
    type(iter([])),
    type(iter(())),
    type(iter(range(0))),
)
"""Iterators over containers: taking all items at once changes nothing but the iterator."""
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_RESTING = (list, tuple, range, dict, set, frozenset, str, bytes, bytearray, deque, OrderedDict, np.ndarray, Symbol)
_RESTING_ITERS = {getattr(kind, "__iter__", None) for kind in (*_RESTING, *_VIEWS)}


def is_at_rest(items: Any) -> bool:
    """Whether nothing happens when an item is taken: the items of a container are there already."""
    return type(items) in TAKEN_WHOLE or getattr(type(items), "__iter__", None) in _RESTING_ITERS


def is_iterator(items: Any) -> bool:
    """Whether taking an item changes what is left."""
    return hasattr(type(items), "__next__")


def check_takes(items: Any) -> None:
    """Raise ControlFlowError for an iterator that nothing would move back, or that lasts beyond the call."""
    if is_iterator(items) and not is_ours(items):
        refuse(
            "an iterator moves on where only the run knows whether that is reached, or it lasts beyond the call; loop "
            "over a list of its items"
        )
