"""The training steps of the table written with `dynamic.nn`: `python -m benchmarks.modules` compares both.

A module has the parameters of a row and computes its loss from its own attributes; a step calls it, goes back and takes
the gradients away again. The other mode is the row as the table has it, `value_and_grad` of a function of parameters.
In each round every mode runs one block, in turn; a ratio is the median over rounds of the process's own time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import click
import numpy as np

import dynamic
from benchmarks.programs import ROWS
from benchmarks.rows import Row
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs import ops

BLOCK = 0.05
"""Seconds that a block takes, about."""


class TinyMLP(nn.Module):
    """tanh layers and the mean squared error."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.l1, self.l2, self.l3 = (nn.Linear(m, n) for m, n in pairwise(widths))

    def forward(self, x: Any, y: Any) -> Any:
        """The loss."""
        h = ops.tanh(self.l1(x))
        return F.mse_loss(self.l3(ops.tanh(self.l2(h))), y)


class MLP(TinyMLP):
    """ReLU layers and the cross entropy."""

    def forward(self, x: Any, y: Any) -> Any:
        """The loss."""
        h = F.relu(self.l1(x))
        return F.cross_entropy(self.l3(F.relu(self.l2(h))), y)


class Chain(nn.Module):
    """A chain of elementwise ops whose operands are parameters."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.x, self.a, self.b = (nn.Parameter(np.zeros(size, np.float32)) for _ in range(3))

    def forward(self) -> Any:
        """The loss."""
        h = self.x
        for _ in range(4):
            h = ops.tanh(h * self.a + self.b) * ops.exp(-h * h) + h / 2
        return ops.mean(h * h)


class Recurrent(nn.Module):
    """nn.RNN and its last state; one of the two biases of PyTorch's is more than the row has."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(32, 64)
        self.h = nn.Parameter(np.zeros((16, 64), np.float32))

    def forward(self, xs: Any) -> Any:
        """The loss."""
        _, last = self.rnn(xs, ops.expand_dims(self.h, 0))
        return ops.mean(last * last)


class Transformer(nn.Module):
    """nn.TransformerEncoderLayer without the biases of attention, which the row has not, and the mean squared error."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
        self.layer.self_attn.in_proj_bias = self.layer.self_attn.out_proj.bias = None

    def forward(self, x: Any, y: Any) -> Any:
        """The loss."""
        return F.mse_loss(self.layer(x), y)


def names(row: str) -> dict[str, str]:
    """Which parameter of the row a parameter of the module is; `.T` after one that is transposed there."""
    dense = {f"l{i}.weight": f"w{i}.T" for i in (1, 2, 3)} | {f"l{i}.bias": f"b{i}" for i in (1, 2, 3)}
    attention = {"linear1.weight": "w1.T", "linear2.weight": "w2.T", "linear1.bias": "b1", "linear2.bias": "b2"}
    attention |= {"self_attn.out_proj.weight": "wo.T"}
    attention |= {f"norm{i}.{k}": f"{v}{i}" for i in (1, 2) for k, v in (("weight", "scale"), ("bias", "shift"))}
    return {
        "tiny MLP": dense,
        "MLP": dense,
        "RNN": {"rnn.weight_ih_l0": "w.T", "rnn.weight_hh_l0": "u.T", "rnn.bias_ih_l0": "b", "h": "h"},
    }.get(row, {f"layer.{k}": v for k, v in attention.items()} if "transformer" in row else dict.fromkeys("xab"))


MODULES: dict[str, Callable[[], nn.Module]] = {
    "tiny MLP": partial(TinyMLP, 16, 32, 32, 1),
    "MLP": partial(MLP, 784, 256, 256, 10),
    "chain 1e3": partial(Chain, 1_000),
    "chain 1e5": partial(Chain, 100_000),
    "chain 4e6": partial(Chain, 4_000_000),
    "RNN": Recurrent,
    "transformer T=32": Transformer,
    "transformer T=128": Transformer,
}


def module_of(name: str, row: Row) -> nn.Module:
    """The module of a row, with the numbers of its parameters; what the row does not have is 0."""
    model = MODULES[name]()
    named = names(name)
    for key, param in model.named_parameters():
        if key == "layer.self_attn.in_proj_weight":
            param._data[...] = np.concatenate([row.params[w].T for w in ("wq", "wk", "wv")])
            continue
        theirs = named.get(key, "") if key in named else ""
        value = row.params.get((theirs or key).removesuffix(".T"), np.zeros((), np.float32))
        param._data[...] = value.T if (theirs or "").endswith(".T") else value
    return model


def step_of(model: nn.Module, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """A step as PyTorch's programs have it."""
    tensors = tuple(dynamic.tensor(x) for x in inputs)

    def step() -> Any:
        model.zero_grad()
        loss = model(*tensors)
        loss.backward()
        return loss

    return step


def measured(modes: list[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Seconds of the process per step, for each mode and round."""
    counts = []
    for mode in modes:
        mode()
        start = time.process_time()
        mode()
        counts.append(max(1, round(BLOCK / max(time.process_time() - start, 1e-6))))
    seconds: list[list[float]] = [[] for _ in modes]
    for number in range(rounds):
        order = range(len(modes)) if number % 2 else reversed(range(len(modes)))
        for i in order:
            start = time.process_time()
            for _ in range(counts[i]):
                modes[i]()
            seconds[i].append((time.process_time() - start) / counts[i])
    return seconds


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(2), default=21, show_default=True, help="Blocks per mode.")
@click.option("--only", default="", metavar="NAME", help="One row alone.")
def main(rounds: int, only: str) -> None:
    """Measure the steps both ways, and print the ratios."""
    for name in MODULES:
        if only and name != only:
            continue
        row = ROWS[name]()
        step = step_of(module_of(name, row), row.inputs)
        functional = partial(dynamic.value_and_grad(row.loss), row.params, *row.inputs)
        ours, theirs = float(step()), float(functional()[0])
        if abs(ours - theirs) > 1e-4 * abs(theirs):
            raise click.ClickException(f"{name}: the module gives {ours}, the function {theirs}")
        modules, functions = measured([step, functional], rounds)
        ratio = statistics.median(a / b for a, b in zip(modules, functions, strict=True))
        click.echo(f"{name:18} {statistics.median(functions) * 1e6:9.1f} us  module {ratio:.3f} x")


if __name__ == "__main__":
    main()
