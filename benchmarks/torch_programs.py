"""Training programs of PyTorch, by their import line: `python -m benchmarks.torch_programs` runs each in both.

A program (`benchmarks/training/`) is written once, over a module that is `torch` or `dynamic`. In each round both take
one step, in turn; a ratio is the median over rounds of processor time, on one thread. Both start from random weights of
their own.
"""

from __future__ import annotations

import importlib
import statistics
import time
import warnings

import click
from threadpoolctl import threadpool_limits

import dynamic
from benchmarks.training import Step, Torch, images, sequences, vectors
from compare.run.environment import pin

PROGRAMS = {step.__name__: step for chapter in (images, sequences, vectors) for step in chapter.STEPS}
WARM = 3
"""Steps before the first round."""


def measured(steps: tuple[Step, Step], rounds: int) -> list[tuple[float, float]]:
    """Seconds of the process for a step of each, round by round."""
    for step in steps * WARM:
        step()
    return [(_seconds(steps[0]), _seconds(steps[1])) for _ in range(rounds)]


def _seconds(step: Step) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=15, show_default=True, help="Steps of each program.")
@click.option("--only", type=click.Choice(list(PROGRAMS)), multiple=True, help="These programs; all by default.")
def main(rounds: int, only: tuple[str, ...]) -> None:
    """Run the programs in PyTorch and in `dynamic`, and print the ratios."""
    torch: Torch = importlib.import_module("torch")
    pin()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)  # of PyTorch, about names that programs still use
    ratios = []
    with threadpool_limits(1):
        for name in only or PROGRAMS:
            pairs = measured((PROGRAMS[name](torch), PROGRAMS[name](dynamic)), rounds)
            theirs, ours = (statistics.median(seconds) * 1e3 for seconds in zip(*pairs, strict=True))
            ratios.append(statistics.median(own / other for other, own in pairs))
            click.echo(f"{name:18} PyTorch {theirs:8.2f} ms   dynamic {ours:8.2f} ms   {ratios[-1]:.2f} x")
    if len(ratios) > 1:
        lower, middle, upper = statistics.quantiles(ratios, n=4)
        click.echo(f"{len(ratios)} programs: median {middle:.2f}, quartiles {lower:.2f} and {upper:.2f}, ", nl=False)
        click.echo(f"worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
