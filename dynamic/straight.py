"""Pullbacks as straight-line code on arrays, for ops whose rules make the same kernel calls whatever the sizes.

The code is read off the rules themselves: they run once on samples, and what they call is written down. It makes the
same kernel calls in the same order as the rules do, without ops in between, and **drops each value right after the
last kernel that reads it**, where the parameters of a rule live until the rule returns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamic import native
from dynamic.program import program
from dynamic.sample import Call, Sample, Trace, Typed
from dynamic.source import function
from graphs import reverse
from graphs.op import OUTPUT, Op
from graphs.ops.linalg import matmul
from graphs.ops.movement import cast, permute_dims
from graphs.ops.sums import summed

if TYPE_CHECKING:
    from dynamic.entry import Entry
    from dynamic.pullback import Pullback

Code = Callable[["Entry", bool, dict[Any, Any]], None]


def is_possible(op: Op, ndims: tuple[int | None, ...] | None) -> bool:
    """Whether nothing but the number of axes of its inputs decides which kernels the rules of an op call."""
    if op is matmul and ndims is not None:
        return max(ndim or 0 for ndim in ndims) <= _MOST_AXES
    return op.family == "elementwise"


_MOST_AXES = 6  # of a sample of a product, which has two or three elements along each


def compiled(pullback: Pullback) -> Code | None:
    """The code of a pullback; None where its rules look at more than the number of axes."""
    traces, others = (_traces(pullback, size, dtype) for size, dtype in ((2, np.float32), (3, np.float64)))
    if traces != others:
        return None
    typed = pullback.op.arity == 1  # of one input all values have the dtype of the cotangent
    if native.loops is None:
        return _written(pullback, traces, typed=typed)
    return program(native.loops, pullback, traces, typed=typed, exact=False)


def _written(pullback: Pullback, traces: Sequence[Trace], *, typed: bool) -> Code:
    """The code as text."""
    code = _Writer(typed)
    for step, trace in zip(pullback.steps, traces, strict=True):
        for call in trace.calls:
            code.call(call)
        code.deliver(trace.result, f"e{step.number}", conform=pullback.op.broadcasts)
    edges = ", ".join(f"e{i}" if pullback.wanted >> i & 1 else "_" for i in range(pullback.count))
    saved = "".join(f"s{i}, " for i in range(len(pullback.sources)))
    body = [
        "edges, saved = entry.edges, entry.saved",
        # Kernels of 0-d arrays give scalars; and another thread may have released what was saved.
        "if not entry.shape or saved is None: return by_rules(entry, keep, cotangents)",
        "if not keep: entry.saved, entry.edges = None, ()",
        "g = cotangents.pop(entry)",
        f"{edges}, = edges",
        f"{saved}= saved" if saved else "pass",
        "del edges, saved",
        *code.constants,
        *code.dropping(),
    ]
    values = code.values | {"by_rules": pullback.by_rules}
    return function("pull", "entry, keep, cotangents", body, values, f"gradient of {pullback.op.name}")


# Reading the rules ------------------------------------------------------------------------------------------------


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
    traces = []
    with np.errstate(all="ignore"):
        for step in pullback.steps:
            before = len(calls)
            cotangent = Sample("g", np.ones_like(out), calls, whole=True)
            result = step.rule.apply(cotangent, *[values[place] for place in step.places])
            traces.append(Trace(calls[before:], result.name))
    return traces


# Writing the code -------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line, and the values that it reads."""

    text: str
    reads: Sequence[str]


class _Writer:
    """Straight-line code that grows; `values` are the globals that it names."""

    def __init__(self, typed: bool) -> None:
        self.values: dict[str, Any] = {"total": total, "cast": cast, "unbroadcast": unbroadcast}
        self.constants: list[str] = []
        self._typed = typed
        self._lines: list[_Line] = []

    def call(self, call: Call) -> None:
        """A kernel call."""
        names = [self._name(arg) for arg in call.args]
        if call.op is permute_dims:  # without the kernel around it
            self._lines.append(_Line(f"{call.name} = {names[0]}.transpose({call.attrs['axes']})", names))
            return
        # Here backward runs kernels; everywhere else it does so by `dispatch.execute`.
        kernel, options = call.op.name, ""
        self.values[kernel] = call.op.kernel
        if call.attrs:
            self.values[f"{call.name}_attrs"] = call.attrs
            options = f", **{call.name}_attrs"
        self._lines.append(_Line(f"{call.name} = {kernel}({', '.join(names)}{options})", names))

    def _name(self, arg: str | float) -> str:
        """What an argument is called; a number is brought to the dtype of the cotangent where all values have it."""
        if isinstance(arg, str):
            return arg
        if not self._typed:
            return repr(arg)
        name = f"k{len(self.constants)}"
        self.values[f"{name}s"] = Typed(arg)
        self.constants.append(f"{name} = {name}s[g.dtype.num]")
        return name

    def deliver(self, result: str, edge: str, *, conform: bool) -> None:
        """Add a contribution to the cotangent of an input."""
        self._lines.append(_Line(f"c = {result}", [result]))
        if conform:
            self._lines.append(_Line(f"if c.dtype is not {edge}.dtype: c = cast(c, {edge}.dtype)", ["c"]))
            self._lines.append(_Line(f"if c.shape != {edge}.shape: c = unbroadcast(c, {edge}.shape)", ["c"]))
        arrived = f"total(cotangents.pop({edge}), c) if {edge} in cotangents else c"
        self._lines.append(_Line(f"cotangents[{edge}] = {arrived}", ["c"]))

    def dropping(self) -> Iterator[str]:
        """The lines, with each value dropped after the last line that reads it."""
        last = {name: i for i, line in enumerate(self._lines) for name in line.reads if name[0] in "gst"}
        for i, line in enumerate(self._lines):
            dead = [name for name in dict.fromkeys(line.reads) if last.get(name) == i]
            yield line.text
            if line.text.startswith("cotangents["):
                dead.append("c")
            if dead:
                yield f"del {', '.join(dead)}"


def total(held: Any, contribution: Any) -> Any:
    """The sum of two cotangents of one value; an array, 0-d included."""
    return np.asarray(np.add(held, contribution))


def unbroadcast(cotangent: Any, shape: tuple[int, ...]) -> Any:
    """`reverse.unbroadcast` of an array, by the same kernels."""
    total = summed(cotangent, _broadcast_axes(cotangent.shape, shape))
    return total if type(total) is np.ndarray and total.shape == shape else np.asarray(total).reshape(shape)


_broadcast_axes = functools.lru_cache(maxsize=4096)(reverse.broadcast_axes)
