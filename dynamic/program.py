"""Pullbacks as numbered kernel calls, for the compiled loop that runs them: the same calls as those of `straight`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamic.sample import Trace, Typed
from graphs.ops.movement import permute_dims

if TYPE_CHECKING:
    from dynamic.pullback import Pullback


class Instruction(NamedTuple):
    """A kernel call on values and constants, told by number: or without a kernel, the delivery of one to input `out`.

    `dropped` are the values that nobody reads afterwards.
    """

    kernel: Callable[..., Any] | None
    args: tuple[int, ...]
    attrs: dict[str, Any] | None
    out: int
    dropped: tuple[int, ...]


def program(
    loops: ModuleType, pullback: Pullback, traces: Sequence[Trace], otherwise: Callable[..., None], *, typed: bool
) -> Any:
    """The compiled loop's program for what the rules of a pullback call; `otherwise` where it has to stand aside.

    With `typed`, numbers are brought to the dtype of the cotangent. Raises ValueError for more than the loop can hold.
    """
    saved = len(pullback.sources)
    numbers = {f"s{i}": i for i in range(saved)} | {"g": saved}
    constants: list[Any] = []
    code = list(_instructions(pullback, traces, numbers, constants, typed=typed))
    last = {value: i for i, step in enumerate(code) for value in step.args if value >= 0}
    code = [
        step._replace(dropped=tuple([v for v in dict.fromkeys(step.args) if last.get(v) == i]))
        for i, step in enumerate(code)
    ]
    return loops.Program(
        otherwise=otherwise,
        constants=tuple(constants),
        typed=typed,
        conforms=pullback.op.broadcasts,
        saved=saved,
        values=len(numbers),
        code=tuple(code),
    )


def _instructions(
    pullback: Pullback, traces: Sequence[Trace], numbers: dict[str, int], constants: list[Any], *, typed: bool
) -> Iterator[Instruction]:
    def constant(value: Any) -> int:
        constants.append(value)
        return -len(constants)

    def number(arg: str | float) -> int:
        if isinstance(arg, str):
            return numbers[arg]
        return constant(Typed(arg) if typed else arg)

    for step, trace in zip(pullback.steps, traces, strict=True):
        for call in trace.calls:
            args = tuple(map(number, call.args))
            kernel, attrs = call.op.kernel, call.attrs or None
            if call.op is permute_dims and not typed:  # without the kernel around it
                kernel, args, attrs = np.ndarray.transpose, (*args, constant(call.attrs["axes"])), None
            out = numbers[call.name] = len(numbers)
            yield Instruction(kernel, args, attrs, out, ())
        yield Instruction(None, (numbers[trace.result],), None, step.number, ())
