"""What a step holds afterwards: references, objects, bytes."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic.node import Node
from graphs import promotion

# What is held -----------------------------------------------------------------------------------------------------

SINGLES = (None, True, Node, dynamic.Tensor, np.ndarray, np.dtype(np.float32), np.dtype(np.float64))


def growth(step: Callable[[], Any], count: int = 100) -> dict[str, int]:
    """What is held more after `count` steps: references to what lives anyway, objects, and bytes of memory.

    The least of three readings: what the interpreter keeps for later use grows now and then.
    """
    lent = [*SINGLES, g.sin, g.add.kernel, Node.__slots__, *list(promotion.numbers.values())[:8]]
    for _ in range(50):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        readings = []
        for times in (50, count, count, count):
            for _ in range(times):
                step()
            gc.collect()
            counts = [sys.getrefcount(one) for one in lent]
            readings.append([*counts, len(gc.get_objects()), tracemalloc.get_traced_memory()[0]])
    finally:
        tracemalloc.stop()
    *references, objects, traced = np.diff(readings, axis=0).min(axis=0).tolist()
    return {"references": max(references), "objects": objects, "bytes": traced}


def failing(step: Callable[[], Any], error: type[BaseException]) -> None:
    with pytest.raises(error):  # an error that does not come would be a test of nothing
        step()


def assert_nothing_grows(step: Callable[[], Any]) -> None:
    # A leak is one a step, of 16 bytes at least. What the interpreter keeps for later use is as much in more steps.
    for steps in (100, 1000):
        found = growth(step, steps)
        if found["references"] < steps / 10 and found["objects"] < steps / 10 and found["bytes"] < 16 * steps:
            return
    pytest.fail(f"in {steps} steps: {found}")
