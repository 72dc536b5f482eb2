"""`graphduel advise`: which engine will win for a function, before anything of it is measured."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.cli import complete, options
from compare.words.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compare.advice import Costs
    from compare.advice.frameworks.command import Judged


@click.command()
@click.argument("function", metavar="[FILE.py:FUNCTION]", required=False)
@options.INPUTS
@options.GRADIENT
@click.option(
    "--calibration",
    type=options.FILE,
    help="Read the costs of this machine from this file; if there is none, measure and write them.",
)
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

    The command also says by how much, and after how many calls compiling pays. It first measures the costs of this
    machine, in half a minute, on made-up programs. Then it traces FUNCTION on shapes and adds up the costs. It never
    runs FUNCTION: where FUNCTION branches on values, it is converted, as `graphduel compare` does. If the static engine
    refuses FUNCTION, the advice says so.

    With --framework the command predicts whether compiling pays there. It measures the costs of that framework first,
    in minutes and once on a machine. Then it runs FUNCTION op by op, once for each call, and never compiles it.
    """
    if (function is None) != evaluate:
        raise click.UsageError("give a function, as FILE.py:FUNCTION, or --evaluate")
    if not evaluate and (rows or only or held_out):
        raise click.UsageError("--rows, --only and --held-out need --evaluate")
    if framework:
        if rows or only or held_out or asked["gradient"] is not None:
            raise click.UsageError(
                "--rows, --only, --held-out and --gradient work with graphduel's engines, not with a --framework"
            )
        options.written(path, _in_framework(framework, function, asked["inputs"], mode, calibration))
        return
    if mode:
        raise click.UsageError("--mode needs a --framework")
    costs = _costs(calibration)
    found = _evaluated(costs, rows, only, held_out=held_out) if function is None else _advised(function, costs, **asked)
    options.written(path, found)


def _in_framework(
    framework: str, function: str | None, inputs: str | None, mode: str | None, calibration: Path | None
) -> dict[str, Any]:
    from compare.advice.frameworks import command
    from compare.run import progress

    asked = command.question(framework, function or "", inputs or "", mode)
    costs = command.costs_of(asked, calibration, progress.reporter())
    if function is not None:
        found = command.advised(asked, costs, progress.reporter())
        echo(str(found))
        return found.to_dict()
    rows = command.judged(asked, costs, (), progress.reporter())
    return _judged_in_framework(rows)


def _judged_in_framework(rows: Sequence[Judged]) -> dict[str, Any]:
    from compare.advice.frameworks import command
    from compare.page import tables
    from compare.words import text

    columns = ("row", "said", "predicted", "measured", "right")
    echo("Ratios are compiled ÷ eager.")
    right = {None: "", True: "yes", False: "no"}
    tables.show(
        columns,
        [
            (row.name, row.predicted.winner, text.ratio(row.predicted.ratio), text.ratio(row.measured), right[row.hit])
            for row in rows
        ],
        whole=columns,
    )
    called = [row for row in rows if row.hit is not None]
    hits, off = sum(row.hit is True for row in called), command.off_by(rows) if rows else None
    if off is not None:
        echo(f"Right: {hits} of {len(called)} predictions. Predicted ratios are off by a factor of {off:.2f}.")
    return {"rows": [row.to_dict() for row in rows], "called": len(called), "hits": hits, "off_by": off}


def _costs(path: Path | None) -> Costs:
    """The calibration in a file, or a new one. Raises CompareError for one of another machine."""
    from compare import advice
    from compare.records import machines
    from compare.run.environment import environment

    if path is not None and path.exists():
        return advice.load(path, machines.fingerprint(environment()))
    echo("Measuring the costs of this machine, in about half a minute ...", err=True)
    costs = advice.calibrate()
    if path is not None:
        advice.save(costs, path)
    return costs


def _advised(function: str, costs: Costs, **asked: Any) -> dict[str, Any]:
    from compare import advice
    from compare.cli.own import warn
    from compare.own import command
    from compare.records.own import FunctionAdvice

    warn(function)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
        file = Path(folder, "costs.json")
        advice.save(costs, file)
        found = command.answer(FunctionAdvice, function, {"function": function, "costs": str(file), **asked})
    options.say(found.text)
    return found.value


def _evaluated(costs: Costs, rows: str | None, only: str | None, *, held_out: bool) -> dict[str, Any]:
    from compare.advice import evaluation, heldout
    from compare.own import origin
    from compare.page import tables
    from compare.run import environment, progress
    from compare.words.text import counted

    environment.pin()
    more = evaluation.from_rows(origin.named(rows)) if rows else {}
    chosen = heldout.cases() if held_out else evaluation.cases(only=only)
    found = evaluation.evaluate({**chosen, **more}, costs, progress.reporter())
    columns = ("row", "said", "predicted", "measured", "right")
    echo("Ratios are static ÷ dynamic.")
    tables.show(columns, [_row(row) for row in found["rows"]], whole=columns)
    for name, why in found["left_out"].items():
        options.say(f"left out: {name}: {why}", err=True)
    _say_rate("once warm", found)
    for calls, rate in found["over_calls"].items():
        _say_rate(f"over {counted(int(calls), 'call')} with the compilation", rate)
    _say_scores(found["scores"])
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


def _say_rate(when: str, rate: dict[str, Any]) -> None:
    if not rate["called"]:
        echo(f"Predictions {when}: none.")
        return
    low, high = rate["interval"]
    share = f"{rate['rate']:.0%} ({low:.0%} to {high:.0%})"
    static = rate["always_static"]
    always = f"the answer `static` is right in {static}, `dynamic` in {rate['called'] - static}"
    options.say(f"Right {when}: {rate['hits']} of {rate['called']}, {share}; {always}.")


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    from compare.words.text import ratio

    right = {None: "", True: "yes", False: "no"}[row["hit"]]
    return row["name"], row["winner"], ratio(row["predicted_ratio"]), ratio(row["measured_ratio"]), right
