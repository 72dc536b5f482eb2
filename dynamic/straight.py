"""Pullbacks as straight-line code on arrays, for ops whose rules make the same kernel calls whatever the sizes.

The code is read off the rules themselves: they run once on samples, and what they call is written down. It makes the
same kernel calls in the same order as the rules do, without ops in between, and **drops each value right after the
last kernel that reads it**, where the parameters of a rule live until the rule returns. While a pool is on and the
arrays are large, that kernel writes into such a value instead, where it has the shape and dtype of the result and
nobody else sees it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamic import native
from dynamic.blocks import is_unseen
from dynamic.program import program
from dynamic.sample import Call, Sample, Trace, Typed
from dynamic.source import function
from graphs import dispatch, reverse
from graphs.op import OUTPUT, Op
from graphs.ops.elementwise import add
from graphs.ops.linalg import matmul
from graphs.ops.movement import cast, permute_dims

if TYPE_CHECKING:
    from dynamic.entry import Entry
    from dynamic.pullback import Pullback

Code = Callable[["Entry", bool, dict[Any, Any]], None]


def is_possible(op: Op, ndims: tuple[int | None, ...] | None) -> bool:
    """Whether nothing but the number of axes of its inputs decides which kernels the rules of an op call."""
    return op.family == "elementwise" or (op is matmul and ndims is not None)


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
    """The code as text: as straight as can be where no pool is on, or the arrays are too small for it."""
    code = _Writer(typed)
    for step, trace in zip(pullback.steps, traces, strict=True):
        for call in trace.calls:
            code.call(call)
        code.deliver(trace.result, f"e{step.number}", conform=pullback.op.broadcasts)
    edges = ", ".join(f"e{i}" if pullback.wanted >> i & 1 else "_" for i in range(pullback.count))
    saved = "".join(f"s{i}, " for i in range(len(pullback.sources)))
    body = [
        "if not entry.shape: return by_rules(entry, keep, cotangents)",  # kernels of 0-d arrays give scalars
        "g = cotangents.pop(entry)",
        f"{edges}, = entry.edges",
        f"{saved}= entry.saved" if saved else "pass",
        "if not keep: entry.saved, entry.edges = None, ()",
        *code.constants,
        f"if runners and ({' or '.join(f'{name}.nbytes >= least[0]' for name in _largest(pullback))}):",
        *[f"    {line}" for line in code.dropping(pooled=True)],
        "else:",
        *[f"    {line}" for line in code.dropping(pooled=False)],
    ]
    values = code.values | {"by_rules": pullback.by_rules}
    return function("pull", "entry, keep, cotangents", body, values, f"gradient of {pullback.op.name}")


def _largest(pullback: Pullback) -> list[str]:
    """The values of which one is as large as any that the code makes: of elementwise ops the cotangent."""
    saved = [f"s{i}" for i, source in enumerate(pullback.sources) if source is not None]
    return ["g", *saved] if pullback.op is matmul else ["g"]


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
    """A line and what it reads. Of a kernel call also how a pool runs it, and how it writes into what it reads."""

    text: str
    reads: Sequence[str]
    name: str = ""
    pooled: str = ""
    into: Mapping[str, str] = {}

    def reusing(self, dead: Sequence[str]) -> str:
        """The line where a pool is on, with a `dead` value written over if that can be."""
        if not self.name:
            return self.text
        found = [name for name in sorted(dead, reverse=True) if name in self.into]
        if found and found[0][0] == "t":  # nobody else sees what was made here
            return f"{self.name} = {self.into[found[0]]}"
        asked = [f"{self.into[name]} if {_IS_ALONE.format(name)} else " for name in found]
        return f"{self.name} = {''.join(asked)}{self.pooled}"


_IS_ALONE = (
    "getrefcount({0}) == alone and {0}.shape == entry.shape and {0}.dtype is entry.dtype"
    " and {0}.flags.carray and is_unseen({0})"
)


class _Writer:
    """Straight-line code that grows; `values` are the globals that it names."""

    def __init__(self, typed: bool) -> None:
        self.values: dict[str, Any] = {
            "total": total,
            "cast": cast,
            "unbroadcast": unbroadcast,
            "runners": dispatch.runners,
            "least": dispatch.least,
            "alone": ALONE,
            "nothing": {},
            "getrefcount": getrefcount,
            "is_unseen": is_unseen,
        }
        self.constants: list[str] = []
        self._typed = typed
        self._lines: list[_Line] = []

    def call(self, call: Call) -> None:
        """A kernel call."""
        names = [self._name(arg) for arg in call.args]
        if call.op is permute_dims:  # a view, which no pool needs to see, without the kernel around it
            self._lines.append(_Line(f"{call.name} = {names[0]}.transpose({call.attrs['axes']})", names))
            return
        op, args, attrs, options = call.op.name, ", ".join(names), "nothing", ""
        self.values |= {op: call.op.kernel, f"op_{op}": call.op}
        if call.attrs:
            attrs, options = f"{call.name}_attrs", f", **{call.name}_attrs"
            self.values[attrs] = call.attrs
        # Here backward runs kernels; everywhere else it does so by `dispatch.execute`.
        pooled = f"runners[-1](op_{op}, ({args},), {attrs})"
        # A value made here must be known to be like the result; of others this is found out when they are there.
        targets = [n for n in names if n in call.alike or n[0] == "s"] if call.alike else []
        into = {name: f"{op}({args}, out={name}{options})" for name in targets}
        self._lines.append(_Line(f"{call.name} = {op}({args}{options})", names, call.name, pooled, into))

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

    def dropping(self, *, pooled: bool) -> Iterator[str]:
        """The lines, with each value dropped after the last line that reads it; for when a pool is on, or when not."""
        last = {name: i for i, line in enumerate(self._lines) for name in line.reads if name[0] in "gst"}
        for i, line in enumerate(self._lines):
            dead = [name for name in dict.fromkeys(line.reads) if last.get(name) == i]
            yield line.reusing(dead) if pooled else line.text
            if line.text.startswith("cotangents["):
                dead.append("c")
            if dead:
                yield f"del {', '.join(dead)}"


def total(held: Any, contribution: Any) -> Any:
    """The sum of two cotangents of one value; an array, 0-d included."""
    runners = dispatch.runners
    if not runners or held.nbytes < dispatch.least[0]:
        return np.asarray(np.add(held, contribution))
    alike = held.shape == contribution.shape and held.dtype == contribution.dtype
    if getrefcount(held) == ALONE and alike and held.flags.carray and is_unseen(held):
        return np.add(held, contribution, out=held)
    return np.asarray(runners[-1](add, (held, contribution), {}))


def unbroadcast(cotangent: Any, shape: tuple[int, ...]) -> Any:
    """`reverse.unbroadcast` of an array, by the same kernels."""
    if dispatch.runners and math.prod(shape) * cotangent.itemsize >= dispatch.least[0]:
        return reverse.unbroadcast(cotangent, shape)
    summed = _sum(cotangent, _broadcast_axes(cotangent.shape, shape))
    return summed if type(summed) is np.ndarray and summed.shape == shape else np.asarray(summed).reshape(shape)


_sum = np.add.reduce
_broadcast_axes = functools.lru_cache(maxsize=4096)(reverse.broadcast_axes)


def _alone() -> int:
    """How many references to a cotangent, and to what is made here, are counted at least.

    0, which is never found, where others than the variable and the call of `getrefcount` are counted: a debugger's.
    """
    body = ["g = cotangents.pop(entry)", "s = make()", "return min(getrefcount(g), getrefcount(s))"]
    values = {"getrefcount": getrefcount, "make": object}
    count = function("pull", "entry, keep, cotangents", body, values, "")
    counted: int = count(None, True, {None: np.empty(1)})
    return counted if counted <= 2 else 0


ALONE = _alone()
