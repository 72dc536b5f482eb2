"""Pullbacks as kernel calls: read off the rules by samples, and numbered as a `Program` of the compiled tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamic.fast import loops
from dynamic.node import Node
from dynamic.walk import Way, carry
from graphs import dispatch, promotion, reverse
from graphs.cotangents import SliceCotangent
from graphs.errors import GraphError
from graphs.op import Attrs, Op
from graphs.ops.movement import permute_dims
from graphs.pullback import Pullback


class KernelCall(NamedTuple):
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


class RuleCalls(NamedTuple):
    """The kernel calls that a rule makes, and the name of what it returns.

    `around` are the names of the shape and the key of a `SliceCotangent`, where it returns one.
    """

    calls: list[KernelCall]
    result: str
    around: tuple[str, ...] = ()


class TracedSample:
    """An array with a name, which writes down every op that is run on it.

    `whole` tells that it has the shape and dtype of the cotangent, however the operands are broadcast.
    """

    __slots__ = ("array", "calls", "dtype", "name", "shape", "whole")

    def __init__(self, name: str, array: Any, calls: list[KernelCall], *, whole: bool) -> None:
        self.name, self.array, self.calls, self.whole = name, array, calls, whole
        self.shape, self.dtype = array.shape, array.dtype


def _write_down(op: Op, args: Sequence[Any], attrs: Attrs) -> TracedSample:
    if op.may_have_effect:
        raise GraphError(f"{op.name} is to be done each time, and once")
    calls: list[KernelCall] = next(arg.calls for arg in args if type(arg) is TracedSample)
    out = op.kernel(*[arg.array if type(arg) is TracedSample else arg for arg in args], **attrs)
    name = f"t{len(calls)}"
    alike = [arg.name for arg in args if type(arg) is TracedSample and _is_like(arg, out)]
    # Only an elementwise ufunc is known to read each element before it writes it.
    alike = alike if op.family == "elementwise" and isinstance(op.kernel, np.ufunc) else []
    calls.append(
        KernelCall(name, op, tuple([a.name if type(a) is TracedSample else a for a in args]), attrs, tuple(alike))
    )
    return TracedSample(name, np.asarray(out), calls, whole=bool(alike))


def _is_like(arg: TracedSample, out: Any) -> bool:
    return arg.whole and arg.dtype == out.dtype and arg.shape == out.shape


dispatch.interpret(TracedSample, _write_down)


def traced(pullback: Pullback, cotangent: TracedSample, saved: Sequence[Any]) -> list[RuleCalls]:
    """What each rule of a pullback calls, on samples that write their calls into one list."""
    traces = []
    for step in pullback.steps:
        before = len(cotangent.calls)
        result = step.rule.apply(cotangent, *[saved[place] for place in step.places])
        around: tuple[str, ...] = ()
        if type(result) is SliceCotangent:
            around = tuple([f"s{[*map(id, saved)].index(id(value))}" for value in (result.shape, result.key)])
            result = result.g
        traces.append(RuleCalls(cotangent.calls[before:], result.name, around))
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


_MOST_BYTES = 4096  # of an array that a rule makes of shapes alone, such as the numbers of rows


class Instruction(NamedTuple):
    """A kernel call on values and constants by their numbers; or, without a kernel, the delivery of one to input `out`.

    What is delivered to a slice of the input is three values: the cotangent, the shape of the input, and the key.
    `dropped` are the values that nobody reads afterwards. While a pool is on, the kernel may write into one of them
    that is in the bit set `into`.
    """

    kernel: Callable[..., Any] | None
    args: tuple[int, ...]
    attrs: dict[str, Any] | None
    out: int
    dropped: tuple[int, ...] = ()
    into: int = 0


def program(pullback: Pullback, traces: Sequence[RuleCalls], *, typed: bool, exact: bool) -> Any:
    """The compiled loop's program for what the rules of a pullback call.

    typed    whether numbers are brought to the dtype of the cotangent
    exact    whether the samples had the very shapes that the arrays will have

    Raises ValueError for more than the loop can hold, or is to.
    """
    saved = len(pullback.sources)
    numbers = {f"s{i}": i for i in range(saved)} | {"g": saved}
    constants: list[Any] = []
    code = list(_instructions(pullback, traces, numbers, constants, typed=typed, exact=exact))
    last = {value: i for i, step in enumerate(code) for value in step.args if value >= 0}
    code = [
        step._replace(dropped=tuple([v for v in dict.fromkeys(step.args) if last.get(v) == i]))
        for i, step in enumerate(code)
    ]
    return loops.Program(
        otherwise=by_rules,
        constants=tuple(constants),
        typed=typed,
        conforms=pullback.op.broadcasts,
        saved=saved,
        values=len(numbers),
        inputs=pullback.count,
        code=tuple(code),
    )


def by_rules(node: Node, keep: bool, cotangents: dict[Any, Any]) -> None:
    """Carry the cotangent of a node to its inputs by the rules; the node is released unless it is to be kept."""
    reverse.accumulate([node], cotangents, functools.partial(carry, way=_KEEPING if keep else _RELEASING))


_KEEPING, _RELEASING = Way(retain=True), Way()


def _instructions(
    pullback: Pullback,
    traces: Sequence[RuleCalls],
    numbers: dict[str, int],
    constants: list[Any],
    *,
    typed: bool,
    exact: bool,
) -> Iterator[Instruction]:
    def constant(value: Any) -> int:
        constants.append(value)
        return -len(constants)

    def number(arg: Any) -> int:
        if isinstance(arg, str):
            return numbers[arg]
        if isinstance(arg, np.ndarray) and arg.nbytes > _MOST_BYTES:
            raise ValueError("a constant that would be held for good is too large")
        return constant(Typed(arg) if typed else arg)

    for step, trace in zip(pullback.steps, traces, strict=True):
        for call in trace.calls:
            args, out = tuple(map(number, call.args)), len(numbers)
            numbers[call.name] = out
            if call.op is permute_dims and not typed:  # without the kernel around it
                yield Instruction(np.ndarray.transpose, (*args, constant(call.attrs["axes"])), None, out)
            else:
                yield Instruction(call.op.kernel, args, call.attrs or None, out, into=_into(call, exact))
        yield Instruction(None, (numbers[trace.result], *[numbers[name] for name in trace.around]), None, step.number)


def _into(call: KernelCall, exact: bool) -> int:
    """The arguments that may take the result: those like it, and what is saved where the loop has to find that out."""
    into = 0
    if call.attrs or call.op.view:
        return into
    for i, arg in enumerate(call.args):
        if isinstance(arg, str) and (arg in call.alike or (call.alike and not exact and arg[0] == "s")):
            into |= 1 << i
    return into
