"""The check that a step is not slower than another: by counts, which are exact, and by time only where asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from random import Random
from typing import Any

import static
from compare.errors import InputsError
from compare.gate.checks import alive, jitted, name_of
from compare.instruments.time.rounds import own_rounds
from compare.own.case import checked
from compare.own.measure import pinned
from compare.records.job import Budget
from compare.stats import Interval, ratio_interval
from compare.words import text

GROUPS = 5
"""How often the steps are built and timed anew in one measurement, if they can be built."""

Calls = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Counts:
    """What a step costs in exact numbers: the same on every machine.

    `kernels` are the ops of one call, of the largest graph where there are several; `planned_bytes` is the sum of the
    peaks of all memory plans.
    """

    kernels: int
    compiles: int
    planned_bytes: int


@alive
def not_slower(
    a: Any, b: Any, inputs: Calls | None = None, *, by: float = 1.05, time: bool = False, seconds: float = 5.0
) -> Interval | None:
    """Check that `a` has at most `by` times the kernel calls, the compiles and the planned bytes of `b`.

    Each is a function, which `static.jit` compiles, what `static.jit` returns, or an executable; all but an executable
    of fixed shapes is called with the inputs first. With `time` a pass over the inputs is timed too, in paired rounds
    for about `seconds`: the ratio a / b with its interval is returned. It fails only if the whole 95% interval lies
    above `by`, and a second measurement says so again.

    Raises AssertionError with each count that is above, and InputsError for what cannot be compared.
    """
    __tracebackhide__ = True
    if not (isfinite(by) and by > 0):
        raise InputsError(f"by is a ratio above 0, such as 1.05, not {by}")
    if time and inputs is None:
        raise InputsError("time=True runs both steps; give inputs=[(x,), ...]")
    calls = () if inputs is None else checked(inputs)
    _compare_counts(f"{name_of(a)} against {name_of(b)}", counts_of(a, calls), counts_of(b, calls), by)
    return _compare_times(a, b, calls, by, seconds) if time else None


def counts_of(step: Any, calls: Calls) -> Counts:
    """The counts of a step, after these calls. Raises InputsError where there is nothing compiled to count."""
    run = _built(step)
    for call in calls:
        run(*call)
    if isinstance(run, static.Executable):
        executables, compiles = [run], 1
    else:
        executables, compiles = list(run.executables.values()), run.stats.compiles
    if not all(executable.has_plan for executable in executables) or not executables:
        raise InputsError(f"{name_of(step)}: nothing is planned before the first call; give inputs=[(x,), ...]")
    kernels = max(
        sum(sum(graph.op_counts().values()) for graph in executable.graph.nested()) for executable in executables
    )
    return Counts(kernels, compiles, sum(executable.plan.peak for executable in executables))


def timed(a: Any, b: Any, calls: Calls, seconds: float, seed: int) -> Interval:
    """The time of a pass over the calls, a / b, in groups of paired rounds for about so many seconds.

    It is the time of this thread, on one core: what other processes take counts for neither.
    """
    tops, bottoms = [], []
    for group in range(GROUPS):
        passes = {"a": _pass(_built(a), calls), "b": _pass(_built(b), calls)}
        with pinned():
            rounds, _ = own_rounds(passes, Budget(seconds=seconds / GROUPS), Random(seed + group))
        blocks = rounds.steady()
        tops.append(blocks["a"])
        bottoms.append(blocks["b"])
    return ratio_interval(tops, bottoms, seed=seed)


def _built(step: Any) -> Any:
    """What runs: an executable or a jitted function as it is, a function compiled anew."""
    return step if isinstance(step, static.Executable) else jitted(step)


def _pass(run: Callable[..., Any], calls: Calls) -> Callable[[], None]:
    def once() -> None:
        for call in calls:
            run(*call)

    once()  # compiled, if need be, before the clock starts
    return once


def _compare_counts(who: str, ours: Counts, theirs: Counts, by: float) -> None:
    """Raises AssertionError for the counts of ours that are above `by` times theirs."""
    __tracebackhide__ = True
    limits = asdict(theirs)
    above = [
        f"\n  {name.replace('_', ' ')}: {count:,} against {limits[name]:,}, allowed {by * limits[name]:,.10g}"
        for name, count in asdict(ours).items()
        if count > by * limits[name]
    ]
    if above:
        raise AssertionError(f"{who}: more than {by:g} times:{''.join(above)}")


def _compare_times(a: Any, b: Any, calls: Calls, by: float, seconds: float) -> Interval:
    """The interval. Raises AssertionError where two measurements, one after the other, both lie above `by`."""
    __tracebackhide__ = True
    for seed in range(2):
        ratio = timed(a, b, calls, seconds, seed * GROUPS)
        if ratio.low <= by:
            return ratio
    raise AssertionError(
        f"{name_of(a)} takes {text.ratio(ratio.estimate)} {text.interval(ratio.low, ratio.high)} the time of "
        f"{name_of(b)}, allowed {by:g}×; two measurements agree"
    )
