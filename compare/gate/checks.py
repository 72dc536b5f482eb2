"""Two checks of a step on its inputs: it compiles once, and its modes agree about it.

Inputs that hold arrays of a framework say that the step is written in it, as for `compare.compare`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import static
from compare.engines import OWN, Engine, named, of_values
from compare.errors import InputsError, refused
from compare.instruments import parity as measure
from compare.own import compare
from compare.own.case import case_of, checked
from compare.own.question import SIZE, arms_of
from compare.records.cells import Compilations, Parity
from compare.records.job import Job
from compare.records.record import Failure, Records, of
from compare.words import text
from graphs import tree
from static.call.jit import Stats

SECONDS = 0.05
"""What the clock takes of a comparison in a framework, of which a check reads no time."""

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

    A function is compiled by `static.jit` with these options, and one of a framework by the first of its modes that
    compiles. A step that is jitted already counts every compile that it has ever made.
    Raises AssertionError with the reason of each compile unless there was one, and InputsError.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    if framework := _framework_of(step, inputs):
        if options:
            raise InputsError(
                f"{text.listed(list(options))}: options of static.jit, which compiles no {framework.title}"
            )
        calls, stats = inputs, _compiled_by(framework, step, inputs)
    else:
        calls, run = checked(inputs, step), jitted(step, **options)
        for call in calls:
            run(*call)
        stats = run.stats
    if stats.compiles != 1:
        reasons = "".join(f"\n  {place}: {reason}" for place, reason in enumerate(stats.reasons, 1))
        raise AssertionError(
            f"{name_of(step)}: compiled {text.counted(stats.compiles, 'time')} for "
            f"{text.counted(len(calls), 'input')}, expected once; the reason of each:{reasons}"
        )
    return stats


@alive
def parity(
    step: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    modes: Sequence[str] | None = None,
    gradient: bool | None = None,
    dims: Sequence[Any] | None = None,
) -> Parity:
    """The parity record of the step on every input: each mode against the eager one and a float64 reference.

    No modes are the first that compiles: static, or that of the framework. The value is compared, and with `gradient`
    the gradients in argument 0: None compares them where the step is a loss, as in `compare.compare`.
    Raises AssertionError that names each mode that disagrees, fails or refuses, and InputsError for a step, inputs or
    modes that cannot be used.
    """
    __tracebackhide__ = True
    if isinstance(step, static.Executable):
        raise InputsError(f"{name_of(step)} is compiled already and has no dynamic side; give the function")
    if framework := _framework_of(step, inputs):
        record = _parity_in(framework, step, inputs, modes, gradient)
    else:
        f = step.f if isinstance(step, static.Jitted) else step
        arms = arms_of(named(OWN), modes)
        converts = isinstance(step, static.Jitted) and step.convert
        case = replace(case_of(f, inputs, gradient, dims), branches=converts)
        record = measure.check(Job("parity", name_of(step), SIZE, arms=arms), case, arms, most=len(case.examples))
    wrong = [f"\n  {arm}: {row.status}: {row.reason}" for arm, row in record.arms.items() if row.status != "ok"]
    if wrong:
        raise AssertionError(
            f"{name_of(step)}: the {'modes' if framework else 'engines'} do not agree:{''.join(wrong)}"
        )
    return record


def _framework_of(step: Any, inputs: Any) -> Engine | None:
    """The framework that a function is written in; None where that is ours."""
    name = None if isinstance(step, (static.Jitted, static.Executable)) else of_values(tree.leaves(inputs))
    return named(name) if name else None


def _compiled_by(framework: Engine, step: Any, inputs: Any) -> Stats:
    """What the framework has compiled, in its first mode that does, for a pass over the inputs."""
    made = [
        made
        for record in of(_compared(framework, step, inputs), Compilations)
        for row in list(record.arms.values())[1:]
        for made in row.made
    ]
    return Stats(compiles=len(made), reasons=[compile.reason for compile in made])


def _parity_in(framework: Engine, step: Any, inputs: Any, modes: Sequence[str] | None, gradient: bool | None) -> Parity:
    """One record of all modes, of which each had the eager one beside it."""
    first, *others = of(_compared(framework, step, inputs, modes=modes, gradient=gradient), Parity)
    for other in others:
        first.arms |= other.arms
    return first


def _compared(framework: Engine, step: Any, inputs: Any, **options: Any) -> Records:
    """The records of a comparison that spends little on the clock. Raises AssertionError for what has no answer."""
    records = compare(
        step, inputs, framework=framework.name, name=name_of(step), processes=0, seconds=SECONDS, allow_effects=True,
        **options,
    ).records  # fmt: skip
    if lost := of(records, Failure):
        raise AssertionError(f"{name_of(step)}: {lost[0].error}")
    return records
