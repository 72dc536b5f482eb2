"""Numbers that rewriting gets wrong: signed zeros, infinities, NaN, the ends of ranges; and how results differ."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
PLAIN = (0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, np.inf, -np.inf, np.nan)


def numbers(dtype: Any, ends: bool = True) -> Array:
    """The numbers of a dtype that rules may get wrong; those at the ends of its range only if `ends`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind != "f":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array(sorted({low, 0, 1, 2, 3, high // 2, high, *((-1, -2) if low else ())}), dtype)
    info = np.finfo(dtype)
    extreme = (info.tiny, info.smallest_subnormal, info.max, -info.max) if ends else ()
    return np.array([*PLAIN, *extreme], dtype)


def pairs(dtype: Any, ends: bool = True) -> Array:
    """Rows of every two numbers."""
    x = numbers(dtype, ends)
    return np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)


def differences(found: Array, expected: Array) -> set[str]:
    """In what two results differ: dtype, where NaN is, infinities, zeros and their signs, and by rounding."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return {"spec"}
    if expected.dtype.kind != "f":
        return set() if np.array_equal(found, expected) else {"value"}
    both = ~np.isnan(found) & ~np.isnan(expected)
    x, y = found[both], expected[both]
    differ = (x != y) | (np.signbit(x) != np.signbit(y))
    infinite, zero = np.isinf(x) | np.isinf(y), (x == 0) | (y == 0)
    seen = {
        "NaN": np.any(np.isnan(found) != np.isnan(expected)),
        "infinity": np.any(differ & infinite),
        "sign of zero": np.any(differ & (x == 0) & (y == 0)),
        "zero": np.any(differ & ~infinite & zero & (x != y)),
        "rounding": np.any(differ & ~infinite & ~zero),
    }
    return {what for what, is_so in seen.items() if is_so}
