"""`graphduel advise`: which engine will win for a function, before anything of it is measured."""

from __future__ import annotations

import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import complete, options
from compare.words.terminal import echo

if TYPE_CHECKING:
    from compare.advice import Costs


@click.command()
@click.argument("function", metavar="[FILE.py:FUNCTION]", required=False)
@options.INPUTS
@options.GRADIENT
@click.option(
    "--calibration",
    type=options.FILE,
    help="Read the prices of this machine from this file, not the cache; if there is none, measure and write them.",
)
@click.option("--calibrate", is_flag=True, help="Measure the prices of this machine anew, and keep them.")
@click.option(
    "--evaluate", is_flag=True, help="Predict the workloads, measure them, and show how often the prediction was right."
)
@click.option("--held-out", is_flag=True, help="Evaluate on programs drawn at random instead.")
@click.option(
    "--framework",
    metavar="NAME",
    shell_complete=complete.frameworks,
    help="Predict whether compiling pays in torch or jax.",
)
@click.option(
    "--mode",
    shell_complete=complete.modes,
    help="Predict this compiling mode of the framework; by default its first.",
)
@click.option(
    "--rows",
    metavar="FILE.py:NAME",
    help="Evaluate these too: a table of functions that return (loss, params, inputs).",
)
@options.ONLY
@options.JSON
def advise(
    function: str | None,
    *,
    calibration: Path | None,
    calibrate: bool,
    evaluate: bool,
    held_out: bool,
    framework: str | None,
    mode: str | None,
    rows: str | None,
    only: str | None,
    path: Path | None,
    **asked: Any,
) -> None:
    """Predict which engine wins for a function of yours.

    The command also says by how much, and after how many calls compiling pays. The first time on a machine it measures
    prices, in half a minute, on made-up programs, and keeps them in the user's cache. Then it traces FUNCTION on shapes
    and adds up the costs. It never runs FUNCTION: where FUNCTION branches on values, it is converted, as `graphduel
    compare` does. If the static engine refuses FUNCTION, the advice says so.

    With --framework the command predicts whether compiling pays there. It measures the prices of that framework first,
    in minutes and once on a machine. Then it runs FUNCTION op by op, once for each call, and never compiles it.
    """
    from compare import engines

    if (function is None) != evaluate:
        raise click.UsageError("give a function, as FILE.py:FUNCTION, or --evaluate")
    if not evaluate and (rows or only or held_out):
        raise click.UsageError("--rows, --only and --held-out need --evaluate")
    if framework and framework != engines.OWN:
        if rows or held_out or asked["gradient"] is not None:
            raise click.UsageError(
                "--rows, --held-out and --gradient work with graphduel's engines, not with a --framework"
            )
        options.written(
            path, _in_framework(framework, function, asked["inputs"], mode, calibration, only, anew=calibrate)
        )
        return
    if mode:
        raise click.UsageError("--mode needs a --framework")
    from compare import advice

    costs = advice.prices().prices(calibration, _said, anew=calibrate)
    found = _evaluated(costs, rows, only, held_out=held_out) if function is None else _advised(function, costs, **asked)
    options.written(path, found)


def _said(text: str) -> None:
    """What is said of prices, beside the answer."""
    options.say(text, err=True)


def _in_framework(
    framework: str,
    function: str | None,
    inputs: str | None,
    mode: str | None,
    path: Path | None,
    only: str | None,
    *,
    anew: bool,
) -> dict[str, Any]:
    from compare import workloads
    from compare.advice import evaluation, judging
    from compare.run import progress

    asked = judging.question(framework, function or "", inputs or "", mode)
    costs = judging.prices(asked, progress.reporter()).prices(path, _said, anew=anew)
    if function is not None:
        found = judging.advised(asked, costs, progress.reporter())
        echo(str(found))
        return found.to_dict()
    names = [name for name in workloads.names() if only is None or fnmatchcase(name, only)]
    eager, compiled = asked.arms
    rows = judging.judged(asked, costs, names, progress.reporter())
    return _judged({**evaluation.summary(rows, (eager, compiled)), "left_out": {}}, (eager, compiled))


def _advised(function: str, costs: Costs, **asked: Any) -> dict[str, Any]:
    from compare import advice
    from compare.cli.own import warn
    from compare.own import workers
    from compare.records.own import FunctionAdvice

    warn(function)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
        file = Path(folder, "costs.json")
        advice.save(costs, file)
        found = workers.answer(FunctionAdvice, function, {"function": function, "costs": str(file), **asked})
    options.say(found.text)
    return found.value


def _evaluated(costs: Costs, rows: str | None, only: str | None, *, held_out: bool) -> dict[str, Any]:
    from compare.advice import evaluation, heldout
    from compare.own import origin
    from compare.run import environment, progress

    environment.pin()
    more = evaluation.from_rows(origin.named(rows)) if rows else {}
    chosen = heldout.cases() if held_out else evaluation.cases(only=only)
    found = evaluation.evaluate({**chosen, **more}, costs, progress.reporter())
    return _judged(found, evaluation.OURS)


def _judged(found: dict[str, Any], arms: tuple[str, str]) -> dict[str, Any]:
    """Show predictions beside what was measured, and how often they were right."""
    from compare.page import tables
    from compare.words.text import counted

    eager, compiled = arms
    columns = ("row", "said", "predicted", "measured", "right")
    echo(f"Ratios are {compiled} ÷ {eager}.")
    tables.show(columns, [_row(row) for row in found["rows"]], whole=columns)
    for name, why in found["left_out"].items():
        options.say(f"left out: {name}: {why}", err=True)
    _say_rate("once warm", found, arms)
    for calls, rate in found["over_calls"].items():
        _say_rate(f"over {counted(int(calls), 'call')} with the compilation", rate, arms)
    _say_scores(found["scores"])
    options.say(f"Measured ratios in the predicted interval of 95%: {found['covered']} of {len(found['rows'])}.")
    return found


def _say_scores(scores: dict[str, Any]) -> None:
    """Hits where there is a winner, beside who looks at nothing, by regime, and whether stated odds came true."""
    if scores["of"]:
        trivial = ", ".join(f"{name} {hits}" for name, hits in scores["predictors"].items())
        said = f"{scores['of']} have times that differ by more than {scores['beyond']:.2f}. Right: {scores['hits']}"
        options.say(f"{said}. Trivial predictors: {trivial}.")
    for regime, one in scores["regimes"].items():
        options.say(f"  {regime}: {one['hits']} of {one['of']}")
    if scores["brier"] is not None:
        stated = ", ".join(
            f"{one['stated']:.0%} happened in {one['happened']:.0%} of {one['rows']}" for one in scores["stated"]
        )
        options.say(
            f"Brier score: {scores['brier']:.3f}; a constant prediction of one half has 0.25. Stated odds: {stated}."
        )


def _say_rate(when: str, rate: dict[str, Any], arms: tuple[str, str]) -> None:
    if not rate["called"]:
        echo(f"Predictions {when}: none.")
        return
    low, high = rate["interval"]
    share = f"{rate['rate']:.0%} ({low:.0%} to {high:.0%})"
    right = rate["always_compiled"]
    always = f"the answer `{arms[1]}` is right in {right}, `{arms[0]}` in {rate['called'] - right}"
    options.say(f"Right {when}: {rate['hits']} of {rate['called']}, {share}; {always}.")


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    from compare.words.text import ratio

    right = {None: "", True: "yes", False: "no"}[row["hit"]]
    return row["name"], row["winner"], ratio(row["predicted_ratio"]), ratio(row["measured_ratio"]), right
