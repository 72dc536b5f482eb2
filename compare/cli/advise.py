"""`graphduel advise`: predict which engine wins for a function, without measuring it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import complete, options
from compare.words.text import echo

if TYPE_CHECKING:
    from compare.advice import Prices
    from compare.own.question import Question


@click.command()
@click.argument("function", metavar="[FILE.py:FUNCTION]", required=False, shell_complete=complete.functions)
@options.INPUTS
@options.gradient("Predict")
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
    inputs: str | None,
    gradient: bool | None,
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
    from compare.advice import counting
    from compare.run import progress

    if (function is None) != evaluate:
        raise click.UsageError("give a function, as FILE.py:FUNCTION, or --evaluate")
    if not evaluate and (rows or only or held_out):
        raise click.UsageError("--rows, --only and --held-out need --evaluate")
    engine = framework or engines.OWN
    if engine != engines.OWN and (rows or held_out or gradient is not None):
        raise click.UsageError(
            "--rows, --held-out and --gradient work with graphduel's engines, not with a --framework"
        )
    if mode and not framework:
        raise click.UsageError("--mode needs a --framework")
    asked = counting.question(engine, function or "", inputs or "", mode, gradient)
    prices = counting.find_prices(
        asked, calibration, progress.reporter(), partial(options.say, err=True), anew=calibrate
    )
    if function is None:
        chosen = _evaluate(asked, prices, rows, only, held_out=held_out)
    else:
        chosen = _advise(asked, prices)
    options.write_json(path, chosen)


def _advise(asked: Question, prices: Prices) -> dict[str, Any]:
    from compare import engines
    from compare.advice import counting
    from compare.advice.prediction import predict
    from compare.cli.own import warn
    from compare.run import progress

    if asked.engine == engines.OWN:
        warn(asked.function)
    with counting.workers(asked, 1, progress.reporter()) as workers:
        (program,) = workers.look([asked.function], timed=False)
    advice = predict(prices, program)
    echo(str(advice))
    return advice.to_dict()


def _evaluate(asked: Question, prices: Prices, rows: str | None, only: str | None, *, held_out: bool) -> dict[str, Any]:
    from compare.advice import evaluation, holdout
    from compare.own import origin
    from compare.run import progress

    chosen = holdout.names() if held_out else evaluation.names(asked.adapter, only)
    more = list(origin.load_object(rows)) if rows else []
    judged = evaluation.evaluate(asked, prices, [*chosen, *more], progress.reporter(), rows or "")
    return _show_evaluation(judged, prices.modes)


def _show_evaluation(evaluation: dict[str, Any], modes: tuple[str, str]) -> dict[str, Any]:
    """Print predictions beside measurements, and how often the predictions were right; returns the evaluation."""
    from compare.page import tables
    from compare.words.text import count_noun

    eager, compiled = modes
    columns = ("row", "said", "predicted", "measured", "right")
    echo(f"Ratios are {compiled} ÷ {eager}.")
    tables.show(columns, [_row(row) for row in evaluation["rows"]], whole=columns)
    for name, why in evaluation["left_out"].items():
        options.say(f"left out: {name}: {why}", err=True)
    _say_rate("once warm", evaluation, modes)
    for calls, rate in evaluation["over_calls"].items():
        _say_rate(f"over {count_noun(int(calls), 'call')} with the compilation", rate, modes)
    _say_scores(evaluation["scores"])
    options.say(
        f"Measured ratios in the predicted interval of 95%: {evaluation['covered']} of {len(evaluation['rows'])}."
    )
    return evaluation


def _say_scores(scores: dict[str, Any]) -> None:
    """Print hits among rows with a winner, beside trivial predictors and by regime, and whether odds came true."""
    if scores["of"]:
        trivial = ", ".join(f"{name} {hits}" for name, hits in scores["predictors"].items())
        said = f"{scores['of']} have times that differ by more than {scores['beyond']:.2f}. Right: {scores['hits']}"
        options.say(f"{said}. Trivial predictors: {trivial}.")
    for regime, hits in scores["regimes"].items():
        options.say(f"  {regime}: {hits['hits']} of {hits['of']}")
    if scores["brier"] is not None:
        stated = ", ".join(
            f"{group['stated']:.0%} happened in {group['happened']:.0%} of {group['rows']}"
            for group in scores["stated"]
        )
        options.say(
            f"Brier score: {scores['brier']:.3f}; a constant prediction of one half has 0.25. Stated odds: {stated}."
        )


def _say_rate(when: str, rate: dict[str, Any], modes: tuple[str, str]) -> None:
    if not rate["called"]:
        echo(f"Predictions {when}: none.")
        return
    low, high = rate["interval"]
    share = f"{rate['rate']:.0%} ({low:.0%} to {high:.0%})"
    right = rate["always_compiled"]
    always = f"the answer `{modes[1]}` is right in {right}, `{modes[0]}` in {rate['called'] - right}"
    options.say(f"Right {when}: {rate['hits']} of {rate['called']}, {share}; {always}.")


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    from compare.words.text import ratio

    right = {None: "", True: "yes", False: "no"}[row["hit"]]
    return row["name"], row["winner"], ratio(row["predicted_ratio"]), ratio(row["measured_ratio"]), right
