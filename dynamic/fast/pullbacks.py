"""Pullbacks whose kernel calls are known: the compiled tape runs these without the rules.

The calls are read off the rules themselves: they run once on samples, and what they call is written down. For
elementwise ops and products they depend on nothing but the numbers of axes; for others they are read again for each
shape, dtype and option (`dynamic/fast/learned.py`); the rules of a user's own op run each time, since they may do
anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dynamic.entry import Entry
from dynamic.fast.learned import learned
from dynamic.fast.programs import program
from dynamic.fast.samples import Call, Sample, Trace, traced
from graphs import reverse
from graphs.op import OUTPUT, Op
from graphs.ops.linalg import matmul
from graphs.pullback import Ndims, Pullback

Code = Callable[[Entry, bool, dict[Any, Any]], None]


class Compiled(Pullback):
    """A pullback of the compiled tape.

    apply      `apply(entry, keep, cotangents)`: carries the cotangent of an entry to its inputs by the kernel calls
               that are known, or by the rules; the entry is released unless it is to be kept
    """

    __slots__ = ("apply",)

    def __init__(self, op: Op, wanted: int, count: int, ndims: Ndims = None) -> None:
        super().__init__(op, wanted, count, ndims)
        self.apply: Code = self._compile

    def _compile(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """What `apply` is until it is first called."""
        self.apply = by_hand.get(self.op) or self._foreseen() or self.by_rules
        self.apply(entry, keep, cotangents)

    def _foreseen(self) -> Code | None:
        """The kernel calls of the rules, written down once; of the library's rules alone, which read nothing else."""
        if self.op.family == "custom" or not all(step.rule.is_ours for step in self.steps):
            return None
        return _program(self) or learned(self)

    def by_rules(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent of an entry to its inputs by the rules."""
        edges, saved = entry.taken(keep)
        values = [*saved, cotangents.pop(entry)]
        del saved  # `pull` drops each value after its last reader
        for edge, contribution in self.pull(edges, values):
            reverse.arrive(cotangents, edge, contribution)
            del contribution  # while the next rule runs, nothing but `cotangents` holds it


by_hand: dict[Op, Code] = {}
"""What `apply` is for some ops, where more is known than the rules tell: they say what it computes all the same."""


@functools.lru_cache(maxsize=4096)
def pullback(op: Op, wanted: int, count: int, ndims: Ndims) -> Compiled:
    """The pullback of an op for the inputs in the bit set `wanted`, of `count`."""
    return Compiled(op, wanted, count, ndims)


def _program(pullback: Pullback) -> Code | None:
    """The program of a pullback; None where its rules look at more than the number of axes."""
    op = pullback.op
    if op.family != "elementwise" and not _is_small_product(pullback):
        return None
    traces, others = (_traces(pullback, size, dtype) for size, dtype in ((2, np.float32), (3, np.float64)))
    if traces != others:
        return None
    # Of one input all values have the dtype of the cotangent.
    return program(pullback, traces, typed=op.arity == 1, exact=False)


def _is_small_product(pullback: Pullback) -> bool:
    ndims = pullback.ndims
    return pullback.op is matmul and ndims is not None and max(ndim or 0 for ndim in ndims) <= _MOST_AXES


_MOST_AXES = 6  # of a sample of a product, which has two or three elements along each


def _traces(pullback: Pullback, size: int, dtype: Any) -> list[Trace]:
    """What the rules call, on samples whose axes have one size."""
    calls: list[Call] = []
    ndims = pullback.ndims if pullback.op is matmul and pullback.ndims else (1,) * pullback.count
    inputs = [np.full((size,) * (ndim or 0), 0.5, dtype) for ndim in ndims]
    with np.errstate(all="ignore"):  # of a sample outside the op's domain
        out = np.asarray(pullback.op.kernel(*inputs))
        values = [
            Sample(f"s{i}", value, calls, whole=source == OUTPUT or pullback.count == 1)
            if isinstance(value, np.ndarray)
            else value
            for i, (value, source) in enumerate(zip(pullback.save(inputs, out, {}), pullback.sources, strict=True))
        ]
        return traced(pullback, Sample("g", np.ones_like(out), calls, whole=True), values)
