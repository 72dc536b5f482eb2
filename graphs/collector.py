"""Python's search for garbage in cycles, put off while it would only cost time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Look for no garbage in cycles inside the block, as a context manager or a decorator.

    Where many objects are made and none is in a cycle, each search walks over all of them and finds nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
