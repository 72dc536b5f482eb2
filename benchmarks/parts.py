"""Do the parts of a compiled call add up to the call? `python -m benchmarks.parts`, a row for each of ten steps.

Each step has a fresh process with one thread. There it is told apart as `graphduel compare` does it, by clocks in
compiled code, and then compiled once more without any: the sum of the parts ÷ the seconds of a call without clocks is
to be 1. `largest` is the part that takes most.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from time import perf_counter_ns
from typing import Any

import click

from benchmarks.by_hand import FILE, ONE_THREAD, STEPS
from compare import engines
from compare.instruments import parts
from compare.instruments.bench import Bench
from compare.records.job import Job
from compare.stats import geometric_mean
from compare.text import seconds, show_table

PLACES = (*STEPS, "branching", "training")
MODE = "torch-compile"
CALLS = 200
OFF = 0.1
"""The largest distance of a ratio from 1."""


def told(name: str) -> dict[str, Any]:
    """The row of a step in this process, with `plain`: the seconds of a call that is compiled without clocks."""
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    engine = engines.find_engine("torch")
    engine.start(0, doubles=None)
    spec.loader.exec_module(module)
    calls = getattr(module, f"{name}_calls")
    base = engine.mode_names[0]
    bench = Bench.of_function(engine, base, name, getattr(module, name), calls, 0, checks=False)
    bench.prepare()
    names = {base: "eager", MODE: "compile"}
    (record,) = parts.of_bench(Job("time", size=name), bench, names, {MODE: 0.0})
    row = record.modes["compile"]
    if row.status != "ok":
        raise click.ClickException(f"{name}: {row.reason}")
    return {"whole": row.whole, "parts": row.parts, "plain": plain(bench)}


def plain(bench: Bench) -> float:
    """The seconds of a call that is compiled anew without clocks: the mean of the faster half."""
    bench.engine.compiler.forget()
    step = bench.step(MODE)
    call, turns = step.bind(0), bench.state.turns({MODE: step})
    spent = []
    with step.within():
        for _ in range(10 * CALLS):
            if turns.call:
                turns.call()
            start = perf_counter_ns()
            call.run()
            spent.append(perf_counter_ns() - start)
    faster = sorted(spent[CALLS:])[: (len(spent) - CALLS) // 2]
    return sum(faster) / len(faster) / 1e9


@click.command()
@click.argument("names", nargs=-1, metavar="[STEP]...", type=click.Choice(PLACES))
@click.option("--one", is_flag=True, help="One step, in this process; its row as JSON.")
def main(names: tuple[str, ...], *, one: bool) -> None:
    """Tell compiled calls apart, and show whether the parts add up to the whole."""
    if one:
        click.echo(json.dumps(told(names[0])))
        return
    rows, ratios = [], []
    for name in names or PLACES:
        alone = [sys.executable, "-m", "benchmarks.parts", "--one", name]
        done = subprocess.run(alone, env=ONE_THREAD, stdout=subprocess.PIPE, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        total, largest = sum(row["parts"].values()), max(row["parts"], key=row["parts"].__getitem__)
        ratios.append(total / row["plain"])
        share = f"{largest} {100 * row['parts'][largest] / total:.0f}%"
        shown = [seconds(each) for each in (row["plain"], row["whole"], total)]
        rows.append((name, *shown, f"{ratios[-1]:.3f}", share))
    rows.append(("all", "", "", "", f"{geometric_mean(ratios):.3f}", ""))
    show_table(("step", "a call", "among clocks", "sum of parts", "sum ÷ call", "largest"), rows)
    far = sum(abs(ratio - 1) > OFF for ratio in ratios)
    click.echo(f"{far} of {len(ratios)} sums are off by more than {100 * OFF:.0f}%")


if __name__ == "__main__":
    main()
