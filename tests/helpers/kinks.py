"""Random networks that stand on a jump but for rounding: a ReLU whose input is 0, a tie of a maximum or a sort.

`network` gives one with its numbers, and the same with its sums in another order, as another mode computes them.
"""

from __future__ import annotations

from collections.abc import Callable
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


# Both gates -----------------------------------------------------------------------------------------------------------

Change = Callable[[Any, Any], Any]
"""What a mode makes of the value and the gradients."""


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


def by_framework(network: Network, change: Change = honest) -> tuple[str, str | None]:
    """How the gate of frameworks takes the other order."""
    calls = [(network.params, network.x)]
    bench = _Reordered.of_function(Toy(), "toy-eager", "loss", network.loss, calls, 0, checks=True)
    bench.other, bench.change = network.reordered, change
    _, epoch = (first_epoch(bench, mode, no_limit) for mode in ("toy-eager", "toy-jit"))
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
