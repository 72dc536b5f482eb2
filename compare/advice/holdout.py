"""Programs for evaluation that no calibration uses: random stacks, by seed, of blocks that are not among the probes.

Each program is a loss over rows of numbers. Its blocks are layers, normalisation, attention over rows, gates, rotated
columns and runs of elementwise ops, each drawn anew. Half of the programs are shallow and half deep, at three sizes;
size and depth are the regimes of hit rates. Published rates use seed 0; another seed gives other programs of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import product
from random import Random
from typing import Any

import numpy as np

import graphs as g
from compare.workloads.base import Case

Array = Any
Weights = list[Array]
Block = Callable[[Weights, Array], Array]

SIZES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "rows of 4 KiB": ((8, 96), (30, 33), (1, 700)),
    "rows of 256 KiB": ((200, 310), (64, 900), (450, 150)),
    "rows of 4 MiB": ((3000, 330), (1500, 650), (4500, 220)),
}
"""The rows and columns of the float32 values between blocks, by their approximate bytes."""
DEPTHS = {"2 to 4 blocks": (2, 4), "8 to 14 blocks": (8, 14)}
ATTENTION_ROWS = 600
"""The largest number of rows for attention: beyond it, scores of row pairs would be nearly all of the work."""
COUNT = 48


def names(count: int = COUNT) -> list[str]:
    """Return the names of the programs of `cases`."""
    return list(cases(count))


def cases(count: int = COUNT, seed: int = 0) -> dict[str, Callable[[], Case]]:
    """Return functions that make `count` programs, by name; size and depth follow the slash in a name."""
    regimes = list(product(SIZES, DEPTHS))
    chosen = [regimes[number % len(regimes)] for number in range(count)]
    return {
        f"held-out {number}/{size}, {depth}": partial(make_program, size, depth, f"{seed}/{number}")
        for number, (size, depth) in enumerate(chosen)
    }


def make_program(size: str, depth: str, seed: str) -> Case:
    """Make the program of a seed: its loss, its weights and its rows."""
    random = Random(seed)
    rng = np.random.default_rng(random.getrandbits(64))
    rows, columns = random.choice(SIZES[size])
    admitted = [block for block in BLOCKS if block is not attention or rows <= ATTENTION_ROWS]
    drawn = [random.choice(admitted)(random, rng, rows, columns) for _ in range(random.randint(*DEPTHS[depth]))]
    blocks, weights = [block for block, _ in drawn], [values for _, values in drawn]
    x = _normal(rng, rows, columns)

    def loss(params: list[Weights], x: Array) -> Array:
        h = reduce(lambda h, pair: pair[0](pair[1], h), zip(blocks, params, strict=True), x)
        return g.mean(h * h)

    return Case(loss, weights, ((x,),), (rows,))


def layer(random: Random, rng: np.random.Generator, _: int, columns: int) -> tuple[Block, Weights]:
    """Make a block: a dense layer through fewer columns and back, added to its input."""
    inner, act = max(2, columns // random.choice((2, 4, 8))), random.choice((g.relu, g.tanh, g.sigmoid))

    def block(weights: Weights, h: Array) -> Array:
        return h + act(h @ weights[0] + weights[1]) @ weights[2]

    return block, [_normal(rng, columns, inner), _normal(rng, inner), _normal(rng, inner, columns)]


def normalised_block(_: Random, rng: np.random.Generator, __: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that centres each row, divides it by its deviation, then scales and shifts it."""

    def block(weights: Weights, h: Array) -> Array:
        centred = h - g.mean(h, axis=1, keepdims=True)
        return centred / g.sqrt(g.mean(centred * centred, axis=1, keepdims=True) + 1e-3) * weights[0] + weights[1]

    return block, [_normal(rng, columns), _normal(rng, columns)]


def attention(_: Random, rng: np.random.Generator, __: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that mixes rows by the softmax of their products."""

    def block(weights: Weights, h: Array) -> Array:
        return g.softmax((h * weights[0]) @ h.T / columns, axis=1) @ h

    return block, [_normal(rng, columns)]


def gated_block(random: Random, rng: np.random.Generator, _: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that mixes its input with the input rotated by some columns, by a gate for each column."""
    by = random.randrange(1, columns)

    def block(weights: Weights, h: Array) -> Array:
        turned = g.concat([h[:, by:], h[:, :by]], axis=1)
        gate = g.sigmoid(h * weights[0])
        return gate * h + (1 - gate) * turned

    return block, [_normal(rng, columns)]


def elementwise_block(random: Random, rng: np.random.Generator, _: int, columns: int) -> tuple[Block, Weights]:
    """Make a block of several elementwise ops, none of which grows without bound."""
    steps = [random.choice(STEPS) for _ in range(random.randint(2, 6))]

    def block(weights: Weights, h: Array) -> Array:
        return reduce(lambda h, step: step(h, weights[0]), steps, h)

    return block, [_normal(rng, columns)]


def pooled_block(_: Random, rng: np.random.Generator, __: int, columns: int) -> tuple[Block, Weights]:
    """Make a block that subtracts the weighted maximum of each column."""

    def block(weights: Weights, h: Array) -> Array:
        return h - weights[0] * g.max(h, axis=0, keepdims=True)

    return block, [_normal(rng, columns)]


STEPS: tuple[Callable[[Array, Array], Array], ...] = (
    lambda h, w: g.cos(h) + w,
    lambda h, w: g.exp(-h * h) * w,
    lambda h, w: g.where(h > 0, h, h * w),
    lambda h, w: g.log(1 + g.abs(h)) - w,
    lambda h, w: g.maximum(h, w) / 2,
    lambda h, w: h / (1 + g.square(w)),
)
BLOCKS = (layer, normalised_block, attention, gated_block, elementwise_block, pooled_block)


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]) if len(shape) > 1 else 1.0)
