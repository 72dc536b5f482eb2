"""Reading gradient rules: arrays that write down every op they meet, so that its kernel can be called without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import dispatch, promotion
from graphs.errors import GraphError
from graphs.op import Attrs, Op
from graphs.pullback import Pullback


class Call(NamedTuple):
    """One kernel call of a rule. An argument is the name of a value, or a Python number.

    `alike` names the arguments that have the shape and dtype of the result, so that it may take their place.
    """

    name: str
    op: Op
    args: tuple[str | float, ...]
    attrs: Attrs
    alike: tuple[str, ...]

    @property
    def values(self) -> list[str]:
        """The names among the arguments."""
        return [arg for arg in self.args if isinstance(arg, str)]


class Trace(NamedTuple):
    """The kernel calls that a rule makes, and the name of what it returns."""

    calls: list[Call]
    result: str


class Sample:
    """An array with a name, which writes down every op that it meets.

    `whole` tells that it has the shape and dtype of the cotangent, however the operands are broadcast.
    """

    __slots__ = ("array", "calls", "dtype", "name", "shape", "whole")

    def __init__(self, name: str, array: Any, calls: list[Call], *, whole: bool) -> None:
        self.name, self.array, self.calls, self.whole = name, array, calls, whole
        self.shape, self.dtype = array.shape, array.dtype


def _write_down(op: Op, args: Sequence[Any], attrs: Attrs) -> Sample:
    if op.may_have_effect:
        raise GraphError(f"{op.name} is to be done each time, and once")
    calls: list[Call] = next(arg.calls for arg in args if type(arg) is Sample)
    out = op.kernel(*[arg.array if type(arg) is Sample else arg for arg in args], **attrs)
    name = f"t{len(calls)}"
    alike = [arg.name for arg in args if type(arg) is Sample and _is_like(arg, out)]
    # Only an elementwise ufunc is known to read each element before it writes it.
    alike = alike if op.family == "elementwise" and isinstance(op.kernel, np.ufunc) else []
    calls.append(Call(name, op, tuple([a.name if type(a) is Sample else a for a in args]), attrs, tuple(alike)))
    return Sample(name, np.asarray(out), calls, whole=bool(alike))


def _is_like(arg: Sample, out: Any) -> bool:
    return arg.whole and arg.dtype == out.dtype and arg.shape == out.shape


dispatch.interpret(Sample, _write_down)


def traced(pullback: Pullback, cotangent: Sample, saved: Sequence[Any]) -> list[Trace]:
    """What each rule of a pullback calls, on samples that write their calls into one list."""
    traces = []
    for step in pullback.steps:
        before = len(cotangent.calls)
        result = step.rule.apply(cotangent, *[saved[place] for place in step.places])
        traces.append(Trace(cotangent.calls[before:], result.name))
    return traces


class Typed(dict[int, np.ndarray[Any, Any]]):
    """A Python number as an array of each dtype, by the dtype's number: NumPy adds these sooner than numbers."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def __missing__(self, num: int) -> np.ndarray[Any, Any]:
        kind: Any = type(self._value)
        array = self[num] = np.asarray(self._value, promotion.weak_dtype(kind, (num,)))
        return array
