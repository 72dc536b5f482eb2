"""Pullbacks whose kernel calls are known: the compiled tape runs these without the rules.

The calls are read off the rules themselves: they run once on samples, and each kernel call is noted. For elementwise
ops and products the calls depend only on the numbers of axes. Sums, reshapes, losses and the like spend more time on
shapes and axes than on their kernels: their calls are read again for each shape, dtype and option. The rules of a
user's own op run each time, since they may do anything.

First the pullbacks, then reading the rules, then the `Program` of the compiled tape with its numbered values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import dynamic._native as loops
from dynamic.node import Node
from dynamic.tape import Way, carry
from graphs import dispatch, promotion, reverse
from graphs.errors import GraphError
from graphs.op import OUTPUT, Attrs, Op, RuleTable, SliceCotangent
from graphs.ops.linalg import matmul
from graphs.ops.movement import permute_dims, wider
from graphs.ops.slicing import getitem
from graphs.reverse import Ndims, Pullback

Code = Callable[[Node, bool, dict[Any, Any]], None]


class CompiledPullback(Pullback):
    """A pullback of the compiled tape.

    apply      `apply(node, keep, cotangents)`: carries the cotangent of a node to its inputs by known kernel calls, or
               by
               the rules; it releases the node unless `keep`
    """

    __slots__ = ("apply",)

    def __init__(self, op: Op, wanted: int, count: int, ndims: Ndims = None) -> None:
        super().__init__(op, wanted, count, ndims)
        self.apply: Code = self._compile

    def _compile(self, node: Node, keep: bool, cotangents: dict[Any, Any]) -> None:
        """The first `apply`: it chooses the code for the op, and runs it."""
        self.apply = by_hand[self.op] or self._foresee() or by_rules
        self.apply(node, keep, cotangents)

    def _foresee(self) -> Code | None:
        """Code from kernel calls of the rules, or None. Only library rules qualify: they read nothing but arguments."""
        if self.op.family == "custom" or self.op.common or not all(step.rule.is_ours for step in self.steps):
            return None
        return _program(self) or _learn_code(self)


by_hand: RuleTable[Code | None] = RuleTable("pullbacks by hand", otherwise=None)
"""What `apply` is for some ops, where more is known than the rules tell: they say what it computes all the same."""


@functools.lru_cache(maxsize=4096)
def pullback(op: Op, wanted: int, count: int, ndims: Ndims) -> CompiledPullback:
    """The cached pullback of an op with `count` inputs, for the inputs in the bit set `wanted`."""
    return CompiledPullback(op, wanted, count, ndims)


def _program(pullback: Pullback) -> Code | None:
    """The program of a pullback; None where its rules depend on more than the number of axes."""
    op = pullback.op
    if op is getitem:  # its rule names a shape and a key, and calls nothing
        sample = TracedSample("g", np.zeros(()), [], whole=False)
        return program(pullback, trace_rules(pullback, sample, pullback.fields), typed=False, exact=False)
    ndims = _sample_axes(pullback)
    if ndims is None:
        return None
    traces, others = (_traces(pullback, ndims, size, dtype) for size, dtype in ((2, np.float32), (3, np.float64)))
    if traces != others:
        return None
    # For an op of one input all values have the dtype of the cotangent.
    return program(pullback, traces, typed=op.arity == 1, exact=False)


def _sample_axes(pullback: Pullback) -> Ndims:
    """The number of axes of each input of a sample; None where no sample tells what the rules do."""
    if pullback.op.family == "elementwise":
        return (1,) * pullback.count
    ndims = pullback.axes
    is_small = pullback.op is matmul and ndims is not None and max(ndim or 0 for ndim in ndims) <= _MOST_AXES
    return ndims if is_small else None


_MOST_AXES = 6  # of a sample of a product, which has two or three elements along each


def _traces(pullback: Pullback, ndims: Sequence[int | None], size: int, dtype: Any) -> list[RuleCalls]:
    """The kernel calls of the rules, on samples whose axes all have one size."""
    calls: list[KernelCall] = []
    inputs = [np.full((size,) * (ndim or 0), 0.5, dtype) for ndim in ndims]
    with np.errstate(all="ignore"):  # of a sample outside the op's domain
        out = np.asarray(pullback.op.kernel(*inputs))
        values = [
            TracedSample(f"s{i}", value, calls, whole=source == OUTPUT or pullback.count == 1)
            if isinstance(value, np.ndarray)
            else value
            for i, (value, source) in enumerate(zip(pullback.save(inputs, out, {}), pullback.sources, strict=True))
        ]
        return trace_rules(pullback, TracedSample("g", np.ones_like(out), calls, whole=True), values)


_FAMILIES = {"composed", "elementwise", "linalg", "movement", "reduction", "solver", "sorting", "window"}


def _learn_code(pullback: CompiledPullback) -> Code | None:
    """Code that learns kernel calls case by case; None for a family of which too little is known.

    A pullback that reads no array is learned at once, any other when the same shapes come a second time: learning runs
    the kernels, which may take long.
    """
    if pullback.op.family not in _FAMILIES and (pullback.count != 1 or pullback.reads):
        return None

    def learn(node: Node, cotangent: Any) -> Code:
        """The code for such nodes from now on; the rules where the kernel calls cannot be known."""
        try:
            return _code_for(pullback, node, cotangent, typed=not pullback.reads)
        except (AttributeError, IndexError, TypeError, ValueError, GraphError):  # rules that look at more, or do more
            return by_rules

    return loops.Learned(learn=learn, otherwise=by_rules, at_once=not pullback.reads)


def _code_for(pullback: CompiledPullback, node: Node, cotangent: Any, *, typed: bool) -> Code:
    calls: list[KernelCall] = []
    values = [*(node.saved or ()), cotangent]
    if pullback.op.widens:
        values = list(map(wider, values))
    *saved, cotangent = values
    saved = [
        TracedSample(f"s{i}", value, calls, whole=True) if type(value) is np.ndarray else value
        for i, value in enumerate(saved)
    ]
    with np.errstate(all="ignore"):
        traces = trace_rules(pullback, TracedSample("g", cotangent, calls, whole=True), saved)
    if typed and _is_chain(traces):
        traces = [_with_typed_numbers(trace, cotangent.dtype) for trace in traces]
    return program(pullback, traces, typed=False, exact=True)


def _is_chain(traces: Sequence[RuleCalls]) -> bool:
    """Whether each kernel reads only the value before it, so that all values have the dtype of the cotangent."""
    if len(traces) != 1:
        return False
    (trace,) = traces
    names = ["g", *[call.name for call in trace.calls]]
    is_next = (call.values == [name] for call, name in zip(trace.calls, names, strict=False))
    return all(is_next) and trace.result == names[-1]


def _with_typed_numbers(trace: RuleCalls, dtype: np.dtype[Any]) -> RuleCalls:
    """The calls with numbers as arrays of the dtype that they take beside a cotangent, which NumPy reads faster."""
    if dtype.kind != "f":
        return trace
    return trace._replace(calls=[call._replace(args=tuple(_arrays(call.args, dtype))) for call in trace.calls])


def _arrays(args: Sequence[Any], dtype: np.dtype[Any]) -> list[Any]:
    return [TypedNumber(arg)[dtype.num] if isinstance(arg, (int, float)) else arg for arg in args]


class KernelCall(NamedTuple):
    """One kernel call of a rule. An argument is the name of a value, or a Python number.

    `alike` names the arguments that have the shape and dtype of the result, so that it may overwrite them.
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
    """The kernel calls that a rule makes, and the name of its result.

    `around` are the names of the shape and the key of a `SliceCotangent`, if the rule returns one.
    """

    calls: list[KernelCall]
    result: str
    around: tuple[str, ...] = ()


