"""Pullbacks of ops that save no array: what their rule calls hangs on plain values alone, and is found out once.

Sums, means, reshapes and their like spend more on shapes and axes than on their kernels. Their rules make one kernel
call after the other, each on the result of the one before: a chain, which is written down on the first run with some
shape and options, and run again from then on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamic import native
from dynamic.program import Link, chain_program
from dynamic.sample import Call, Sample, Typed
from dynamic.straight import Code, total, unbroadcast
from graphs import dispatch
from graphs.op import Op
from graphs.ops.movement import cast

if TYPE_CHECKING:
    from dynamic.entry import Entry
    from dynamic.pullback import Pullback

_MOST = 4096  # chains to remember for one op


class Chain:
    """The links from the cotangent of an entry to that of its input."""

    def __init__(self, links: list[Link], broadcasts: bool) -> None:
        self.links, self._broadcasts = links, broadcasts

    def pull(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent to the input, letting go of each value after the kernel that reads it."""
        cotangent = cotangents.pop(entry)
        edge: Any = entry.edges[0]
        if not keep:
            entry.release()
        run = dispatch.runners[-1] if dispatch.runners and _is_large(edge, cotangent) else _run
        for op, before, after, attrs in self.links:
            cotangent = run(op, (*before, cotangent, *after), attrs)
        if type(cotangent) is not np.ndarray:
            cotangent = np.asarray(cotangent)
        if self._broadcasts:
            cotangent = cast(cotangent, edge.dtype)
            if cotangent.shape != edge.shape:
                cotangent = unbroadcast(cotangent, edge.shape)
        cotangents[edge] = total(cotangents.pop(edge), cotangent) if edge in cotangents else cotangent


class Chains:
    """The chains of a pullback, by all that they can hang on: the cotangent's shape and dtype, and what is saved."""

    def __init__(self, pullback: Pullback) -> None:
        self._pullback = pullback
        self._known: dict[Any, Code] = {}

    def pull(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent of an entry to its input by the chain that is known, or by the rules."""
        key = entry.shape, entry.dtype.num, entry.saved
        try:
            run = self._known.get(key)
        except TypeError:  # an option without a hash, such as a slice
            run = self._pullback.by_rules
        if run is None:
            run = self._learn(key, cotangents[entry])
        run(entry, keep, cotangents)

    def _learn(self, key: tuple[Any, ...], cotangent: Any) -> Code:
        """What the rule makes of such a cotangent as a chain, or the rules themselves where it is none."""
        calls: list[Call] = []
        (step,) = self._pullback.steps
        sample = Sample("g", cotangent, calls, whole=True)
        result = step.rule.apply(sample, *[key[-1][place] for place in step.places])
        names = ["g", *[call.name for call in calls]]
        follows = [call.values == [name] for call, name in zip(calls, names, strict=False)]
        run: Code = self._pullback.by_rules
        if all(follows) and result.name == names[-1]:
            run = self._chain([_link(call, cotangent.dtype) for call in calls], saved=len(key[-1]))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = run
        return run

    def _chain(self, links: list[Link], saved: int) -> Code:
        broadcasts = self._pullback.op.broadcasts
        chain = Chain(links, broadcasts)
        if native.loops is None:
            return chain.pull
        return chain_program(native.loops, links, saved, chain.pull, conforms=broadcasts)


def _run(op: Op, arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
    return op.kernel(*arrays, **attrs)


def _is_large(edge: Any, cotangent: Any) -> bool:
    """Whether a cotangent, or that of the input, is so large that a pool may have memory for it."""
    return max(cotangent.nbytes, math.prod(edge.shape) * edge.dtype.itemsize) >= dispatch.least[0]


def _link(call: Call, dtype: np.dtype[Any]) -> Link:
    at = [isinstance(arg, str) for arg in call.args].index(True)
    args = [arg if isinstance(arg, str) or dtype.kind != "f" else Typed(arg)[dtype.num] for arg in call.args]
    return Link(call.op, args[:at], args[at + 1 :], call.attrs)
