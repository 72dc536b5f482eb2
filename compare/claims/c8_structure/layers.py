"""Edits of the parameters themselves: a layer dropped, added, widened, its units pruned."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c8_structure.base import (
    BLOCKS,
    HALF,
    INNER,
    WIDTH,
    Array,
    Edit,
    Params,
    Version,
    block,
    linear,
    model,
    residual_loss,
)
from compare.workloads.layers import Layer, he

WIDER = 16


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
    return {**params, "blocks": [_pruned(layers) for layers in params["blocks"]]} if step == HALF else params


def _kept(layers: dict[str, Layer]) -> Array:
    size = np.linalg.norm(layers["up"]["weight"], axis=0)
    return np.sort(np.argsort(size, kind="stable")[INNER // 2 :])


def _pruned(layers: dict[str, Layer]) -> dict[str, Layer]:
    up, down, kept = layers["up"], layers["down"], _kept(layers)
    return {
        "up": {"weight": up["weight"][:, kept], "bias": up["bias"][kept]},
        "down": {**down, "weight": down["weight"][kept]},
    }


def masked_model() -> Params:
    """The model, with a mask over the inner units of each block."""
    return {**model(), "masks": [np.ones(INNER, np.float32) for _ in range(BLOCKS)]}


def mask(step: int, params: Params) -> Params:
    """The same units stay, and count for nothing."""
    masks = [np.isin(np.arange(INNER), _kept(layers)).astype(np.float32) for layers in params["blocks"]]
    return {**params, "masks": masks} if step == HALF else params


def masked_loss(params: Params, x: Array, y: Array) -> Array:
    """The loss of a network whose masked units are 0."""
    hidden = g.relu(linear(params["first"], x))
    for layers, kept in zip(params["blocks"], params["masks"], strict=True):
        inner = g.relu(linear(layers["up"], hidden)) * g.stop_gradient(kept)
        hidden = hidden + linear(layers["down"], inner)
    return g.cross_entropy(linear(params["last"], hidden), y)


EDITS = (
    Edit("layer dropped", Version(residual_loss, model, drop)),
    Edit("layer added", Version(residual_loss, model, add)),
    Edit("layer widened", Version(residual_loss, model, widen)),
    Edit("units pruned", Version(residual_loss, model, prune), Version(masked_loss, masked_model, mask)),
)
