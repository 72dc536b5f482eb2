"""Checks of a step for tests: it compiles once, it is equal in every mode, it is not slower than another step.

Slower is decided by exact counts, and by time only on request.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from random import Random
from time import perf_counter_ns
from typing import Any, ParamSpec, TypeVar

import static
from compare import text
from compare.claims.evidence import BUSY
from compare.engines import OWN, Engine, find_engine, of_values
from compare.engines.process import Neighbours
from compare.errors import InputsError, refuse_exit
from compare.instruments import parity as measure
from compare.instruments.rounds import own_rounds, paired_rounds
from compare.own import compare
from compare.own.measure import pin_process
from compare.records.cells import Compilations, Parity
from compare.records.job import Budget, Job
from compare.records.record import Failure, Records, records_of
from compare.run.environment import thread_numbers
from compare.stats import Interval, ratio_interval
from compare.subjects.case import case_of, check_inputs
from compare.subjects.subject import SIZE, modes_of
from graphs import tree
from static.call.jit import Stats

SECONDS = 0.05
"""The seconds that a comparison in a framework spends on timing; a check does not use the times."""

P = ParamSpec("P")
T = TypeVar("T")


def name_of(step: Any) -> str:
    """Return the name of a step for messages."""
    name = step.graph.name if isinstance(step, static.Executable) else getattr(step, "__name__", type(step).__name__)
    return str(name)


def alive(check: Callable[P, T]) -> Callable[P, T]:
    """Wrap a check so that a step which would end the process fails: it could end all tests with exit code 0."""

    @functools.wraps(check)
    def checked_alive(*args: P.args, **options: P.kwargs) -> T:
        __tracebackhide__ = True
        with refuse_exit(name_of(args[0])):
            return check(*args, **options)

    return checked_alive


def jit_step(step: Any, **options: Any) -> static.Jitted:
    """Return the step jitted by `static.jit`; a jitted step is returned as it is.

    Raises InputsError for options with a jitted step, for an executable, and for an object that cannot be called.
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
    """Check that a step compiles once in a pass over the inputs, each a tuple of arguments; returns its stats.

    A function is compiled by `static.jit` with these options, a function of a framework by the mode of the framework
    that captures its graphs in the least time. For a step that is jitted already, all its earlier compiles count.
    Raises AssertionError with the reason of each compile unless there was exactly one, and InputsError for unusable
    arguments.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    stats, _ = _compile_stats(step, inputs, options)
    return _check_compiles(step, inputs, stats, stats.compiles == 1, "once")


@alive
def compiles_at_most(step: Any, inputs: Sequence[tuple[Any, ...]], n: int, **options: Any) -> Stats:
    """Check that a step compiles at most `n` times in a pass over the inputs; else as `compiles_once`."""
    __tracebackhide__ = True
    if type(n) is not int or n < 0:
        raise InputsError(f"n is the number of compiles that are allowed, such as 2, not {n!r}")
    stats, _ = _compile_stats(step, inputs, options)
    return _check_compiles(step, inputs, stats, stats.compiles <= n, f"at most {text.count_noun(n, 'time')}")


@alive
def no_breaks(step: Any, inputs: Sequence[tuple[Any, ...]], **options: Any) -> Stats:
    """Check that a step is captured whole in a pass over the inputs: no graph ends at a line that runs eagerly.

    Our static engine captures a step whole or refuses it; then its error is raised. The step and its options are as in
    `compiles_once`. Raises AssertionError with the reason and the line of each graph break.
    """
    __tracebackhide__ = True
    stats, breaks = _compile_stats(step, inputs, options)
    if breaks:
        reasons = "".join(f"\n  {reason.splitlines()[0]}" for reason in breaks)
        raise AssertionError(f"{name_of(step)}: {text.count_noun(sum(breaks.values()), 'graph break')}:{reasons}")
    return stats


def _compile_stats(step: Any, inputs: Sequence[tuple[Any, ...]], options: Any) -> tuple[Stats, dict[str, int]]:
    """Return the compilations of a step in a pass over the inputs, and its graph breaks by reason and line."""
    framework = _framework_of(step, inputs)
    if framework is None:
        calls, run = check_inputs(inputs, step), jit_step(step, **options)
        for call in calls:
            run(*call)
        return run.stats, {}
    if options:
        raise InputsError(
            f"{text.join_words(list(options))}: options of static.jit, which compiles no {framework.title}"
        )
    others = sorted(framework.modes[1:], key=lambda mode: mode.kernels)
    if not others:
        raise InputsError(f"{framework.title} compiles nothing, so that there is nothing to count")
    told = records_of(_compare_briefly(framework, step, inputs, modes=[others[0].name]), Compilations)
    rows = [row for record in told for row in list(record.modes.values())[1:]]
    reasons = [compilation.reason for row in rows for compilation in row.made]
    return Stats(compiles=len(reasons), reasons=reasons), {k: n for row in rows for k, n in row.breaks.items()}


def _check_compiles(step: Any, inputs: Sequence[Any], stats: Stats, is_right: bool, expected: str) -> Stats:
    __tracebackhide__ = True
    if not is_right:
        reasons = "".join(f"\n  {place}: {reason}" for place, reason in enumerate(stats.reasons, 1))
        raise AssertionError(
            f"{name_of(step)}: compiled {text.count_noun(stats.compiles, 'time')} for "
            f"{text.count_noun(len(inputs), 'input')}, expected {expected}; the reason of each:{reasons}"
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
    """Check that modes agree on every input with the eager mode and a float64 reference; returns the parity record.

    Without `modes`, the first compiling mode is checked: static, or that of the framework. The value is compared, and
    with `gradient` the gradients in argument 0; None compares them if the step is a loss, as in `compare.compare`.
    Raises AssertionError with each mode that disagrees, fails or refuses, and InputsError for a step, inputs or modes
    that cannot be used.
    """
    __tracebackhide__ = True
    if isinstance(step, static.Executable):
        raise InputsError(f"{name_of(step)} is compiled already and has no dynamic side; give the function")
    if framework := _framework_of(step, inputs):
        # each mode is compared beside the eager mode, in a record of its own
        record, *others = records_of(_compare_briefly(framework, step, inputs, modes=modes, gradient=gradient), Parity)
        for other in others:
            record.modes |= other.modes
    else:
        f = step.f if isinstance(step, static.Jitted) else step
        modes = modes_of(find_engine(OWN), modes)
        converts = isinstance(step, static.Jitted) and step.convert
        case = replace(case_of(f, inputs, gradient, dims), branches=converts)
        record = measure.check(Job("parity", name_of(step), SIZE, modes=modes), case, modes, most=len(case.examples))
    wrong = [f"\n  {mode}: {row.status}: {row.reason}" for mode, row in record.modes.items() if row.status != "ok"]
    if wrong:
        raise AssertionError(
            f"{name_of(step)}: the {'modes' if framework else 'engines'} do not agree:{''.join(wrong)}"
        )
    return record


def _framework_of(step: Any, inputs: Any) -> Engine | None:
    """Return the framework of a step, by the types of its inputs; None for our engines."""
    name = None if isinstance(step, (static.Jitted, static.Executable)) else of_values(tree.leaves(inputs))
    return find_engine(name) if name else None


def _compare_briefly(framework: Engine, step: Any, inputs: Any, **options: Any) -> Records:
    """Return the records of a comparison with little timing. Raises AssertionError if a worker gave no answer."""
    records = compare(
        step, inputs, framework=framework.name, name=name_of(step), processes=0, seconds=SECONDS, allow_effects=True,
        **options,
    ).records  # fmt: skip
    if lost := records_of(records, Failure):
        raise AssertionError(f"{name_of(step)}: {lost[0].error}")
    return records


GROUPS = 5
"""The number of groups in one measurement; functions are compiled anew for each."""

Calls = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Counts:
    """The costs of a step as exact counts, the same on every machine.

    `kernels` is the number of ops in one call, of the largest graph if there are several. `planned_bytes` is the sum of
    the peaks of all memory plans.
    """

    kernels: int
    compiles: int
    planned_bytes: int


@alive
def not_slower(
    a: Any,
    b: Any,
    inputs: Calls | None = None,
    *,
    by: float = 1.05,
    time: bool = False,
    seconds: float = 5.0,
    threads: int = 1,
) -> Interval | None:
    """Check that `a` has at most `by` times the kernel calls, compiles and planned bytes of `b`.

    Each is a function, which `static.jit` compiles, a jitted function, or an executable. Both are called with the
    inputs first; only an executable of fixed shapes needs no inputs. With `time`, a pass over the inputs is timed too,
    in paired rounds for about `seconds`, and the ratio a / b with its interval is returned. The time fails only if the
    whole 95% interval lies above `by` in two measurements. On several `threads`, of BLAS and of steps that are compiled
    for them, the clock is the wall, and a measurement that other processes disturb never fails.

    Raises AssertionError with each count above the limit, and InputsError for steps that cannot be compared.
    """
    __tracebackhide__ = True
    if not (isfinite(by) and by > 0):
        raise InputsError(f"by is a ratio above 0, such as 1.05, not {by}")
    if time and inputs is None:
        raise InputsError("time=True runs both steps; give inputs=[(x,), ...]")
    thread_numbers(threads)
    calls = () if inputs is None else check_inputs(inputs)
    limits = asdict(counts_of(b, calls))
    above = [
        f"\n  {name.replace('_', ' ')}: {count:,} against {limits[name]:,}, allowed {by * limits[name]:,.10g}"
        for name, count in asdict(counts_of(a, calls)).items()
        if count > by * limits[name]
    ]
    if above:
        raise AssertionError(f"{name_of(a)} against {name_of(b)}: more than {by:g} times:{''.join(above)}")
    if not time:
        return None
    for seed in range(2):
        ratio = time_ratio(a, b, calls, seconds, seed * GROUPS, threads)
        if ratio.low <= by:
            return ratio
    raise AssertionError(
        f"{name_of(a)} takes {text.estimate(ratio)} the time of {name_of(b)}, allowed {by:g}×; two measurements agree"
    )


def counts_of(step: Any, calls: Calls) -> Counts:
    """Return the counts of a step after these calls. Raises InputsError if nothing is compiled."""
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


def time_ratio(a: Any, b: Any, calls: Calls, seconds: float, seed: int, threads: int = 1) -> Interval:
    """Return the ratio a / b of the time of a pass over the calls, in paired rounds for about `seconds` in all.

    The clock counts seconds of this thread, on one core, so that other processes do not count. On several threads it is
    the wall, and there is no interval where other processes had the cores.
    """
    tops, bottoms, neighbours = [], [], Neighbours()
    for group in range(GROUPS):
        passes = {"a": _pass(_build_step(a), calls), "b": _pass(_build_step(b), calls)}
        budget, random = Budget(seconds=seconds / GROUPS), Random(seed + group)
        with pin_process(threads):
            on_wall = threads > 1 and paired_rounds(passes, budget, random, perf_counter_ns)
            rounds = on_wall or own_rounds(passes, budget, random)[0]
        blocks = rounds.steady()
        tops.append(blocks["a"])
        bottoms.append(blocks["b"])
    ratio = ratio_interval(tops, bottoms, seed=seed)
    return Interval(ratio.estimate) if threads > 1 and (neighbours.share() or 0.0) > BUSY else ratio


def _build_step(step: Any) -> Any:
    """Return an executable or a jitted function as it is, and a function compiled anew."""
    return step if isinstance(step, static.Executable) else jit_step(step)


def _pass(run: Callable[..., Any], calls: Calls) -> Callable[[], None]:
    def once() -> None:
        for call in calls:
            run(*call)

    once()  # compiles, if necessary, before the clock starts
    return once
