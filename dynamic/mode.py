"""Whether ops are recorded, for each thread on its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType


class _Mode(threading.local):
    recording = True
    inference = False


state = _Mode()
listeners: list[Callable[[bool], None]] = []
"""Called in a thread whenever it begins or stops recording: the compiled tape has a flag of its own."""
# One item for each block in any thread that does not record. While it is empty, nobody needs to ask their own thread.
suspended: list[None] = []


def is_grad_enabled() -> bool:
    """Whether ops on tensors that require gradients are recorded in this thread."""
    return state.recording


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return state.inference


def _record(whether: bool) -> None:
    state.recording = whether
    for listener in listeners:
        listener(whether)


class set_grad_enabled(ContextDecorator):  # noqa: N801  (a context manager, named as PyTorch names it)
    """Record, or do not record, inside the block; also a decorator."""

    def __init__(self, recording: bool) -> None:
        self._recording = recording
        self._before: list[bool] = []  # a decorated function may call itself

    def __enter__(self) -> None:
        self._before.append(state.recording)
        _record(self._recording and not state.inference)
        if not self._recording:
            suspended.append(None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._recording:
            suspended.pop()
        _record(self._before.pop())


class no_grad(set_grad_enabled):  # noqa: N801
    """Record nothing inside the block; also a decorator."""

    def __init__(self) -> None:
        super().__init__(recording=False)


class enable_grad(set_grad_enabled):  # noqa: N801
    """Record inside the block, also within `no_grad`; also a decorator."""

    def __init__(self) -> None:
        super().__init__(recording=True)


class inference_mode(set_grad_enabled):  # noqa: N801
    """Record nothing inside the block, not even within `enable_grad`; also a decorator.

    Tensors made inside are tensors like all others, so that nothing PyTorch forbids of them afterwards is forbidden.
    `inference_mode(False)` records again, as `enable_grad` does outside.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__(recording=not mode)
        self._outside: list[bool] = []

    def __enter__(self) -> None:
        self._outside.append(state.inference)
        state.inference = not self._recording
        super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        state.inference = self._outside.pop()