class TracedSample:
    """A named array that notes every op that runs on it.

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


def trace_rules(pullback: Pullback, cotangent: TracedSample, saved: Sequence[Any]) -> list[RuleCalls]:
    """The kernel calls of each rule of a pullback, on samples that note their calls in one list."""
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


class TypedNumber(dict[int, np.ndarray[Any, Any]]):
    """A Python number as an array of each dtype, by the dtype's number: NumPy reads these faster than numbers."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def __missing__(self, num: int) -> np.ndarray[Any, Any]:
        kind: Any = type(self._value)
        array = self[num] = np.asarray(self._value, promotion.weak_dtype(kind, (num,)))
        return array


_MOST_BYTES = 4096  # of an array that a rule makes of shapes alone, such as the numbers of rows


class Instruction(NamedTuple):
    """A kernel call on numbered values and constants; or, without a kernel, the delivery of a value to input `out`.

    A delivery to a slice of the input has three values: the cotangent, the shape of the input, and the key.
    `dropped` are the values that no later instruction reads. While a pool is on, the kernel may write into one of these
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
        widens=pullback.op.widens,
        saved=saved,
        values=len(numbers),
        inputs=pullback.count,
        code=tuple(code),
    )


def by_rules(node: Node, keep: bool, cotangents: dict[Any, Any]) -> None:
    """Carry the cotangent of a node to its inputs by the rules; the node is released unless `keep`."""
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
        return constant(TypedNumber(arg) if typed else arg)

    for step, trace in zip(pullback.steps, traces, strict=True):
        for call in trace.calls:
            args, out = tuple(map(number, call.args)), len(numbers)
            numbers[call.name] = out
            if call.op is permute_dims and not typed:  # without the kernel around it
                yield Instruction(np.ndarray.transpose, (*args, constant(call.attrs["axes"])), None, out)
            else:
                yield Instruction(call.op.kernel, args, call.attrs or None, out, into=_reusable_arguments(call, exact))
        yield Instruction(None, (numbers[trace.result], *[numbers[name] for name in trace.around]), None, step.number)


def _reusable_arguments(call: KernelCall, exact: bool) -> int:
    """The bit set of arguments that may take the result: those like it, or saved values, which the loop checks."""
    into = 0
    if call.attrs or call.op.view:
        return into
    for i, arg in enumerate(call.args):
        if isinstance(arg, str) and (arg in call.alike or (call.alike and not exact and arg[0] == "s")):
            into |= 1 << i
    return into
