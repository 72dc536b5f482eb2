"""What calling a function may change: what its code can reach by name, and how to see that it has changed.

That is found by fingerprints: that of a value is equal while the value is as it was.
"""

from __future__ import annotations

import itertools
import random
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import numpy as np

import dynamic
from compare.engines.reach import ReachedCode, is_users_class

MOST = 10_000
"""Items of one container that are looked at; of a longer one, its length."""
DEEPEST = 8

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, range, slice, itertools.count)


@dataclass(frozen=True)
class Changeable:
    """Something that can be changed, by the name that a message calls it, and how to read it."""

    name: str
    read: Callable[[], Any]


def places(f: Any) -> list[Changeable]:
    """All that the code of `f`, and of the user's functions that it names, can reach by name."""
    own = Changeable("the object that it is a method of", lambda: fingerprint(getattr(f, "__self__", f)))
    reached = ReachedCode(f)
    return [
        *([] if isinstance(f, FunctionType) else [own]),
        *(Changeable(place.label, partial(_state, place.read)) for place in reached.places),
        *(place for function in reached.functions for place in _of_function(function)),
    ]


def _of_function(f: FunctionType) -> Iterator[Changeable]:
    yield Changeable(f"an attribute of {f.__name__}", lambda: fingerprint(f.__dict__))


def _state(read: Callable[[], Any]) -> Any:
    """The fingerprint of what is in a place; of a class, of what it holds itself."""
    value = read()
    if isinstance(value, type):
        held = {name: item for name, item in vars(value).items() if not name.startswith("__")}
        return id(value), fingerprint(held)[1]
    return fingerprint(value)


# Fingerprints ------------------------------------------------------------------------------------------------


def fingerprint(value: Any, depth: int = 0) -> Any:
    """Arrays by their bytes, containers and objects by their items, generators by their state, the rest by identity.

    Tensors are as their arrays, modules as their tensors and their mode.
    """
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, dynamic.Tensor):
        return id(value), fingerprint(value.numpy(force=True))
    if hasattr(value, "named_buffers") and _is_module(value):
        tensors = [fingerprint(tensor) for tensor in (*value.parameters(), *value.buffers())]
        return id(value), tensors, [module.training for module in value.modules()]
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


def _is_module(value: Any) -> bool:
    loaded = sys.modules.get("dynamic.nn.module")
    return loaded is not None and isinstance(value, loaded.Module)


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
    return _items(vars(value), depth) if hasattr(value, "__dict__") and is_users_class(type(value)) else None


def _bytes(array: np.ndarray) -> Any:
    """A checksum of an array's bytes; of one that holds objects, which these are."""
    if array.dtype.hasobject:
        return tuple(map(id, array.ravel()[:MOST]))
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0


def line(frame: FrameType) -> str:
    """`mine.py:12`, the line that a frame is at."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
