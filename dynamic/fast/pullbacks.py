"""Pullbacks whose kernel calls are known: the compiled tape runs these without the rules.

The calls are read off the rules themselves: they run once on samples, and what they call is written down. For
elementwise ops and products they depend on nothing but the numbers of axes. Sums, reshapes, losses and their like spend
more time on shapes and axes than on their kernels: their calls are read again for each shape, dtype and option. The
rules of a user's own op run each time, since they may do anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamic.fast import loops
from dynamic.fast.programs import KernelCall, RuleCalls, TracedSample, Typed, by_rules, program, traced
from dynamic.node import Node
from graphs.errors import GraphError
from graphs.op import OUTPUT, Op
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem
from graphs.pullback import Ndims, Pullback

Code = Callable[[Node, bool, dict[Any, Any]], None]


class Compiled(Pullback):
    """A pullback of the compiled tape.

    apply      `apply(node, keep, cotangents)`: carries the cotangent of a node to its inputs by the kernel calls
               that are known, or by the rules; the node is released unless it is to be kept
    """

    __slots__ = ("apply",)

    def __init__(self, op: Op, wanted: int, count: int, ndims: Ndims = None) -> None:
        super().__init__(op, wanted, count, ndims)
        self.apply: Code = self._compile

    def _compile(self, node: Node, keep: bool, cotangents: dict[Any, Any]) -> None:
        """What `apply` is until it is first called."""
        self.apply = by_hand.get(self.op) or self._foreseen() or by_rules
        self.apply(node, keep, cotangents)

    def _foreseen(self) -> Code | None:
        """The kernel calls of the rules, written down once; of the library's rules alone, which read nothing else."""
        if self.op.family == "custom" or self.op.common or not all(step.rule.is_ours for step in self.steps):
            return None
        return _program(self) or _learned(self)


by_hand: dict[Op, Code] = {}
"""What `apply` is for some ops, where more is known than the rules tell: they say what it computes all the same."""


@functools.lru_cache(maxsize=4096)
def pullback(op: Op, wanted: int, count: int, ndims: Ndims) -> Compiled:
    """The pullback of an op for the inputs in the bit set `wanted`, of `count`."""
    return Compiled(op, wanted, count, ndims)


def _program(pullback: Pullback) -> Code | None:
    """The program of a pullback; None where its rules look at more than the number of axes."""
    op = pullback.op
    if op is getitem:  # its rule names a shape and a key, and calls nothing
        sample = TracedSample("g", np.zeros(()), [], whole=False)
        return program(pullback, traced(pullback, sample, pullback.fields), typed=False, exact=False)
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


def _traces(pullback: Pullback, size: int, dtype: Any) -> list[RuleCalls]:
    """What the rules call, on samples whose axes have one size."""
    calls: list[KernelCall] = []
    ndims = pullback.ndims if pullback.op is matmul and pullback.ndims else (1,) * pullback.count
    inputs = [np.full((size,) * (ndim or 0), 0.5, dtype) for ndim in ndims]
    with np.errstate(all="ignore"):  # of a sample outside the op's domain
        out = np.asarray(pullback.op.kernel(*inputs))
        values = [
            TracedSample(f"s{i}", value, calls, whole=source == OUTPUT or pullback.count == 1)
            if isinstance(value, np.ndarray)
            else value
            for i, (value, source) in enumerate(zip(pullback.save(inputs, out, {}), pullback.sources, strict=True))
        ]
        return traced(pullback, TracedSample("g", np.ones_like(out), calls, whole=True), values)


_FAMILIES = {"composed", "elementwise", "linalg", "movement", "reduction", "solver", "sorting", "window"}


def _learned(pullback: Compiled) -> Code | None:
    """A pullback that is learned case by case; None for a family of which too little is known.

    What reads no array is learned at once, anything else when the same shapes come a second time: learning runs the
    kernels, which may take long.
    """
    reads_arrays = any(source is not None for source in pullback.sources)
    if pullback.op.family not in _FAMILIES and (pullback.count != 1 or reads_arrays):
        return None

    def learn(node: Node, cotangent: Any) -> Code:
        """What is to be called for such a node from now on, or the rules where that cannot be known."""
        try:
            return _read_for(pullback, node, cotangent, typed=not reads_arrays)
        except (AttributeError, IndexError, TypeError, ValueError, GraphError):  # rules that look at more, or do more
            return by_rules

    return loops.Learned(learn=learn, otherwise=by_rules, at_once=not reads_arrays)


def _read_for(pullback: Compiled, node: Node, cotangent: Any, *, typed: bool) -> Code:
    calls: list[KernelCall] = []
    saved = [
        TracedSample(f"s{i}", value, calls, whole=True) if type(value) is np.ndarray else value
        for i, value in enumerate(node.saved or ())
    ]
    with np.errstate(all="ignore"):
        traces = traced(pullback, TracedSample("g", cotangent, calls, whole=True), saved)
    if typed and _is_chain(traces):
        traces = [_typed(trace, cotangent.dtype) for trace in traces]
    return program(pullback, traces, typed=False, exact=True)


def _is_chain(traces: Sequence[RuleCalls]) -> bool:
    """Whether each kernel reads the value before it and nothing else, so that all have the dtype of the cotangent."""
    if len(traces) != 1:
        return False
    (trace,) = traces
    names = ["g", *[call.name for call in trace.calls]]
    is_next = (call.values == [name] for call, name in zip(trace.calls, names, strict=False))
    return all(is_next) and trace.result == names[-1]


def _typed(trace: RuleCalls, dtype: np.dtype[Any]) -> RuleCalls:
    """The calls with numbers as arrays of the dtype that they take beside a cotangent, which NumPy reads sooner."""
    if dtype.kind != "f":
        return trace
    return trace._replace(calls=[call._replace(args=tuple(_arrays(call.args, dtype))) for call in trace.calls])


def _arrays(args: Sequence[Any], dtype: np.dtype[Any]) -> list[Any]:
    return [Typed(arg)[dtype.num] if isinstance(arg, (int, float)) else arg for arg in args]
