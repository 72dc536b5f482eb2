"""Edits of what is computed with the same parameters: frozen, skipped, left early, another activation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import graphs as g
from compare.claims.c8_structure.base import BLOCKS, HALF, Array, Edit, Options, Params, Version, around, linear, model
from graphs.tree import tree_map

SURE = 1.5
"""Once the last loss is below this, the first block is enough."""


def _loss(params: Params, x: Array, y: Array, blocks: Callable[[Params, Array], Array]) -> Array:
    hidden = blocks(params, g.relu(linear(params["first"], x)))
    return g.cross_entropy(linear(params["last"], hidden), y)


# A layer frozen -------------------------------------------------------------------------------------------------


def frozen_after_half(step: int, _: float) -> Options:
    """Whether the blocks are frozen."""
    return (step >= HALF,)


def frozen_loss(params: Params, x: Array, y: Array, frozen: bool) -> Array:
    """Blocks that are frozen get no gradient."""
    blocks = tree_map(g.stop_gradient, params["blocks"]) if frozen else params["blocks"]
    return _loss({**params, "blocks": blocks}, x, y, _all_blocks)


def frozen_by_mask(step: int, _: float) -> Options:
    """The same as an array."""
    return (np.array(step >= HALF),)


def masked_gradient_loss(params: Params, x: Array, y: Array, frozen: Array) -> Array:
    """Each parameter of a block is either itself or a constant of the same value."""
    blocks = tree_map(lambda value: g.where(frozen, g.stop_gradient(value), value), params["blocks"])
    return _loss({**params, "blocks": blocks}, x, y, _all_blocks)


def _all_blocks(params: Params, hidden: Array) -> Array:
    for layers in params["blocks"]:
        hidden = around(layers, hidden)
    return hidden


# Stochastic depth -----------------------------------------------------------------------------------------------


def drawn(step: int, _: float) -> Options:
    """Which blocks run, drawn for each step (Huang et al., arXiv 1603.09382)."""
    random = np.random.default_rng(step)
    return (tuple(bool(kept) for kept in random.random(BLOCKS) < 0.6),)


def stochastic_loss(params: Params, x: Array, y: Array, active: tuple[bool, ...]) -> Array:
    """Only the active blocks run."""
    chosen = [layers for layers, runs in zip(params["blocks"], active, strict=True) if runs]
    return _loss({**params, "blocks": chosen}, x, y, _all_blocks)


def drawn_as_array(step: int, last: float) -> Options:
    """The same as an array."""
    return (np.array(drawn(step, last)[0]),)


def branching_loss(params: Params, x: Array, y: Array, active: Array) -> Array:
    """Each block is a branch of the graph."""

    def blocks(params: Params, hidden: Array) -> Array:
        for i, layers in enumerate(params["blocks"]):
            hidden = g.cond(active[i], lambda h, layers=layers: around(layers, h), lambda h: h, hidden)
        return hidden

    return _loss(params, x, y, blocks)


# Early exit -----------------------------------------------------------------------------------------------------


def sure(_: int, last: float) -> Options:
    """Whether the last step did well enough for the first block alone."""
    return (last < SURE,)


def exit_loss(params: Params, x: Array, y: Array, early: bool) -> Array:
    """The first block alone, or all."""
    return _loss({**params, "blocks": params["blocks"][:1]} if early else params, x, y, _all_blocks)


def sure_as_array(step: int, last: float) -> Options:
    """The same as an array."""
    return (np.array(sure(step, last)[0]),)


def exit_branch_loss(params: Params, x: Array, y: Array, early: Array) -> Array:
    """What follows the first block is a branch of the graph."""

    def blocks(params: Params, hidden: Array) -> Array:
        first, *rest = params["blocks"]
        return g.cond(early, lambda h: h, lambda h: _all_blocks({"blocks": rest}, h), around(first, hidden))

    return _loss(params, x, y, blocks)


# Another activation ---------------------------------------------------------------------------------------------


def activation_by_name(step: int, _: float) -> Options:
    """The activation of the first layer."""
    return ("relu" if step < HALF else "tanh",)


def named_loss(params: Params, x: Array, y: Array, activation: str) -> Array:
    """Python looks the activation up."""
    hidden = (g.relu if activation == "relu" else g.tanh)(linear(params["first"], x))
    return g.cross_entropy(linear(params["last"], _all_blocks(params, hidden)), y)


def activation_by_flag(step: int, _: float) -> Options:
    """The same as an array."""
    return (np.array(step >= HALF),)


def either_loss(params: Params, x: Array, y: Array, smooth: Array) -> Array:
    """The activation is a branch of the graph."""
    hidden = g.cond(smooth, g.tanh, g.relu, linear(params["first"], x))
    return g.cross_entropy(linear(params["last"], _all_blocks(params, hidden)), y)


EDITS = (
    Edit(
        "layer frozen",
        Version(frozen_loss, model, options=frozen_after_half),
        Version(masked_gradient_loss, model, options=frozen_by_mask),
    ),
    Edit(
        "stochastic depth",
        Version(stochastic_loss, model, options=drawn),
        Version(branching_loss, model, options=drawn_as_array),
    ),
    Edit(
        "early exit", Version(exit_loss, model, options=sure), Version(exit_branch_loss, model, options=sure_as_array)
    ),
    Edit(
        "activation changed",
        Version(named_loss, model, options=activation_by_name),
        Version(either_loss, model, options=activation_by_flag),
    ),
)
