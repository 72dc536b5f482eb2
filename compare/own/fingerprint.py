"""Fingerprints of values, to find out what has changed: that of a value is equal while the value is as it was."""

from __future__ import annotations

import itertools
import random
import zlib
from collections import deque
from typing import Any

import numpy as np

from compare.own import users

MOST = 10_000
"""Items of one container that are looked at; of a longer one, its length."""
DEEPEST = 8

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, range, slice)
_COUNTED = (itertools.count,)  # its repr tells how far it is


def fingerprint(value: Any, depth: int = 0) -> Any:
    """Arrays by their bytes, containers and objects by their items, generators by their state, the rest by identity."""
    if isinstance(value, (*_PLAIN, *_COUNTED)):
        return type(value), repr(value)
    if isinstance(value, np.ndarray):
        return id(value), value.shape, value.dtype.str, _bytes(value)
    if isinstance(value, random.Random):
        return id(value), value.getstate()
    if isinstance(value, np.random.Generator):
        return id(value), str(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return id(value), str(value.get_state(legacy=False))
    if depth >= DEEPEST:
        return id(value)
    return id(value), _items(value, depth + 1)


def _items(value: Any, depth: int) -> Any:
    if isinstance(value, (list, tuple, deque, dict, set, frozenset)) and len(value) > MOST:
        return len(value)
    if isinstance(value, (list, tuple, deque)):
        return [fingerprint(item, depth) for item in value]
    if isinstance(value, dict):
        return [(fingerprint(key, depth), fingerprint(item, depth)) for key, item in value.items()]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, (set, frozenset)):
        return frozenset(map(id, value)) if len(value) else 0
    return _items(vars(value), depth) if hasattr(value, "__dict__") and users.defined(value) else None


def _bytes(array: np.ndarray) -> Any:
    """A checksum of an array's bytes; of one that holds objects, which these are."""
    if array.dtype.hasobject:
        return tuple(map(id, array.ravel()[:MOST]))
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0
