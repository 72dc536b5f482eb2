"""detect_anomaly: stop at the first NaN or infinity, and name the forward line of what fails in backward."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dynamic.entry import Entry
from dynamic.tensor import Tensor
from dynamic.walk import carry, visit
from graphs import dispatch
from graphs.anomaly import anomaly
from graphs.errors import user_line
from graphs.op import Attrs, Op

_VISITS = {visit.__code__, carry.__code__}  # the frames of backward that are busy with one entry, their local `entry`


@contextmanager
def detect_anomaly(infinite: bool = True) -> Iterator[None]:
    """Raise AnomalyError where an op inside the block makes NaN, or infinity of finite values; also a decorator.

    The error names the op, its inputs and the user's line; in backward the line is that of the forward op. Any other
    error that ends a backward pass gets a note with that line. `infinite=False` looks for NaN alone. Every result is
    read once more, so this is for debugging; NumPy's own warnings are off inside.
    """
    with forward_lines() as lines, np.errstate(all="ignore"):

        def look(op: Op, arrays: Sequence[Any], _: Attrs, out: Any) -> None:
            if not np.isfinite(out).all():
                where, line = lines.place(sys._getframe(1))
                error = anomaly(op, arrays, out, infinite=infinite, where=where, line=line)
                if error is not None:
                    raise error

        try:
            with dispatch.observed(look):
                yield
        except Exception as error:
            lines.note(error)
            raise


@contextmanager
def forward_lines() -> Iterator[Lines]:
    """Know the forward line of whatever runs inside the block: for tools that observe ops."""
    lines, before = Lines(), dispatch.interpreters[Tensor]
    dispatch.interpret(Tensor, lines.noting(before))
    try:
        yield lines
    finally:
        dispatch.interpret(Tensor, before)


class Lines:
    """The line that recorded each entry, and so the line of all that runs."""

    def __init__(self) -> None:
        self._lines: WeakKeyDictionary[Entry, str] = WeakKeyDictionary()

    def noting(self, interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
        """The interpreter, with the line of each entry that it makes written down."""

        def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
            result = interpreter(op, args, attrs)
            entry = getattr(result, "_edge", None)
            if type(entry) is Entry:
                self._lines.setdefault(entry, self.place(sys._getframe(1))[1])
            return result

        return bind

    def place(self, start: FrameType) -> tuple[str, str]:
        """Which gradient is being computed, in words, and the line of its op; outside backward, the line being run."""
        frame: FrameType | None = start
        while frame is not None:
            if frame.f_code in _VISITS:
                entry = frame.f_locals["entry"]
                return f" in the gradient of {entry.op.name}", self._lines.get(entry, "")
            frame = frame.f_back
        return "", user_line(start)

    def note(self, error: Exception) -> None:
        """Say on an error which forward line backward was busy with; nothing where it was not."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code in _VISITS]
        if frames:
            entry = frames[-1].f_locals["entry"]
            error.add_note(f"in the gradient of {entry.op.name} ({self._lines.get(entry, 'recorded elsewhere')})")
