"""Pullbacks whose kernel calls hang on shapes, dtypes and plain values: found out once for each of those.

Sums, reshapes, losses and their like spend more on shapes and axes than on their kernels. Their rules are run once on
samples, and the calls written down. The compiled loop runs any of them. The loop in Python runs those where each kernel
reads the value before and nothing that was saved: a chain, which is what most of them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamic import native
from dynamic.program import program
from dynamic.sample import Call, Sample, Trace, Typed
from dynamic.straight import Code, total, unbroadcast
from graphs.errors import GraphError
from graphs.op import Kernel
from graphs.ops.movement import cast

if TYPE_CHECKING:
    from dynamic.entry import Entry
    from dynamic.pullback import Pullback

_MOST = 4096  # kinds of cotangents and saved values to remember for one op
_FAMILIES = {"composed", "elementwise", "linalg", "movement", "reduction", "sorting", "window"}


class Link(NamedTuple):
    """A kernel call on the value before, which stands between other arguments."""

    kernel: Kernel
    before: Sequence[Any]
    after: Sequence[Any]
    attrs: dict[str, Any]


class Chain:
    """The links from the cotangent of an entry to that of its input."""

    def __init__(self, links: list[Link], broadcasts: bool) -> None:
        self.links, self._broadcasts = links, broadcasts

    def pull(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent to the input, letting go of each value after the kernel that reads it."""
        edge: Any = entry.taken(keep)[0][0]
        cotangent = cotangents.pop(entry)
        for kernel, before, after, attrs in self.links:
            cotangent = kernel(*before, cotangent, *after, **attrs)
        if type(cotangent) is not np.ndarray:
            cotangent = np.asarray(cotangent)
        if self._broadcasts:
            cotangent = cast(cotangent, edge.dtype)
            if cotangent.shape != edge.shape:
                cotangent = unbroadcast(cotangent, edge.shape)
        cotangents[edge] = total(cotangents.pop(edge), cotangent) if edge in cotangents else cotangent


class Learned:
    """The kernel calls of a pullback, by all that they can hang on.

    That is the cotangent's shape and dtype, and what is saved, of which arrays tell no more than theirs.
    """

    def __init__(self, pullback: Pullback) -> None:
        self._pullback = pullback
        self.arrays = any(source is not None for source in pullback.sources)
        self._known: dict[Any, Code | None] = {}  # None for what was met once

    @staticmethod
    def is_possible(pullback: Pullback) -> bool:
        """Whether what the rules call may be learned."""
        if pullback.count == 1 and all(source is None for source in pullback.sources):
            return True
        return native.loops is not None and pullback.op.family in _FAMILIES

    def pull(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent of an entry to its inputs by the calls that are known, or by the rules."""
        saved = entry.saved or ()
        if self.arrays:
            saved = tuple([(v.shape, v.dtype.num) if type(v) is np.ndarray else v for v in saved])
        key = entry.shape, entry.dtype.num, saved
        try:
            run = self._known.get(key) or self._met(key, entry, cotangents[entry])
        except TypeError:  # an option without a hash, such as a slice
            run = self._pullback.by_rules
        run(entry, keep, cotangents)

    def _met(self, key: tuple[Any, ...], entry: Entry, cotangent: Any) -> Code:
        """What to do where nothing is known. Learning runs the kernels, which may be dear: once is not enough."""
        if len(self._known) >= _MOST:
            self._known.clear()
        if self.arrays and key not in self._known:
            self._known[key] = None
            return self._pullback.by_rules
        run = self._known[key] = self.learn(entry, cotangent)
        return run

    def learn(self, entry: Entry, cotangent: Any) -> Code:
        """What is to be called for such an entry from now on, or the rules where that cannot be told."""
        try:
            return self._read(entry, cotangent)
        except (AttributeError, IndexError, TypeError, ValueError, GraphError):  # rules that look at more, or do more
            return self._pullback.by_rules

    def _read(self, entry: Entry, cotangent: Any) -> Code:
        calls: list[Call] = []
        saved = [
            Sample(f"s{i}", value, calls, whole=True) if type(value) is np.ndarray else value
            for i, value in enumerate(entry.saved or ())
        ]
        sample, traces = Sample("g", cotangent, calls, whole=True), []
        with np.errstate(all="ignore"):
            for step in self._pullback.steps:
                before = len(calls)
                result = step.rule.apply(sample, *[saved[place] for place in step.places])
                traces.append(Trace(calls[before:], result.name))
        links = None if self.arrays else _links(traces, cotangent.dtype)
        if native.loops is None:
            return self._pullback.by_rules if links is None else Chain(links, self._pullback.op.broadcasts).pull
        if links is not None:
            traces = [_typed(trace, cotangent.dtype) for trace in traces]
        made: Code = program(native.loops, self._pullback, traces, typed=False, exact=True)
        return made


def learned(pullback: Pullback) -> Code | None:
    """A pullback that is learned case by case; None where nothing may be learned."""
    if not Learned.is_possible(pullback):
        return None
    one = Learned(pullback)
    if native.loops is None:
        return one.pull
    made: Code = native.loops.Learned(learn=one.learn, otherwise=pullback.by_rules, at_once=not one.arrays)
    return made


def _links(traces: list[Trace], dtype: np.dtype[Any]) -> list[Link] | None:
    """The calls as a chain from the cotangent to the result; None where they are none."""
    if len(traces) != 1:
        return None
    ((calls, result),) = traces
    names = ["g", *[call.name for call in calls]]
    follows = [call.values == [name] for call, name in zip(calls, names, strict=False)]
    return [_link(call, dtype) for call in calls] if all(follows) and result == names[-1] else None


def _link(call: Call, dtype: np.dtype[Any]) -> Link:
    at = [isinstance(arg, str) for arg in call.args].index(True)
    args = _with_arrays(call.args, dtype)
    return Link(call.op.kernel, args[:at], args[at + 1 :], call.attrs)


def _typed(trace: Trace, dtype: np.dtype[Any]) -> Trace:
    return trace._replace(calls=[call._replace(args=_with_arrays(call.args, dtype)) for call in trace.calls])


def _with_arrays(args: Sequence[Any], dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Arguments with numbers as arrays of the dtype they take beside a cotangent, which NumPy reads sooner."""
    if dtype.kind != "f":
        return tuple(args)
    return tuple([Typed(arg)[dtype.num] if isinstance(arg, (int, float)) else arg for arg in args])
