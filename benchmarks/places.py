"""Does `graphduel compare --where` tell what a place costs? `python -m benchmarks.places`, a row for each place.

The three steps of `benchmarks/placed_steps.py` have blocks that repeat. The command finds the blocks and times each
place. By hand the same is as its author writes it: `torch.compile(model)`, `module.compile()` of each block, and a
loop. Each place by hand has fresh processes of its own and an empty cache, half of them before the command. First
calls are compared by the wall, warm calls by the processor's time of one thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.by_hand import ONE_THREAD, compared
from compare.run.environment import pin
from compare.text import show_table

FILE = Path(__file__).with_name("placed_steps.py")
STEPS = ("transformer", "mlp_mixer", "nested")
ROUNDS = 9
WITHIN = 0.1
"""The largest distance of a ratio from 1 that counts as the same."""
Seconds = tuple[float, float]
"""The seconds of a first call and of a warm call."""


def timed(name: str, mode: str) -> Seconds:
    """Time a step in this process, compiled at the place that a mode of the command names."""
    pin()  # to one core, as the command keeps each of its processes
    import torch

    from benchmarks import placed_steps

    torch.set_num_threads(1)
    step, (call,) = getattr(placed_steps, name), getattr(placed_steps, f"{name}_calls")
    values = [vars(placed_steps).get(each) for each in step.__code__.co_names]
    modules = [value for value in values if isinstance(value, torch.nn.Module)]
    optimizers = [value for value in values if isinstance(value, torch.optim.Optimizer)]
    place, _, with_optimizer = mode.partition("-")
    if place == "model":  # `compile()` of a `Sequential` compiles its items one by one
        for each in (name for name, value in list(vars(placed_steps).items()) if value in modules):
            setattr(placed_steps, each, torch.compile(getattr(placed_steps, each)))
    for inner in (inner for module in modules for inner in module.modules()):
        if type(inner).__name__ == place:
            inner.compile()
    for optimizer in optimizers if with_optimizer else ():
        optimizer.step = torch.compile(optimizer.step)
    function = torch.compile(step) if mode == "compile" else step
    leaves = [leaf for module in modules for leaf in module.parameters()]

    def run() -> None:
        if optimizers:
            function(*call)
            return
        for leaf in leaves:
            leaf.grad = None
        function(*call).backward()

    return _first(run), _warm(run)


def _first(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _warm(run: Callable[[], None]) -> float:
    from benchmarks.short_steps import BLOCK, block_seconds

    for _ in range(10):
        run()
    count = max(1, round(BLOCK / block_seconds(run, 5)))
    return median(block_seconds(run, count) for _ in range(ROUNDS))


def by_hand(name: str, mode: str) -> Seconds:
    """Time a place in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        alone = [sys.executable, "-m", "benchmarks.places", name, "--one", mode]
        done = subprocess.run(alone, env={**ONE_THREAD, **variables}, stdout=subprocess.PIPE, check=True)
    first, warm = json.loads(done.stdout)
    return first, warm


def modes(name: str) -> list[str]:
    """Return the modes of a step by their names in the command, if it finds the blocks as `BLOCKS` has them."""
    from benchmarks.placed_steps import BLOCKS

    outermost, *inner = BLOCKS[name]
    places = [outermost, "model", *inner]
    if name == "transformer":
        places = [each for place in places for each in (place, f"{place}-optimizer")]
    return ["eager", "compile", *places]


def rows(name: str, repeats: int) -> list[tuple[str, ...]]:
    """Return a row for each mode: first and warm calls by hand and by the command, and whether they are the same."""
    names = modes(name)
    hand: dict[str, list[Seconds]] = {mode: [] for mode in names}
    for mode in names:
        hand[mode] += [by_hand(name, mode) for _ in range(repeats // 2)]
    told = compared(FILE, name, ("--where", "--modes", "eager,compile", "--processes", "3", "--seconds", "1"))
    for mode in names:
        hand[mode] += [by_hand(name, mode) for _ in range(repeats - repeats // 2)]
    found = [mode for mode in told["verdict"]["steady"]["values"] if mode not in names]
    return [*(_row(name, mode, hand[mode], told) for mode in names), *((name, mode, "not by hand") for mode in found)]


def _row(name: str, mode: str, hand: list[Seconds], told: dict[str, Any]) -> tuple[str, ...]:
    cells, same = list[str](), True
    for by, which, unit, scale in ((0, "first", "s", 1.0), (1, "steady", "ms", 1e3)):
        seconds, command = median(each[by] for each in hand), told["verdict"][which]["values"].get(mode)
        if command is None:
            return name, mode, told["verdict"]["refused"].get(mode, "not found")
        ratio = command / seconds
        same = same and (abs(ratio - 1) <= WITHIN or (by == 0 and mode == "eager"))
        spread = "–".join(f"{scale * side([each[by] for each in hand]):.3g}" for side in (min, max))
        cells += [f"{spread} {unit}", f"{scale * command:.3g} {unit}", f"{ratio:.3f}"]
    return name, mode, *cells, "yes" if same else "no"


@click.command()
@click.argument("names", nargs=-1, metavar="[STEP]...", type=click.Choice(STEPS))
@click.option("--repeats", default=2, show_default=True, type=click.IntRange(2), help="Of each place by hand.")
@click.option("--one", metavar="MODE", help="One mode of one step, in this process; its seconds as JSON.")
def main(names: tuple[str, ...], repeats: int, *, one: str | None) -> None:
    """Time places by hand and by the command, and show whether the two agree within 10%.

    Of eager the first call is shown and not held to that, since it compiles nothing.
    """
    if one:
        click.echo(json.dumps(timed(names[0], one)))
        return
    columns = ("step", "mode", "first call, by hand", "the command", "÷", "warm, by hand", "the command", "÷", "same")
    for name in names or STEPS:
        found = rows(name, repeats)
        show_table(columns, [(*row, *[""] * (len(columns) - len(row))) for row in found])


if __name__ == "__main__":
    main()
