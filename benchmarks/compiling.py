"""What it costs to compile: `python -m benchmarks.compiling`.

The time to trace, differentiate, run every pass, plan and bind: for the step of the tiny MLP, and for graphs of more
and more nodes, with the seconds per 10,000 nodes that should stay as they are while graphs grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

import graphs as g
import static
from benchmarks.programs import ROWS, Row
from compare import tables
from compare.measure.environment import pin
from compare.measure.rounds import collected

NODES = (1_000, 10_000, 100_000)
SIZE = 64


class Compiled(NamedTuple):
    """A compilation: the nodes that were traced, those that are left, and the seconds it took."""

    traced: int
    left: int
    seconds: float

    @property
    def per_ten_thousand(self) -> float:
        """Seconds for 10,000 traced nodes."""
        return self.seconds / self.traced * 10_000


def step(row: Row) -> Compiled:
    """The loss and gradients of a row."""
    return compiled(static.value_and_grad(row.loss), (row.params, *row.inputs))


def elementwise(x: Any, nodes: int) -> Any:
    """A chain of about so many elementwise nodes, of kinds that a pass can fuse but not remove."""
    for _ in range(nodes // 3):
        x = g.tanh(x * 0.9 + 0.1)
    return x


def products(x: Any, w: Any, nodes: int) -> Any:
    """A chain of matrix products, each followed by a tanh, that nothing can fuse across."""
    for _ in range(nodes // 2):
        x = g.tanh(x @ w)
    return x


def trained(x: Any, w: Any, nodes: int) -> Any:
    """The value and gradient of a chain of products, in about so many nodes forward and backward."""
    return static.value_and_grad(lambda w: g.mean(products(x, w, nodes // 3)))(w)


def graph(kind: str, nodes: int) -> Compiled:
    """A graph of a kind with about so many nodes."""
    x, w = np.ones((4, SIZE), np.float32), np.ones((SIZE, SIZE), np.float32)
    f, args = KINDS[kind], (x,) if kind == "elementwise" else (x, w)
    return compiled(partial(f, nodes=nodes), args)


KINDS: dict[str, Callable[..., Any]] = {"elementwise": elementwise, "products": products, "products, gradient": trained}


def compiled(f: Callable[..., Any], args: Sequence[Any]) -> Compiled:
    """Compile once, as a user's call does it."""
    traced = len(static.trace(f, *args))
    with collected():
        start = time.perf_counter()
        executable = static.compile(f, *args)
        seconds = time.perf_counter() - start
    return Compiled(traced, len(executable.graph), seconds)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--most", type=int, default=max(NODES), show_default=True, help="Nodes of the largest graph.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Compilations of each step.")
def main(most: int, rounds: int) -> None:
    """Measure compilation and print two tables."""
    pin()
    rows = []
    for name, make in ROWS.items():
        found = [step(make()) for _ in range(rounds)]
        seconds = [one.seconds for one in found]
        rows.append([name, str(found[0].traced), str(found[0].left), *_ms(seconds[0], median(seconds))])
    tables.show(["step", "nodes traced", "left", "ms, first", "ms, median"], rows)
    rows = []
    for kind in KINDS:
        for nodes in (n for n in NODES if n <= most):
            one = graph(kind, nodes)
            rows.append([kind, f"{one.traced:,}", f"{one.left:,}", f"{one.seconds:.3g}", f"{one.per_ten_thousand:.3g}"])
    tables.show(["graph", "nodes traced", "left", "s", "s per 10,000 nodes"], rows)


def _ms(*seconds: float) -> list[str]:
    return [f"{s * 1e3:.3g}" for s in seconds]


if __name__ == "__main__":
    main()
