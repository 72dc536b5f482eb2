"""`graphduel selftest`: how far the harness can be trusted on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

QUICK = 20
EXIT = {"met": 0, "missed": 1, "too noisy": 3}


@click.command()
@click.option("--comparisons", type=click.IntRange(1), help="Comparisons of an engine with itself; 200, or 20 quick.")
@click.option("--quick", is_flag=True, help="A minute or two: few comparisons, so rates with wide intervals.")
@click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the rates here.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Orders the measurements.")
@click.pass_context
def selftest(ctx: click.Context, *, comparisons: int | None, quick: bool, path: Path | None, seed: int) -> None:
    """Compare an engine with itself, slowed down or leaking by known sizes: how often is that seen?"""
    from compare import progress
    from compare.selftest import Plan, run

    wanted = comparisons or (QUICK if quick else Plan.comparisons)
    plan = Plan(comparisons=wanted, leaks=max(2, wanted // 4), seed=seed)
    rates = run(plan, progress.reporter())
    if path:
        from compare.results import write_json

        write_json(path, rates)
    _show(rates)
    ctx.exit(EXIT[rates["outcome"]])


def _show(rates: dict[str, Any]) -> None:
    from compare import tables

    columns = ("injected", "measured", "found", "of", "rate, 95% interval", "target")
    rows = [*map(_slowdown, rates["speed"]), *map(_leak, rates["leaks"])]
    tables.show(columns, rows, whole=columns)
    for failure in rates["failures"]:
        click.echo(f"failed: {failure}", err=True)
    if not rates["whole"]:
        click.echo("Few comparisons: the intervals of these rates are wide. For narrow ones leave out --quick.")
    click.echo(f"Targets: {rates['outcome']}, in {rates['seconds']:.0f} s.")


def _slowdown(row: dict[str, Any]) -> tuple[str, ...]:
    injected = f"{row['injected']:.0%} slower, counted {row['counted']:.2%}" if row["injected"] else "nothing"
    return injected, f"{row['estimate']:.3f} ±{row['half_width']:.1%}", *_found(row)


def _leak(row: dict[str, Any]) -> tuple[str, ...]:
    injected = f"{row['injected']:,.0f} bytes an epoch" if row["injected"] else "no leak"
    return injected, f"{row['kept']:,.0f}", *_found(row)


def _found(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["interval"]
    target = {None: "none", True: "met", False: "missed"}[row["met"]]
    return str(row["found"]), str(row["comparisons"]), f"{row['rate']:.1%} ({low:.1%} to {high:.1%})", target
