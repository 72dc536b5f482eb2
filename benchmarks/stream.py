"""A stream of sequences of many lengths, trained on from nothing: `python -m benchmarks.stream`.

200 sequences of about 40 lengths, an RNN over each, loss and gradients. What counts is the whole first epoch, with
every compilation in it, in a fresh process for each mode; the second epoch shows what is left once all is compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

import dynamic
import graphs as g
import static
from benchmarks.rows import Array, Params
from benchmarks.workers import alone
from compare.errors import WorkerError
from compare.instruments import parity, rounding
from compare.text import show_table

SEQUENCES, SHORTEST, LONGEST, WIDTH, STATE = 200, 5, 44, 32, 64


class Epochs(NamedTuple):
    """Seconds of the first and of the second epoch, and how often the mode compiled."""

    first: float
    second: float
    compiles: int


class Mode(NamedTuple):
    """A step `step(params, xs) -> (loss, gradients)`, and how often it has compiled so far."""

    step: Callable[..., Any]
    compiles: Callable[[], int] = lambda: 0


def data() -> tuple[Params, list[Array]]:
    """Parameters, and f[T, 32] for 200 random T."""
    rng = np.random.default_rng(0)
    shapes = {"w": (WIDTH, STATE), "u": (STATE, STATE), "b": (STATE,), "h": (STATE,)}
    params = {name: rng.standard_normal(shape, np.float32) / np.float32(8) for name, shape in shapes.items()}
    lengths = rng.integers(SHORTEST, LONGEST + 1, SEQUENCES)
    return params, [rng.standard_normal((length, WIDTH), np.float32) for length in lengths]


def looped(params: Params, xs: Array) -> Array:
    """The mean square of the last state, the loop in Python."""
    h = params["h"]
    for x in xs:
        h = g.tanh(x @ params["w"] + h @ params["u"] + params["b"])
    return g.mean(h * h)


def scanned(params: Params, xs: Array) -> Array:
    """The same with the loop as one op, so that one graph serves every length."""

    def step(h: Array, x: Array) -> tuple[Array, None]:
        return g.tanh(x @ params["w"] + h @ params["u"] + params["b"]), None

    h, _ = g.scan(step, params["h"], xs)
    return g.mean(h * h)


def _jitted(shapes: Any) -> Callable[[], Mode]:
    def build() -> Mode:
        step = static.jit(static.value_and_grad(scanned), shapes=shapes, limit=None, dims=(None, ("T", None)))
        return Mode(step, lambda: step.stats.compiles)

    return build


def _torch() -> Mode:
    import torch

    torch.set_num_threads(1)

    def step(params: Params, xs: Array) -> tuple[Array, Params]:
        leaves = {name: torch.from_numpy(value).requires_grad_() for name, value in params.items()}
        h = leaves["h"]
        for x in torch.from_numpy(xs).unbind():
            h = torch.tanh(x @ leaves["w"] + h @ leaves["u"] + leaves["b"])
        loss = torch.mean(h * h)
        grads = torch.autograd.grad(loss, list(leaves.values()))
        return loss.item(), {name: grad.numpy() for name, grad in zip(leaves, grads, strict=True)}

    return Mode(step)


MODES: dict[str, Callable[[], Mode]] = {
    "static, symbolic": _jitted("symbolic"),
    "static, exact": _jitted("exact"),
    "dynamic": lambda: Mode(dynamic.value_and_grad(looped)),
    "torch": _torch,
}


def epochs(name: str) -> Epochs:
    """Two epochs of a mode in this process. Raises WorkerError when its gradients are not the dynamic engine's."""
    mode, (params, sequences) = MODES[name](), data()
    first, second = (_seconds(mode, params, sequences) for _ in range(2))
    for xs in sequences[:3]:
        loss, grads = mode.step(params, xs)
        error = rounding.tree_error((np.asarray(loss), dict(grads)), dynamic.value_and_grad(looped)(params, xs))
        if error > parity.TOLERANCES["float32"]:
            raise WorkerError(f"{name} is off by {error:.3g}, so its time means nothing")
    return Epochs(first, second, mode.compiles())


def _seconds(mode: Mode, params: Params, sequences: Sequence[Array]) -> float:
    start = time.perf_counter()
    epoch(mode, params, sequences)
    return time.perf_counter() - start


def epoch(mode: Mode, params: Params, sequences: Sequence[Array]) -> Mode:
    """A step for each sequence. Returns the mode, which knows what it has compiled."""
    for xs in sequences:
        mode.step(params, xs)
    return mode


def measure(modes: Sequence[str], rounds: int) -> dict[str, list[Epochs]]:
    """The epochs of each mode that can run, in a fresh process each time; the modes of a round one after another."""
    measured: dict[str, list[Epochs]] = {}
    for _ in range(rounds):
        for mode in modes:
            try:
                measured.setdefault(mode, []).append(alone(epochs, mode))
            except ImportError as error:
                click.echo(f"{mode} is left out: {error}", err=True)
                measured.pop(mode)
        modes = list(measured)
    return measured


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Processes per mode.")
def main(rounds: int) -> None:
    """Measure the stream and print the table."""
    measured = measure(list(MODES), rounds)
    base = measured.get("torch", [])
    rows = []
    for mode, epochs in measured.items():
        first, second = median(e.first for e in epochs), median(e.second for e in epochs)
        by = median(e.first / b.first for e, b in zip(epochs, base, strict=True)) if base else None
        rows.append([mode, *(f"{s:.3g}" for s in (first, second)), str(epochs[0].compiles), f"{by:.3g}" if by else ""])
    lengths = len({len(xs) for xs in data()[1]})
    click.echo(f"{SEQUENCES} sequences of {lengths} lengths from {SHORTEST} to {LONGEST}, on one core")
    show_table(["mode", "s, first epoch", "s, second", "compiles", "first epoch / torch's"], rows)


if __name__ == "__main__":
    main()
