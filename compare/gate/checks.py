"""Checks of a step for tests: compiled once, equal in every mode, and not slower than another.

What is slower is told by counts, which are exact, and by time only where that is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from random import Random
from typing import Any, ParamSpec, TypeVar

import static
from compare.engines import OWN, Engine, find_engine, of_values
from compare.errors import InputsError, refuse_exit
from compare.instruments import parity as measure
from compare.instruments.time.rounds import own_rounds
from compare.own import compare
from compare.own.case import case_of, check_inputs
from compare.own.measure import pin_process
from compare.own.question import SIZE, arms_of
from compare.records.cells import Compilations, Parity
from compare.records.job import Budget, Job
from compare.records.record import Failure, Records, records_of
from compare.stats import Interval, ratio_interval
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
        with refuse_exit(name_of(args[0])):
            return check(*args, **options)

    return checked_alive


def jit_step(step: Any, **options: Any) -> static.Jitted:
    """The step as `static.jit` compiles it; one that is jitted already, as it is.

    Raises InputsError for options beside a jitted step, for an executable, and for what cannot be called.
    """
    if isinstance(step, static.Jitted):
        if options:
            raise InputsError(f"{name_of(step)} is jitted already; give {text.join_words(list(options))} to static.jit")
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
                f"{text.join_words(list(options))}: options of static.jit, which compiles no {framework.title}"
            )
        calls, stats = inputs, _compile_stats(framework, step, inputs)
    else:
        calls, run = check_inputs(inputs, step), jit_step(step, **options)
        for call in calls:
            run(*call)
        stats = run.stats
    if stats.compiles != 1:
        reasons = "".join(f"\n  {place}: {reason}" for place, reason in enumerate(stats.reasons, 1))
        raise AssertionError(
            f"{name_of(step)}: compiled {text.count_noun(stats.compiles, 'time')} for "
            f"{text.count_noun(len(calls), 'input')}, expected once; the reason of each:{reasons}"
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
        arms = arms_of(find_engine(OWN), modes)
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
    return find_engine(name) if name else None


def _compile_stats(framework: Engine, step: Any, inputs: Any) -> Stats:
    """What the framework has compiled, in its first mode that does, for a pass over the inputs."""
    made = [
        made
        for record in records_of(_compare_briefly(framework, step, inputs), Compilations)
        for row in list(record.arms.values())[1:]
        for made in row.made
    ]
    return Stats(compiles=len(made), reasons=[compile.reason for compile in made])


def _parity_in(framework: Engine, step: Any, inputs: Any, modes: Sequence[str] | None, gradient: bool | None) -> Parity:
    """One record of all modes, of which each had the eager one beside it."""
    first, *others = records_of(_compare_briefly(framework, step, inputs, modes=modes, gradient=gradient), Parity)
    for other in others:
        first.arms |= other.arms
    return first


def _compare_briefly(framework: Engine, step: Any, inputs: Any, **options: Any) -> Records:
    """The records of a comparison that spends little on the clock. Raises AssertionError for what has no answer."""
    records = compare(
        step, inputs, framework=framework.name, name=name_of(step), processes=0, seconds=SECONDS, allow_effects=True,
        **options,
    ).records  # fmt: skip
    if lost := records_of(records, Failure):
        raise AssertionError(f"{name_of(step)}: {lost[0].error}")
    return records


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
    calls = () if inputs is None else check_inputs(inputs)
    _compare_counts(f"{name_of(a)} against {name_of(b)}", counts_of(a, calls), counts_of(b, calls), by)
    return _compare_times(a, b, calls, by, seconds) if time else None


def counts_of(step: Any, calls: Calls) -> Counts:
    """The counts of a step, after these calls. Raises InputsError where there is nothing compiled to count."""
    run = _build_step(step)
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


def time_ratio(a: Any, b: Any, calls: Calls, seconds: float, seed: int) -> Interval:
    """The time of a pass over the calls, a / b, in groups of paired rounds for about so many seconds.

    It is the time of this thread, on one core: what other processes take counts for neither.
    """
    tops, bottoms = [], []
    for group in range(GROUPS):
        passes = {"a": _pass(_build_step(a), calls), "b": _pass(_build_step(b), calls)}
        with pin_process():
            rounds, _ = own_rounds(passes, Budget(seconds=seconds / GROUPS), Random(seed + group))
        blocks = rounds.steady()
        tops.append(blocks["a"])
        bottoms.append(blocks["b"])
    return ratio_interval(tops, bottoms, seed=seed)


def _build_step(step: Any) -> Any:
    """What runs: an executable or a jitted function as it is, a function compiled anew."""
    return step if isinstance(step, static.Executable) else jit_step(step)


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
        ratio = time_ratio(a, b, calls, seconds, seed * GROUPS)
        if ratio.low <= by:
            return ratio
    raise AssertionError(
        f"{name_of(a)} takes {text.estimate(ratio)} the time of {name_of(b)}, allowed {by:g}×; two measurements agree"
    )
