"""Two checks of a step on its inputs: it compiles once, and both engines agree about it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import static
from compare.engines import OWN, named
from compare.errors import InputsError, refused
from compare.instruments import parity as measure
from compare.own.case import case_of, checked
from compare.own.question import SIZE, arms_of
from compare.records.cells import Parity
from compare.records.job import Job
from compare.words import text
from static.call.cache import Stats

P = ParamSpec("P")
T = TypeVar("T")


def name_of(step: Any) -> str:
    """What a step is called in a message."""
    name = step.graph.name if isinstance(step, static.Executable) else getattr(step, "__name__", type(step).__name__)
    return str(name)


def alive(check: Callable[P, T]) -> Callable[P, T]:
    """The check, in which a step that would end the process fails: it would end all tests, and with 0."""

    @functools.wraps(check)
    def checked_alive(*args: P.args, **options: P.kwargs) -> T:
        __tracebackhide__ = True
        with refused(name_of(args[0])):
            return check(*args, **options)

    return checked_alive


def jitted(step: Any, **options: Any) -> static.Jitted:
    """The step as `static.jit` compiles it; one that is jitted already, as it is.

    Raises InputsError for options beside a jitted step, for an executable, and for what cannot be called.
    """
    if isinstance(step, static.Jitted):
        if options:
            raise InputsError(f"{name_of(step)} is jitted already; give {text.listed(list(options))} to static.jit")
        return step
    if isinstance(step, static.Executable):
        raise InputsError(f"{name_of(step)} is compiled already and never compiles again; give the function")
    if not callable(step):
        raise InputsError(f"a step is a function or what static.jit returns, not a {type(step).__name__}")
    return static.jit(step, **options)


@alive
def compiles_once(step: Any, inputs: Sequence[tuple[Any, ...]], **options: Any) -> Stats:
    """The stats of the step after a pass over the inputs, each the tuple of a call's arguments.

    A function is compiled by `static.jit` with these options. A step that is jitted already counts every compile that
    it has ever made. Raises AssertionError with the reason of each compile unless there was one, and InputsError.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    calls, run = checked(inputs, step), jitted(step, **options)
    for call in calls:
        run(*call)
    if run.stats.compiles != 1:
        reasons = "".join(f"\n  {place}: {reason}" for place, reason in enumerate(run.stats.reasons, 1))
        raise AssertionError(
            f"{name_of(step)}: compiled {text.counted(run.stats.compiles, 'time')} for "
            f"{text.counted(len(calls), 'input')}, expected once; the reason of each:{reasons}"
        )
    return run.stats


@alive
def parity(
    step: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    modes: Sequence[str] = ("static",),
    gradient: bool | None = None,
    dims: Sequence[Any] | None = None,
) -> Parity:
    """The parity record of the step on every input: each mode against the dynamic engine and a float64 reference.

    The value is compared, and with `gradient` the gradients in argument 0: None compares them where the step is a loss,
    as in `compare.compare`. Raises AssertionError that names each mode that disagrees, fails or refuses, and
    InputsError for a step, inputs or modes that cannot be used.
    """
    __tracebackhide__ = True
    if isinstance(step, static.Executable):
        raise InputsError(f"{name_of(step)} is compiled already and has no dynamic side; give the function")
    f = step.f if isinstance(step, static.Jitted) else step
    arms = arms_of(named(OWN), modes)
    converts = isinstance(step, static.Jitted) and step.convert
    case = replace(case_of(f, inputs, gradient, dims), branches=converts)
    record = measure.check(Job("parity", name_of(step), SIZE, arms=arms), case, arms, most=len(case.examples))
    wrong = [f"\n  {arm}: {row.status}: {row.reason}" for arm, row in record.arms.items() if row.status != "ok"]
    if wrong:
        raise AssertionError(f"{name_of(step)}: the engines do not agree:{''.join(wrong)}")
    return record
