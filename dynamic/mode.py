"""Whether ops are recorded, for each thread on its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Mode(threading.local):
    recording = True


state = _Mode()


def is_grad_enabled() -> bool:
    """Whether ops on tensors that require gradients are recorded in this thread."""
    return state.recording


@contextmanager
def set_grad_enabled(recording: bool) -> Iterator[None]:
    """Record, or do not record, inside the block."""
    before, state.recording = state.recording, recording
    try:
        yield
    finally:
        state.recording = before


@contextmanager
def no_grad() -> Iterator[None]:
    """Record nothing inside the block; also a decorator."""
    with set_grad_enabled(False):
        yield


@contextmanager
def enable_grad() -> Iterator[None]:
    """Record inside the block, also within `no_grad`; also a decorator."""
    with set_grad_enabled(True):
        yield
