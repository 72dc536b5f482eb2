"""What the harness adds to a call that it times: `python -m benchmarks.harness`, a row for each adapter and mode.

The least step there is, of one op, is run by hand, as its author writes it, and as a clock of ours
reads it. Both take turns in one process, and the quickest blocks of each are compared: what disturbs a machine only
ever adds. The difference does not depend on how long a step takes, so it is shown as a share of a step of 20 µs, or of
the least step where a framework has none that is as short.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from statistics import mean
from typing import Any, NamedTuple

import click
import numpy as np

from compare import engines
from compare.engines import Engine
from compare.engines.step import Step
from compare.instruments.bench import steady_call
from compare.instruments.rounds import paired_rounds
from compare.records.job import Budget
from compare.run.environment import pin
from compare.text import show_table

SHORT = 20e-6
"""The seconds of a step that the bar is set for."""
QUICKEST = 20
"""One block of so many is among the quickest."""
PARTS = (slice(None), slice(0, None, 2), slice(1, None, 2))
"""All rounds, and two halves of them."""
Call = Callable[[], Any]
W, X = np.ones((), np.float32), np.ones((2, 4), np.float32)


def loss(w: Any, _: Any) -> Any:
    """One op."""
    return -w


class Hand(NamedTuple):
    """A step by hand: its mode, whether it takes gradients, and the call within what the author has around a loop."""

    mode: str
    gradient: bool
    call: Call
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


def torch_steps() -> Iterator[Hand]:
    """Eager PyTorch: `backward`, and a tensor under `no_grad`."""
    import torch

    w, x = torch.tensor(W, requires_grad=True), torch.tensor(X)

    def trained() -> None:
        w.grad = None
        loss(w, x).backward()

    yield Hand("eager", True, trained)
    yield Hand("eager", False, lambda: loss(w, x), torch.no_grad)


def jax_steps() -> Iterator[Hand]:
    """JAX, op by op and compiled; a call ends when its arrays are there."""
    import jax
    import jax.numpy as jnp

    w, x = jnp.asarray(W), jnp.asarray(X)

    eager, compiled, plain = jax.value_and_grad(loss), jax.jit(jax.value_and_grad(loss)), jax.jit(loss)
    yield Hand("eager", True, lambda: jax.block_until_ready(eager(w, x)))
    yield Hand("jit", True, lambda: jax.block_until_ready(compiled(w, x)))
    yield Hand("jit", False, lambda: jax.block_until_ready(plain(w, x)))


def tensorflow_steps() -> Iterator[Hand]:
    """TensorFlow, with a gradient tape."""
    import tensorflow as tf

    w, x = tf.constant(W), tf.constant(X)

    def step(w: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            value = loss(w, x)
        return value, tape.gradient(value, w)

    compiled = tf.function(step)
    yield Hand("eager", True, lambda: step(w, x))
    yield Hand("function", True, lambda: compiled(w, x))


def autograd_steps() -> Iterator[Hand]:
    """HIPS autograd."""
    import autograd

    step = autograd.value_and_grad(loss)
    yield Hand("", True, lambda: step(W, X))


def our_steps() -> Iterator[Hand]:
    """Both engines of ours."""
    import dynamic
    import static

    recorded, compiled, plain = dynamic.value_and_grad(loss), static.jit(static.value_and_grad(loss)), static.jit(loss)
    w, x = dynamic.from_numpy(W), dynamic.from_numpy(X)
    yield Hand("dynamic", True, lambda: recorded(W, X))
    yield Hand("dynamic", False, lambda: loss(w, x), dynamic.no_grad)
    yield Hand("static-exact", True, lambda: compiled(W, X))
    yield Hand("static-exact", False, lambda: plain(W, X))


STEPS: dict[str, Callable[[], Iterator[Hand]]] = {
    "torch": torch_steps,
    "jax": jax_steps,
    "tensorflow": tensorflow_steps,
    "autograd": autograd_steps,
    "graphduel": our_steps,
}


def added(engine: Engine, hand: Hand, rounds: int, block: float) -> tuple[float, float, float]:
    """The seconds of a call by hand, what the harness adds to it, and by how much halves of the rounds differ there."""
    mode = next(mode for mode in engine.mode_names if engine.traits(mode).name == hand.mode)
    built = engine.build(mode, loss, 0 if hand.gradient else None)
    step = Step(engine, built, [engine.arrays((W, X))])
    calls = {"hand": hand.call, "harness": steady_call(step)}
    within = {"hand": hand.within, "harness": step.within}
    gc.freeze()  # each round collects garbage, and what is loaded need not be walked
    blocks = paired_rounds(calls, Budget(rounds, rounds, 0.0, block, 0.0), Random(0), within=within).blocks
    more = [_quickest(blocks["harness"][part]) - _quickest(blocks["hand"][part]) for part in PARTS]
    return _quickest(blocks["hand"]), more[0], abs(more[1] - more[2])


def _quickest(seconds: Sequence[float]) -> float:
    return mean(sorted(seconds)[: max(1, len(seconds) // QUICKEST)])


@click.command()
@click.argument("frameworks", nargs=-1, type=click.Choice(tuple(STEPS)))
@click.option("--rounds", default=200, show_default=True, type=click.IntRange(QUICKEST))
@click.option("--block", default=0.002, show_default=True, help="Seconds of a block.")
def main(frameworks: tuple[str, ...], rounds: int, block: float) -> None:
    """Show what the harness adds to a call, in each adapter that is installed."""
    pin()  # before a framework counts the cores: on two of them TensorFlow's threads move a step by a tenth
    rows = []
    for name in frameworks or STEPS:
        engine = engines.find_engine(name)
        if engine.missing:
            click.echo(engine.missing, err=True)
            continue
        engine.start(0)
        for hand in STEPS[name]():
            alone, more, off = added(engine, hand, rounds, block)
            what = "gradients" if hand.gradient else "output"
            told = (f"{alone * 1e6:.1f}", f"{more * 1e6:+.2f} ± {off * 1e6:.2f}", f"{more / max(alone, SHORT):+.1%}")
            rows.append((f"{engine.title} {hand.mode}".strip(), what, *told))
    columns = ("adapter", "gives", "µs by hand", "µs added", "of 20 µs, or of the step")
    show_table(columns, rows)


if __name__ == "__main__":
    main()
