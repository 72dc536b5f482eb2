"""Convolutions beside bare products: `python -m benchmarks.convolutions` times the kernels for layers of programs.

The bare product has as many multiplications as the convolution, over the channels and taps of a window, on operands
that lie ready. So a ratio of 1 would mean that nothing is unfolded, added up or turned. In each round all four run in
turn, on one thread; a ratio is the median over rounds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import click
import numpy as np
from threadpoolctl import threadpool_limits

from compare.run.environment import pin
from graphs.ops import convolution_kernels as kernels
from graphs.ops.windows import counts, window_of

Run = Callable[[], Any]


class Layer(NamedTuple):
    """A convolution of square images: of how many, their channels and size; and of a square window."""

    examples: int
    channels: int
    size: int
    features: int
    window: int
    stride: int
    padding: int


LAYERS = {
    "CNN, first": Layer(16, 3, 32, 32, 3, 1, 1),
    "CNN, second": Layer(16, 32, 16, 32, 3, 1, 1),
    "digits, second": Layer(50, 16, 14, 32, 5, 1, 2),
    "ResNet, first block": Layer(16, 16, 32, 16, 3, 1, 1),
    "ResNet, strided": Layer(16, 16, 32, 32, 3, 2, 1),
    "ResNet, last block": Layer(16, 64, 8, 64, 3, 1, 1),
    "DCGAN, wide": Layer(16, 128, 16, 128, 3, 1, 1),
    "DCGAN, to one channel": Layer(16, 64, 32, 1, 3, 1, 1),
}


def runs(layer: Layer) -> tuple[list[Run], float]:
    """The bare product and the three kernels, and how many million operations each takes."""
    rng = np.random.default_rng(0)
    sizes, taps = (layer.size,) * 2, layer.channels * layer.window**2
    window = window_of((layer.window,) * 2, layer.stride, layer.padding, 1)
    windows = counts(sizes, window)
    x, weight, g = (
        rng.standard_normal(shape, np.float32)
        for shape in (
            (layer.examples, layer.channels, *sizes),
            (layer.features, layer.channels, layer.window, layer.window),
            (layer.examples, layer.features, *windows),
        )
    )
    places = math.prod(int(count) for count in windows)
    columns, matrix = rng.standard_normal((layer.examples, places, taps), np.float32), weight.reshape(-1, taps).T
    way: dict[str, Any] = {"window": window, "groups": 1}
    each: list[Run] = [
        lambda: np.matmul(columns, matrix),
        lambda: kernels.convolution(x, weight, **way),
        lambda: kernels.convolution_input(g, weight, sizes=sizes, **way),
        lambda: kernels.convolution_weight(x, g, **way),
    ]
    return each, 2e-6 * g.size * taps


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=30, show_default=True, help="Calls of each kernel.")
def main(rounds: int) -> None:
    """Time convolution and its two gradients, and print them beside a product of as many operations."""
    pin()
    click.echo(f"{'layer':22} {'Mflop':>7} {'product':>9}   {'forward':>15} {'to the input':>15} {'to the weight':>15}")
    with threadpool_limits(1):
        for name, layer in LAYERS.items():
            each, operations = runs(layer)
            times = [[_seconds(run) for run in each] for _ in range(rounds + 2)][2:]
            bare, *others = (statistics.median(column) * 1e6 for column in zip(*times, strict=True))
            ratios = [statistics.median(row[i] / row[0] for row in times) for i in (1, 2, 3)]
            cells = (f"{us:7.0f} µs {ratio:4.2f}" for us, ratio in zip(others, ratios, strict=True))
            click.echo(f"{name:22} {operations:7.1f} {bare:6.0f} µs   " + "  ".join(cells))


if __name__ == "__main__":
    main()
