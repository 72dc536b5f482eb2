"""What the tests of both engines ask of each: run a function, and differentiate it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from static.passes import pipeline

ENGINES = {"dynamic": dynamic, "static": static}
each_engine = pytest.mark.parametrize("engine", ENGINES)


def run(engine: str, f: Callable[..., Any], *args: Any) -> Any:
    """f(*args) in an engine, as an array: to the bit, as the passes that may change the last digit are left out."""
    if engine == "static":
        return static.compile(f, *args, passes=pipeline.SIMPLIFY)(*args)
    result = f(*map(dynamic.tensor, args))
    return result.numpy() if isinstance(result, dynamic.Tensor) else np.asarray(result)


def gradients(engine: str, f: Callable[..., Any], *args: Any) -> Any:
    """The gradients of a scalar function in all of its arguments."""
    argnums = tuple(range(len(args)))
    if engine == "static":
        return static.compile(static.grad(f, argnums), *args)(*args)
    return dynamic.grad(f, argnums)(*args)
