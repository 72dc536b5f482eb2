"""Pullbacks as numbered kernel calls: a `Program` runs them in turn and drops each value after its last use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamic.fast import loops
from dynamic.fast.samples import Call, Trace, Typed
from graphs.ops.movement import permute_dims
from graphs.pullback import Pullback

_MOST_BYTES = 4096  # of an array that a rule makes of shapes alone, such as the numbers of rows


class Instruction(NamedTuple):
    """A kernel call on values and constants, told by number: or without a kernel, the delivery of one to input `out`.

    `dropped` are the values that nobody reads afterwards. While a pool is on, the kernel may write into one of them
    that is in the bit set `into`.
    """

    kernel: Callable[..., Any] | None
    args: tuple[int, ...]
    attrs: dict[str, Any] | None
    out: int
    dropped: tuple[int, ...] = ()
    into: int = 0


def program(pullback: Pullback, traces: Sequence[Trace], *, typed: bool, exact: bool) -> Any:
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
        otherwise=pullback.by_rules,  # type: ignore[attr-defined]  # of the compiled tape
        constants=tuple(constants),
        typed=typed,
        conforms=pullback.op.broadcasts,
        saved=saved,
        values=len(numbers),
        inputs=pullback.count,
        code=tuple(code),
    )


def _instructions(
    pullback: Pullback,
    traces: Sequence[Trace],
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
        yield Instruction(None, (numbers[trace.result],), None, step.number)


def _into(call: Call, exact: bool) -> int:
    """The arguments that may take the result: those like it, and what is saved where the loop has to find that out."""
    into = 0
    if call.attrs or call.op.view:
        return into
    for i, arg in enumerate(call.args):
        if isinstance(arg, str) and (arg in call.alike or (call.alike and not exact and arg[0] == "s")):
            into |= 1 << i
    return into
