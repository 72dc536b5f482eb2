"""Networks that rounding alone decides: they stand on a jump, or begin with numbers that no nudge moves.

`network` gives a random one with its numbers, whose ReLU has input 0, or whose maximum or sort has a tie, and the same
with its sums in another order, as another mode computes them. `start` gives one that begins with ones, zeros, powers of
two or indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

import graphs as g
from compare import engines
from compare.instruments import parity
from compare.instruments.bench import Bench
from compare.instruments.timing import first_epoch, no_limit
from compare.subjects.case import case_of
from tests.helpers.mutants import altered
from tests.helpers.toy_framework import Toy

Layer = tuple[Any, Any]
Change = Callable[[Any, Any], Any]
"""What a mode makes of the value and the gradients."""
ROWS = 24
KINKS: dict[str, tuple[bool, Callable[[Any], Any]]] = {
    "relu": (False, g.relu),
    "abs": (False, g.abs),
    "leaky": (False, lambda z: g.where(z > 0, z, 0.1 * z)),
    "clip": (False, lambda z: g.clip(z, 0, 2)),
    "step": (False, lambda z: z + g.where(z > 0, 0.5 * g.square(z + 1), 0 * z)),
    "max": (True, lambda z: z + g.max(z, axis=-1, keepdims=True)),
    "sort": (True, lambda z: g.sort(z, axis=-1) * np.arange(1, z.shape[-1] + 1, dtype=np.float32)),
    "argmax": (True, lambda z: g.where(g.expand_dims(g.argmax(z, axis=-1), -1) == np.arange(z.shape[-1]), z, 0.5 * z)),
}
"""For each kink whether two units tie there, rather than one is 0; and the function."""


class Network(NamedTuple):
    """A loss, the same in another order of its sums, and its arguments."""

    loss: Callable[..., Any]
    reordered: Callable[..., Any]
    params: list[Layer]
    x: np.ndarray


def network(kink: str, seed: int, depth: int, width: int) -> Network:
    """One whose planted unit is on its edge, in a layer and a row that the seed says."""
    rng = np.random.default_rng(seed)
    ties, f = KINKS[kink]
    params = [
        (rng.normal(size=(width, width)).astype("f4") / np.float32(width**0.5), rng.normal(size=width).astype("f4") / 3)
        for _ in range(depth)
    ]
    x = rng.normal(size=(ROWS, width)).astype("f4")
    layer, row, (unit, other) = rng.integers(depth), rng.integers(ROWS), rng.choice(width, 2, replace=False)
    y = x.astype("f8")
    for w, b in params[:layer]:
        y = np.asarray(f(y @ w + b))
    z = y[row] @ params[layer][0] + params[layer][1]
    if ties:
        unit = int(np.argmax(z))
        other = int(np.argsort(z)[-2])
    params[layer][1][unit] -= z[unit] - (z[other] if ties else 0)

    def made(product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def loss(params: list[Layer], x: Any) -> Any:
            for w, b in params:
                x = f(product(x, w) + b)
            return g.mean(g.square(x))

        return loss

    return Network(made(lambda x, w: x @ w), made(_other_order), params, x)


def _other_order(x: Any, w: Any) -> Any:
    """The same sums, odd terms first."""
    return x[:, 1::2] @ w[1::2] + x[:, ::2] @ w[::2]


# Numbers that no nudge moves ------------------------------------------------------------------------------------------

HIDDEN = 4


class Start(NamedTuple):
    """A hidden layer of x @ w, in two forms over the functions of a library, and its first numbers.

    `noise` names the results that rounding moves by more than a hundredth, so that an error of that size is not seen.
    `weights` are those of each hidden unit.
    """

    hidden: Callable[[Any, Any, Any], Any]
    other: Callable[[Any, Any, Any], Any]
    x: np.ndarray
    noise: tuple[str, ...] = ()
    weights: Sequence[float] = (1.0,) * HIDDEN


def _tanh_by_exp(g: Any, x: Any, w: Any) -> Any:
    small = g.exp(-2 * (x @ w))
    return (1 - small) / (1 + small)


def _normal(g: Any, x: Any, w: Any) -> Any:
    z = x @ w
    centred = z - g.mean(z, 1, keepdims=True)
    return 1 + centred / g.sqrt(g.mean(g.square(centred), 1, keepdims=True) + 1e-5)


def _normal_by_share(g: Any, x: Any, w: Any) -> Any:
    z, share = x @ w, np.float32(1 / HIDDEN)
    centred = z - g.sum(z * share, 1, keepdims=True)
    return 1 + centred / g.sqrt(g.sum(centred * centred * share, 1, keepdims=True) + 1e-5)


def _odd_first(g: Any, x: Any, w: Any) -> Any:
    return x[:, 1::2] @ w[1::2] + x[:, ::2] @ w[::2]


def _stepped_odd_first(g: Any, x: Any, w: Any) -> Any:
    z = _odd_first(g, x, w)
    return g.floor(z * 0.5) + z


def _probability(g: Any, x: Any, w: Any) -> Any:
    powers = g.exp(x @ w)
    return powers / g.sum(powers, 1, keepdims=True)


def _probability_from_below(g: Any, x: Any, w: Any) -> Any:
    powers = g.exp(x @ w - 16)
    return powers / g.sum(powers, 1, keepdims=True)


LEVELS = (2.0, 0.0, 0.0, 0.0)
ONES = np.ones((4, 8), np.float32)
COUNTS = np.arange(32, dtype=np.float32).reshape(4, 8) % 3
POWERS = 2.0 ** -(np.arange(32, dtype=np.float32).reshape(4, 8) % 3)
STARTS: dict[str, Start] = {
    "saturated tanh": Start(lambda g, x, w: g.tanh(x @ w), _tanh_by_exp, ONES, ("w",)),
    "saturated tanh of counts": Start(lambda g, x, w: g.tanh(x @ w), _tanh_by_exp, COUNTS, ("w",)),
    "saturated tanh of powers of two": Start(lambda g, x, w: g.tanh(x @ w), _tanh_by_exp, POWERS),
    "saturated sigmoid": Start(
        lambda g, x, w: g.sigmoid(x @ w * 2), lambda g, x, w: 1 / (1 + g.exp(-2 * (x @ w))), ONES, ("w",)
    ),
    "saturated softmax": Start(_probability, _probability_from_below, ONES, ("w",), LEVELS),
    "difference from 1": Start(
        lambda g, x, w: 1 - g.cos(x @ w * 1.1e-4), lambda g, x, w: 2 * g.sin(x @ w * 5.5e-5) ** 2, ONES,
        ("output", "w"),
    ),
    "step function": Start(lambda g, x, w: g.floor(x @ w / 2) + x @ w, _stepped_odd_first, COUNTS),
    "one-hot": Start(lambda g, x, w: x @ w, _odd_first, np.eye(8, dtype=np.float32)),
    "zeros": Start(
        lambda g, x, w: 1 + g.tanh(x @ w), lambda g, x, w: 1 + _tanh_by_exp(g, x, w), COUNTS, (), (0.0,) * HIDDEN
    ),
    "rows of one number": Start(_normal, _normal_by_share, COUNTS),
}  # fmt: skip


def start(name: str, g: Any) -> Network:
    """The network of a row of `STARTS`, with the functions of a library."""
    row = STARTS[name]

    def made(hidden: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
        return lambda params, x: g.mean(g.square(g.sum(hidden(g, x, params["w"])[:, :-1], 1)))

    params: Any = {"w": np.tile(np.float32(row.weights), (8, 1))}
    return Network(made(row.hidden), made(row.other), params, row.x)


def scaled_part(name: str, by: float) -> Change:
    """A multiple of the output, or of one gradient."""

    def change(value: Any, gradients: Any) -> Any:
        if name == "output":
            return value * np.float32(by), gradients
        return value, {**gradients, name: gradients[name] * np.float32(by)}

    return change


# Both gates -----------------------------------------------------------------------------------------------------------


def honest(value: Any, gradients: Any) -> Any:
    """As they are."""
    return value, gradients


def scaled(place: int) -> Change:
    """One gradient a hundredth too large."""

    def change(value: Any, gradients: Any) -> Any:
        leaves, structure = optree.tree_flatten(gradients)
        leaves[place % len(leaves)] = leaves[place % len(leaves)] * np.float32(1.01)
        return value, optree.tree_unflatten(structure, leaves)

    return change


class _Reordered(Bench):
    """A function whose other mode sums in another order."""

    other: Any
    change: Change

    def built(self, mode: str) -> Callable[..., Any]:
        if mode == self.base:
            return super().built(mode)
        return altered(self.engine.compiler.owning(self.engine.build(self.base, self.other, 0)), self.change)


def by_framework(network: Network, change: Change = honest, engine: Any = None) -> tuple[str, str | None]:
    """How the gate of a framework takes the other form."""
    engine = engine or Toy()
    calls = [engine.arrays((network.params, network.x))]
    bench = _Reordered.of_function(engine, engine.mode_names[0], "loss", network.loss, calls, 0, checks=True)
    bench.other, bench.change = network.reordered, change
    _, epoch = (first_epoch(bench, mode, no_limit) for mode in (engine.mode_names[0], "other"))
    return epoch.status, epoch.reason


def by_ours(network: Network, change: Change = honest) -> tuple[str, str | None]:
    """How the gate of our own engines takes it."""
    case, own = case_of(network.loss, [(network.params, network.x)], True, None), engines.step

    def built(mode: str, case: Any) -> Any:
        if mode != "static-exact":
            return own(mode, case)
        made = own("dynamic", replace(case, loss=network.reordered))
        made.built = altered(made.built, change)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "step", built)
        row = parity.check_mode("static-exact", case, parity.expectations(case))
    return row.status, row.reason
