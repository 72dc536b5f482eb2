"""The lines of a dynamic step: which kernel is of which line, and the time from each kernel to the next."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import dynamic
from compare.engines.graphduel.functions import transformed
from compare.engines.step import LineOp
from compare.instruments.ledger.tape import owner, watched
from compare.instruments.lines import ticks
from compare.records.breakdowns import SourceLinesArm
from compare.workloads.base import Case
from dynamic.anomaly import forward_lines
from graphs import dispatch, tree


class LineKernel(NamedTuple):
    """A kernel of a step, whose seconds are read apart, and the shape and dtype of its result."""

    op: LineOp
    result: tuple[Any, ...]


def lines(case: Case) -> SourceLinesArm:
    """The row of the dynamic engine, over the first example of a case."""
    arguments = (case.params, *case.examples[0])
    kernels = recorded(case, arguments)
    counted = ticks.Counted({})
    for kernel in kernels:
        counted.add(kernel.op)
    step = transformed(dynamic, case.loss, case.argnum)
    return ticks.timed(counted, lambda: step(*arguments), lambda: _watched(case, arguments, kernels))


def recorded(case: Case, arguments: Sequence[Any]) -> list[LineKernel]:
    """The kernels of a step in the order they run.

    A kernel that only adds cotangents up is of the line whose gradient came last. A result that is a view of what is
    there already makes no bytes.
    """
    log = _LineLog({id(owner(leaf)) for leaf in tree.leaves(arguments) if isinstance(leaf, np.ndarray)})
    step = transformed(dynamic, log.marking(case.loss), case.argnum)
    with forward_lines() as places, dispatch.observed(lambda _op, _arrays, _attrs, out: log.note(out, places)):
        step(*arguments)
    return log.kernels


@dataclass
class _LineLog:
    arguments: set[int]
    kernels: list[LineKernel] = field(default_factory=list)
    alive: list[tuple[LineOp, Any]] = field(default_factory=list)
    forward: bool = True

    def note(self, out: Any, places: Any) -> None:
        """Write down a kernel and what it has made."""
        gradient_of, line = places.place(sys._getframe(_CALLER))
        if not self.forward and not gradient_of and self.kernels:
            line = self.kernels[-1].op.line
        made = owner(out)
        fresh = id(made) not in self.arguments and not any(there() is made for _, there in self.alive[-_NEAR:])
        op = LineOp(line, made=made.nbytes if fresh else 0)
        self.kernels.append(LineKernel(op, (out.shape, out.dtype)))
        if fresh:
            self.alive.append((op, weakref.ref(made)))

    def marking(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which marks where it has returned, and what is kept then beside its own result."""

        def marked(*args: Any) -> Any:
            output = f(*args)
            results = {id(owner(_array(leaf))) for leaf in tree.leaves(output) if hasattr(leaf, "shape")}
            self.forward = False
            for op, there in self.alive:
                if there() is not None and id(there()) not in results:
                    op.saved, op.saved_bytes = 1, op.made
            return output

        return marked


_CALLER = 2  # from `_LineLog.note` past the observer, to what has run the kernel
_NEAR = 64  # a view is mostly of what was made a few kernels before; an older one makes a line seem to make more


def _array(leaf: Any) -> Any:
    return leaf.numpy(force=True) if isinstance(leaf, dynamic.Tensor) else leaf


def _watched(case: Case, arguments: Sequence[Any], kernels: Sequence[LineKernel]) -> ticks.Spans:
    """The stretches of one step: from kernel to kernel; the first from where the function is entered."""
    made: list[tuple[Any, ...]] = []
    seconds: list[float] = []
    last = perf_counter()

    def hear(out: Any) -> None:
        nonlocal last
        seconds.append(perf_counter() - last)
        made.append((out.shape, out.dtype))
        last = perf_counter()

    def entered(*args: Any) -> Any:
        nonlocal last
        last = perf_counter()
        return case.loss(*args)

    step = transformed(dynamic, entered, case.argnum)
    with watched(hear):
        step(*arguments)
    return list(zip(aligned(kernels, made), seconds, strict=True))


def aligned(kernels: Sequence[LineKernel], made: Sequence[tuple[Any, ...]]) -> list[str]:
    """The line of each array that the tape reports, by the kernels that were recorded; "" where they do not agree."""
    results = [kernel.result for kernel in kernels]
    if results == list(made):
        return [kernel.op.line for kernel in kernels]
    lines = [""] * len(made)
    for block in SequenceMatcher(None, results, made, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            lines[block.b + i] = kernels[block.a + i].op.line
    return lines
