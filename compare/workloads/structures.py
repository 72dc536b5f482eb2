"""Structure edits: training runs in which the model changes, each written in one way or in two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import graphs as g
from compare.workloads.data import load_digits
from compare.workloads.layers import Layer, he
from graphs.tree import tree_map

Array = Any
Params = dict[str, Any]
Options = tuple[Any, ...]
Decide = Callable[[int, float], Options]

STEPS = 24
HALF = STEPS // 2
BATCH = 64
PIXELS, WIDTH, INNER, CLASSES = 64, 48, 32, 10
BLOCKS = 3
WIDER = 16
"""Inner units that come when a block is widened."""
SURE = 1.5
"""Once the last loss is below this, the first block is enough."""
SIDE, STATE = 8, 32
LENGTHS = (2, 4, 6, 8)


@cache
def _digits() -> tuple[Array, Array]:
    x, y, _, _ = load_digits()
    return x, y


def digits(step: int) -> tuple[Array, Array]:
    """A batch of handwritten digits: f32[64, 64] pixels, i64[64] labels, the same for the same step."""
    x, y = _digits()
    start = step * BATCH % (len(x) - BATCH)
    return x[start : start + BATCH], y[start : start + BATCH]


def keep_params(_: int, params: Params) -> Params:
    """Most versions keep their parameters as they are."""
    return params


def no_options(_: int, __: float) -> Options:
    """Most versions need no options."""
    return ()


@dataclass(frozen=True)
class Version:
    """One way to write a training run in which the model changes.

    loss      `loss(params, *batch, *options) -> scalar`; options that are no arrays are decided by Python
    init      the parameters before the first step
    change    `change(step, params)`: the parameters as a step finds them; an edit may add, drop or resize some
    options   `options(step, last loss)`: what else the loss is given
    batch     `batch(step)`
    dims      the axes that vary, a name or None per axis of each argument of the loss; () where none does
    """

    loss: Callable[..., Any]
    init: Callable[[], Params]
    change: Callable[[int, Params], Params] = keep_params
    options: Decide = no_options
    batch: Callable[[int], tuple[Array, ...]] = digits
    dims: Options = ()


@dataclass(frozen=True)
class Edit:
    """A change of structure during training.

    `plain` is how one would write it at once, with Python deciding. `foreseen` is the same training by a graph that
    holds the change as a branch, a mask or a symbolic size; None where nobody could have known.
    """

    name: str
    plain: Version
    foreseen: Version | None = None


# The model that most edits change: blocks with a way around them ------------------------------------------------


def dense(random: np.random.Generator, inputs: int, outputs: int) -> Layer:
    """A layer with initial weights."""
    return {"weight": he(random, inputs, outputs), "bias": np.zeros(outputs, np.float32)}


def block(random: np.random.Generator) -> dict[str, Layer]:
    """A block; its second layer starts small, so that the block does little at first."""
    down = dense(random, INNER, WIDTH)
    return {"up": dense(random, WIDTH, INNER), "down": {**down, "weight": down["weight"] / np.float32(10)}}


def model() -> Params:
    """The parameters of a residual network on digits."""
    random = np.random.default_rng(0)
    return {
        "first": dense(random, PIXELS, WIDTH),
        "blocks": [block(random) for _ in range(BLOCKS)],
        "last": dense(random, WIDTH, CLASSES),
    }


def linear(layer: Layer, x: Array) -> Array:
    """x @ weight + bias."""
    return x @ layer["weight"] + layer["bias"]


def around(layers: dict[str, Layer], hidden: Array) -> Array:
    """A block added to what goes around it."""
    return hidden + linear(layers["down"], g.relu(linear(layers["up"], hidden)))


def all_blocks(params: Params, hidden: Array) -> Array:
    """Every block there is, one after the other."""
    for layers in params["blocks"]:
        hidden = around(layers, hidden)
    return hidden


def residual_loss(
    params: Params,
    x: Array,
    y: Array,
    blocks: Callable[[Params, Array], Array] = all_blocks,
    activation: Callable[[Array], Array] = g.relu,
) -> Array:
    """The mean cross entropy of a residual network with any number of blocks."""
    hidden = blocks(params, activation(linear(params["first"], x)))
    return g.cross_entropy(linear(params["last"], hidden), y)


# Options that several edits have: what Python decides, and the same as an array ---------------------------------


def after_half(step: int, _: float) -> Options:
    """Whether half of the training is over."""
    return (step >= HALF,)


def as_array(options: Decide) -> Decide:
    """The same as an array, for a graph that holds both ways."""
    return lambda step, last: (np.array(options(step, last)[0]),)


# Layers dropped, added, widened, their units pruned -------------------------------------------------------------


def drop(step: int, params: Params) -> Params:
    """The last block goes."""
    return {**params, "blocks": params["blocks"][:-1]} if step == HALF else params


def add(step: int, params: Params) -> Params:
    """A block comes."""
    more = [block(np.random.default_rng(1))]
    return {**params, "blocks": [*params["blocks"], *more]} if step == HALF else params


def widen(step: int, params: Params) -> Params:
    """Every block gets more inner units, which change nothing at first (Net2Net, arXiv 1511.05641)."""
    return {**params, "blocks": [_wider(layers) for layers in params["blocks"]]} if step == HALF else params


def _wider(layers: dict[str, Layer]) -> dict[str, Layer]:
    up, down = layers["up"], layers["down"]
    more = he(np.random.default_rng(2), WIDTH, WIDER)
    return {
        "up": {
            "weight": np.concatenate([up["weight"], more], axis=1),
            "bias": np.concatenate([up["bias"], np.zeros(WIDER, np.float32)]),
        },
        "down": {**down, "weight": np.concatenate([down["weight"], np.zeros((WIDER, WIDTH), np.float32)])},
    }


def prune(step: int, params: Params) -> Params:
    """Half of the inner units go, those with the smallest weights."""
    return {**params, "blocks": [_prune_layers(layers) for layers in params["blocks"]]} if step == HALF else params


def _kept_units(layers: dict[str, Layer]) -> Array:
    size = np.linalg.norm(layers["up"]["weight"], axis=0)
    return np.sort(np.argsort(size, kind="stable")[INNER // 2 :])


def _prune_layers(layers: dict[str, Layer]) -> dict[str, Layer]:
    up, down, kept = layers["up"], layers["down"], _kept_units(layers)
    return {
        "up": {"weight": up["weight"][:, kept], "bias": up["bias"][kept]},
        "down": {**down, "weight": down["weight"][kept]},
    }


def masked_model() -> Params:
    """The model, with a mask over the inner units of each block."""
    return {**model(), "masks": [np.ones(INNER, np.float32) for _ in range(BLOCKS)]}


def mask(step: int, params: Params) -> Params:
    """The same units stay, and count for nothing."""
    masks = [np.isin(np.arange(INNER), _kept_units(layers)).astype(np.float32) for layers in params["blocks"]]
    return {**params, "masks": masks} if step == HALF else params


def masked_loss(params: Params, x: Array, y: Array) -> Array:
    """The loss of a network whose masked units are 0."""
    return residual_loss(params, x, y, _masked_blocks)


def _masked_blocks(params: Params, hidden: Array) -> Array:
    for layers, kept in zip(params["blocks"], params["masks"], strict=True):
        inner = g.relu(linear(layers["up"], hidden)) * g.stop_gradient(kept)
        hidden = hidden + linear(layers["down"], inner)
    return hidden


# A layer frozen -------------------------------------------------------------------------------------------------


def frozen_loss(params: Params, x: Array, y: Array, frozen: bool) -> Array:
    """Blocks that are frozen get no gradient."""
    blocks = tree_map(g.stop_gradient, params["blocks"]) if frozen else params["blocks"]
    return residual_loss({**params, "blocks": blocks}, x, y)


def masked_gradient_loss(params: Params, x: Array, y: Array, frozen: Array) -> Array:
    """Each parameter of a block is either itself or a constant of the same value."""
    blocks = tree_map(lambda value: g.where(frozen, g.stop_gradient(value), value), params["blocks"])
    return residual_loss({**params, "blocks": blocks}, x, y)


# Stochastic depth -----------------------------------------------------------------------------------------------


def draw_blocks(step: int, _: float) -> Options:
    """Which blocks run, drawn for each step (Huang et al., arXiv 1603.09382)."""
    random = np.random.default_rng(step)
    return (tuple(bool(kept) for kept in random.random(BLOCKS) < 0.6),)


def stochastic_loss(params: Params, x: Array, y: Array, active: tuple[bool, ...]) -> Array:
    """Only the active blocks run."""
    chosen = [layers for layers, runs in zip(params["blocks"], active, strict=True) if runs]
    return residual_loss({**params, "blocks": chosen}, x, y)


def branching_loss(params: Params, x: Array, y: Array, active: Array) -> Array:
    """Each block is a branch of the graph."""

    def blocks(params: Params, hidden: Array) -> Array:
        for i, layers in enumerate(params["blocks"]):
            hidden = g.cond(active[i], lambda h, layers=layers: around(layers, h), lambda h: h, hidden)
        return hidden

    return residual_loss(params, x, y, blocks)


# Early exit -----------------------------------------------------------------------------------------------------


def sure(_: int, last: float) -> Options:
    """Whether the last step did well enough for the first block alone."""
    return (last < SURE,)


def exit_loss(params: Params, x: Array, y: Array, early: bool) -> Array:
    """The first block alone, or all."""
    return residual_loss({**params, "blocks": params["blocks"][:1]} if early else params, x, y)


def exit_branch_loss(params: Params, x: Array, y: Array, early: Array) -> Array:
    """What follows the first block is a branch of the graph."""

    def blocks(params: Params, hidden: Array) -> Array:
        first, *rest = params["blocks"]
        return g.cond(early, lambda h: h, lambda h: all_blocks({"blocks": rest}, h), around(first, hidden))

    return residual_loss(params, x, y, blocks)


# Another activation ---------------------------------------------------------------------------------------------


def activation_loss(params: Params, x: Array, y: Array, smooth: bool) -> Array:
    """Python chooses the activation of the first layer."""
    return residual_loss(params, x, y, activation=g.tanh if smooth else g.relu)


def activation_branch_loss(params: Params, x: Array, y: Array, smooth: Array) -> Array:
    """The activation is a branch of the graph."""
    return residual_loss(params, x, y, activation=lambda hidden: g.cond(smooth, g.tanh, g.relu, hidden))


# Sequences that grow while a recurrent network trains on them ---------------------------------------------------


def growing(step: int) -> tuple[Array, Array]:
    """The first rows of each digit, more of them with every quarter of the training."""
    x, y = digits(step)
    length = LENGTHS[step * len(LENGTHS) // STEPS]
    return x.reshape(BATCH, SIDE, SIDE)[:, :length], y


def recurrent() -> Params:
    """The parameters of a recurrent network that reads a digit row by row."""
    random = np.random.default_rng(3)
    return {
        "row": dense(random, SIDE, STATE),
        "state": dense(random, STATE, STATE)["weight"] / np.float32(2),
        "last": dense(random, STATE, CLASSES),
    }


def _next(params: Params, state: Array, row: Array) -> Array:
    return g.tanh(linear(params["row"], row) + state @ params["state"])


def unrolled_loss(params: Params, x: Array, y: Array) -> Array:
    """A Python loop over the rows there are."""
    state = g.zeros((BATCH, STATE), np.float32)
    for t in range(x.shape[1]):
        state = _next(params, state, x[:, t])
    return g.cross_entropy(linear(params["last"], state), y)


def scanned_loss(params: Params, x: Array, y: Array) -> Array:
    """One loop for any number of rows."""
    start = g.zeros((BATCH, STATE), np.float32)
    state, _ = g.scan(lambda state, row: (_next(params, state, row), ()), start, g.permute_dims(x, (1, 0, 2)))
    return g.cross_entropy(linear(params["last"], state), y)


_VARYING = (None, (None, "T", None), (None,))


def _decide_edit(name: str, options: Decide, plain: Callable[..., Array], foreseen: Callable[..., Array]) -> Edit:
    """An edit of what is computed: Python chooses, or a graph that is given the choice as an array."""
    return Edit(name, Version(plain, model, options=options), Version(foreseen, model, options=as_array(options)))


EDITS = (
    # of parameters
    Edit("layer dropped", Version(residual_loss, model, drop)),
    Edit("layer added", Version(residual_loss, model, add)),
    Edit("layer widened", Version(residual_loss, model, widen)),
    Edit("units pruned", Version(residual_loss, model, prune), Version(masked_loss, masked_model, mask)),
    # of what is computed with the same parameters
    _decide_edit("layer frozen", after_half, frozen_loss, masked_gradient_loss),
    _decide_edit("stochastic depth", draw_blocks, stochastic_loss, branching_loss),
    _decide_edit("early exit", sure, exit_loss, exit_branch_loss),
    _decide_edit("activation changed", after_half, activation_loss, activation_branch_loss),
    # of sizes
    Edit(
        "longer sequences",
        Version(unrolled_loss, recurrent, batch=growing),
        Version(scanned_loss, recurrent, batch=growing, dims=_VARYING),
    ),
)
