"""A function of the user's own in both engines, behind the same gate and by the same measurements as the workloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compare import engines
from compare.errors import InputsError, refused
from compare.own import question, run
from compare.own.result import Result
from compare.run.progress import Reporter
from graphs import tree

__all__ = ["Result", "compare"]


def compare(
    f: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    modes: Sequence[str] | None = None,
    *,
    framework: str | None = None,
    gradient: bool | None = None,
    dims: Sequence[Any] | None = None,
    processes: int | None = None,
    seconds: float = question.SECONDS,
    seed: int = 0,
    name: str | None = None,
    command: str | None = None,
    allow_effects: bool = False,
    apart: bool = False,
    limit: float = question.LIMIT,
    reporter: Reporter | None = None,
) -> Result:
    """The `Result` of measuring `f`, a plain function over graphs ops, in each mode, by default dynamic and static.

    With `framework`, "torch", "tensorflow", "jax" or "autograd", f is a loss written in it, whose gradients in argument
    0 are taken: arrays in containers, or a module of PyTorch. None takes the framework whose arrays are in the inputs,
    if there is one. `modes` are then its own, by default eager and the first that compiles.
    f runs in this process: `graphduel compare --framework` uses fresh ones, which tell cold caches from warm ones, and
    has intervals.

    `inputs` is the stream of calls, a tuple of arguments each. With `gradient` a step is the value of `f` and its
    gradients in argument 0; None asks for them where f returns one float and argument 0 holds float arrays only.
    `modes` are "dynamic", "static" (that is "static-exact"), "static-symbolic", "static-bucket", "static-pad",
    "static-native" (machine code) and "static-converted". Where Python decides on values in f, the static modes convert
    its control flow, as `static.jit(f, convert=True)` does, and the result says so.
    `dims` names the axes that vary, per argument as `static.jit` takes them; None finds them in the inputs.

    `processes` fresh workers measure, for at most about `seconds` of steady state each; 0 measures in this process.
    None takes workers where f can be imported by name and the inputs can be sent, and this process otherwise. A worker
    is ended that makes no progress in `limit` seconds, and so is a mode of a framework whose first pass takes longer.

    A step is then read line by line: the time, the bytes and the tensors kept for backward of each line of source. With
    `apart` it is also taken apart, for the report: the ladder of passes, the parts of time, live bytes over the step.

    First f is run once or twice to see what it does besides its result: prints, draws random numbers, changes globals
    or arguments. Raises EffectsError that says in which line, unless with `allow_effects`; the result tells it then.

    A mode that refuses f, or whose outputs or gradients disagree, is not timed: the result says why. What f raises
    by itself is raised. Raises InputsError for inputs or modes that cannot be used.
    """
    engine = framework or engines.of_values(tree.leaves(inputs)) or engines.OWN
    if processes is not None and processes < 0:
        raise InputsError(f"processes is 0 for this process or a number of workers, not {processes}")
    title = str(name or getattr(f, "__name__", type(f).__name__))
    options = {"seed": seed, "seconds": seconds, "limit": limit, "gradient": gradient, "title": title}
    options |= {"allow_effects": allow_effects, "apart": apart, "command": command or ""}
    with refused(title):
        return run.here(question.asked_of(engine, "", "", modes, **options), f, inputs, dims, processes, reporter)
