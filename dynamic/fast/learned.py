"""Pullbacks whose kernel calls depend on shapes, dtypes and plain values: read once for each of those.

Sums, reshapes, losses and their like spend more time on shapes and axes than on their kernels. Their rules are run once
on samples of the shapes that came, and the calls are written down as a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamic.fast import loops
from dynamic.fast.programs import program
from dynamic.fast.samples import Call, Sample, Trace, Typed, traced
from graphs.errors import GraphError

if TYPE_CHECKING:
    from dynamic.entry import Entry
    from dynamic.fast.pullbacks import Code, Compiled

_FAMILIES = {"composed", "elementwise", "linalg", "movement", "reduction", "solver", "sorting", "window"}


def learned(pullback: Compiled) -> Code | None:
    """A pullback that is learned case by case; None for a family of which too little is known.

    What reads no array is learned at once, anything else when the same shapes come a second time: learning runs the
    kernels, which may take long.
    """
    reads_arrays = any(source is not None for source in pullback.sources)
    if pullback.op.family not in _FAMILIES and (pullback.count != 1 or reads_arrays):
        return None

    def learn(entry: Entry, cotangent: Any) -> Code:
        """What is to be called for such an entry from now on, or the rules where that cannot be known."""
        try:
            return _program(pullback, entry, cotangent, typed=not reads_arrays)
        except (AttributeError, IndexError, TypeError, ValueError, GraphError):  # rules that look at more, or do more
            return pullback.by_rules

    return loops.Learned(learn=learn, otherwise=pullback.by_rules, at_once=not reads_arrays)


def _program(pullback: Compiled, entry: Entry, cotangent: Any, *, typed: bool) -> Code:
    calls: list[Call] = []
    saved = [
        Sample(f"s{i}", value, calls, whole=True) if type(value) is np.ndarray else value
        for i, value in enumerate(entry.saved or ())
    ]
    with np.errstate(all="ignore"):
        traces = traced(pullback, Sample("g", cotangent, calls, whole=True), saved)
    if typed and _is_chain(traces):
        traces = [_typed(trace, cotangent.dtype) for trace in traces]
    return program(pullback, traces, typed=False, exact=True)


def _is_chain(traces: Sequence[Trace]) -> bool:
    """Whether each kernel reads the value before it and nothing else, so that all have the dtype of the cotangent."""
    if len(traces) != 1:
        return False
    ((calls, result),) = traces
    names = ["g", *[call.name for call in calls]]
    return all(call.values == [name] for call, name in zip(calls, names, strict=False)) and result == names[-1]


def _typed(trace: Trace, dtype: np.dtype[Any]) -> Trace:
    """The calls with numbers as arrays of the dtype that they take beside a cotangent, which NumPy reads sooner."""
    if dtype.kind != "f":
        return trace
    return trace._replace(calls=[call._replace(args=tuple(_arrays(call.args, dtype))) for call in trace.calls])


def _arrays(args: Sequence[Any], dtype: np.dtype[Any]) -> list[Any]:
    return [Typed(arg)[dtype.num] if isinstance(arg, (int, float)) else arg for arg in args]
