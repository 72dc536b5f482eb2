"""Python's search for garbage in cycles, put off while it would only cost time."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator

from graphs.blocks import Block, Hold, undo_after


class paused(Block, ContextDecorator):  # noqa: N801  (`with collector.paused():` reads like a function)
    """Look for no garbage in cycles inside the block, as a context manager or a decorator.

    Where many objects are made and none is in a cycle, each search walks over all of them and finds nothing.
    """

    def __enter__(self) -> None:
        pause(self.hold())


def pause(hold: Hold) -> None:
    """The same until the block of a hold has ended."""
    if gc.isenabled():
        undo_after(hold, gc.enable)
        gc.disable()
