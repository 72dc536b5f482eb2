"""A function of the user's own in both engines, behind the same gate and by the same measurements as the workloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compare.errors import InputsError
from compare.measure.job import Budget
from compare.own import effects, measure
from compare.own.case import arms_of, case_of, checked
from compare.own.result import Result
from compare.progress import Reporter

__all__ = ["Result", "compare"]


def compare(
    f: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    modes: Sequence[str] = ("dynamic", "static"),
    *,
    gradient: bool | None = None,
    dims: Sequence[Any] | None = None,
    processes: int | None = None,
    seconds: float = 2.5,
    seed: int = 0,
    name: str | None = None,
    command: str | None = None,
    allow_effects: bool = False,
    reporter: Reporter | None = None,
) -> Result:
    """Measure `f`, a plain function over graphs ops, in each mode.

    `inputs` is the stream of calls, a tuple of arguments each. With `gradient` a step is the value of `f` and its
    gradients in argument 0; None asks for them where f returns one float and argument 0 holds float arrays only.
    `modes` are "dynamic", "static" (that is "static-exact"), "static-symbolic", "static-bucket" and "static-pad".
    `dims` names the axes that vary, per argument as `static.jit` takes them; None finds them in the inputs.

    `processes` fresh workers measure, for at most about `seconds` of steady state each; 0 measures in this process.
    None takes workers where f can be imported by name and the inputs can be sent, and this process otherwise.

    First f is run once or twice to see what it does besides its result: prints, draws random numbers, changes globals
    or arguments. Raises EffectsError that says in which line, unless with `allow_effects`; the result tells it then.

    A mode that refuses f, or whose outputs or gradients disagree, is not timed: the result says why. What f raises
    by itself is raised. Raises InputsError for inputs or modes that cannot be used.
    """
    if processes is not None and processes < 0:
        raise InputsError(f"processes is 0 for this process or a number of workers, not {processes}")
    arms = arms_of(modes)
    title = str(name or getattr(f, "__name__", type(f).__name__))
    found = effects.effects_of(f, checked(inputs)[0])
    if not allow_effects:
        effects.refuse(title, found)
    case = case_of(f, inputs, gradient, dims)
    plan = measure.Plan(
        name=title,
        arms=arms,
        repeats=processes or measure.REPEATS,
        seed=seed,
        budget=Budget(rounds=20, least=5, seconds=seconds),
        command=command,
        effects=tuple(map(str, found)),
    )
    with measure.executor(f, inputs, case, dims, processes) as (source, execute):
        records = measure.run(plan, case, source, execute, reporter or Reporter())
    return Result(title, arms, tuple(records))
