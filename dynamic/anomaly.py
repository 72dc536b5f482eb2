"""detect_anomaly: stop at the first NaN or infinity, and name the forward line of an op that fails in backward."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial
from types import FrameType
from typing import Any
from weakref import ref

import numpy as np
from numpy._core import umath

from dynamic.node import Node
from dynamic.tape import carry, visit
from graphs import dispatch
from graphs.anomaly import anomaly
from graphs.blocks import Block, Table, enter, undo_after
from graphs.errors import user_line
from graphs.op import Attrs, Op

_VISITS = {visit.__code__, carry.__code__}  # the frames of backward that are busy with one node, their local `node`
_warnings: ContextVar[Any] = umath._extobj_contextvar  # in which NumPy keeps when to warn: `np.seterr` is Python


class detect_anomaly(Block, ContextDecorator):  # noqa: N801  (a context manager, named as PyTorch names it)
    """Raise AnomalyError where an op inside the block makes NaN, or infinity from finite values; also a decorator.

    The error names the op, its inputs and the user's line; in backward the line is that of the forward op. Any other
    error that ends a backward pass gets a note with that line. `infinite=False` looks for NaN alone. Every result is
    read once more, so this is for debugging; NumPy's own warnings are off inside the block.
    """

    def __init__(self, infinite: bool = True) -> None:
        self._infinite = infinite
        self._lines = Lines()

    def __enter__(self) -> None:
        hold = self.hold()
        enter(dispatch.detours, hold, self._lines.noting)
        enter(dispatch.observers, hold, self._look)
        undo_after(hold, partial(_warnings.set, _warnings.get()))
        np.seterr(all="ignore")

    def finish(self, _kind: Any, error: Any, _trace: Any, /) -> None:  # type: ignore[override]
        """Add a note to an error: the forward line of the op whose gradient was being computed."""
        if isinstance(error, Exception):
            self._lines.note(error)

    def _look(self, op: Op, arrays: Sequence[Any], _: Attrs, out: Any) -> None:
        if not np.isfinite(out).all():
            where, line = self._lines.place(sys._getframe(1))
            error = anomaly(op, arrays, out, infinite=self._infinite, where=where, line=line)
            if error is not None:
                raise error


class forward_lines(Block):  # noqa: N801
    """Find the forward line of any op that runs inside the block, also in backward: for tools that observe ops."""

    def __enter__(self) -> Lines:
        lines = Lines()
        enter(dispatch.detours, self.hold(), lines.noting)
        return lines


class Lines:
    """The user's line that recorded each node; in backward this gives the line of the op whose gradient runs."""

    def __init__(self) -> None:
        self._lines: Table[str] = {}  # by weak references to nodes

    def noting(self, interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
        """Wrap an interpreter to write down the line of each node that it makes."""

        def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
            result = interpreter(op, args, attrs)
            node = getattr(result, "_edge", None)
            if type(node) is Node:
                self._write_down(node, self.place(sys._getframe(1))[1])
            return result

        return bind

    def _write_down(self, node: Node, line: str) -> None:
        if ref(node) not in self._lines:
            self._lines[ref(node, self._lines.pop)] = line

    def of(self, node: Node) -> str:
        """The line that recorded a node; empty where the node was recorded outside the block."""
        return self._lines.get(ref(node), "")

    def place(self, start: FrameType) -> tuple[str, str]:
        """In backward, the op whose gradient runs, in words, and its forward line; else "" and the line being run."""
        frame: FrameType | None = start
        while frame is not None:
            if frame.f_code in _VISITS:
                node = frame.f_locals["node"]
                return f" in the gradient of {node.op.name}", self._lines.get(ref(node), "")
            frame = frame.f_back
        return "", user_line(start)

    def note(self, error: Exception) -> None:
        """Add a note to an error of a backward pass: the forward line of the op; without a backward pass, no note."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code in _VISITS]
        if frames:
            node = frames[-1].f_locals["node"]
            error.add_note(f"in the gradient of {node.op.name} ({self._lines.get(ref(node), 'recorded elsewhere')})")
