"""Why a function was compiled again: the first thing in which the keys of two calls differ, in words.

A key is the layout of the arguments, the keys of the static values, the shape and dtype of every array, and the values
of what Python decided by besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def difference(before: Any, now: Any, labels: Sequence[str]) -> str:
    """What was otherwise in the call before; `labels` are the names of the arrays."""
    if before[0] != now[0]:
        is_nested_alike = before[0][0] == now[0][0]
        return f"the arguments are {'arrays for tensors, or the reverse' if is_nested_alike else 'nested differently'}"
    for old, new in zip(before[1], now[1], strict=True):
        if old != new:
            return f"a static value was {_shown(old)}, now {_shown(new)}"
    for label, (old_shape, old_dtype), (shape, dtype) in zip(labels, before[2], now[2], strict=True):
        if old_dtype != dtype:
            return f"{label}: dtype was {old_dtype}, now {dtype}"
        if len(old_shape) != len(shape):
            return f"{label}: had {len(old_shape)} axes, now {len(shape)}"
        for axis, (old, new) in enumerate(zip(old_shape, shape, strict=True)):
            if str(old) != str(new):
                return f"{label}: dim {axis} was {old}, now {new}"
    return "a module was in another mode" if before[3] != now[3] else "evicted before"


def remedy(reason: str, shapes: str, refused: bool = False) -> str:
    """What keeps a function with this shape policy from being compiled for this reason again and again.

    `refused` tells that no graph serves all sizes.
    """
    if reason.startswith("a static value"):
        return "pass the value as an array, or raise limit"
    if ": dim " not in reason:
        return "raise limit"
    if refused:
        return "use shapes='bucket' (few padded sizes), or raise limit"
    if shapes in ("auto", "exact"):
        return "use shapes='symbolic' (one compile for all sizes), or 'bucket' (few padded sizes), or raise limit"
    return "give fewer buckets, or raise limit" if shapes == "bucket" else "raise limit"


def _shown(key: Any) -> str:
    kind, value = key
    return value if kind is float else repr(value)
