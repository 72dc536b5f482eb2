"""Chains of equal ops, of any depth, over tensors of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

import graphs
from compare.workloads.base import Case

Array = Any
Make = Callable[[int, int], Case]

WIDTH = 16
"""Columns of a matrix product, so that its work, too, is in proportion to the size of the tensor."""


def elementwise(size: int, depth: int) -> Case:
    """`depth` products of f[size] with numbers near 1; the gradient is in the first factor, so another `depth`."""

    def loss(params: dict[str, Array], gain: Array) -> Array:
        x = params["x"]
        for _ in range(depth):
            x = x * gain
        return graphs.mean(x)

    x, noise = np.random.default_rng(0).standard_normal((2, size), np.float32)
    return Case(loss, {"x": x}, ((np.exp(noise / (10 * depth)),),), (size,))


def matmul(size: int, depth: int) -> Case:
    """`depth` products of f[size / 16, 16] with one rotation, f[16, 16]; the gradient is in the first factor."""

    def loss(params: dict[str, Array], rotation: Array) -> Array:
        x = params["x"]
        for _ in range(depth):
            x = x @ rotation
        return graphs.mean(x * x)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((max(1, size // WIDTH), WIDTH), np.float32)
    rotation = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    return Case(loss, {"x": x}, ((rotation,),), (size,))


CHAINS: Mapping[str, Make] = MappingProxyType({"elementwise": elementwise, "matmul": matmul})
