"""Leaves, and whether two tensors share memory."""

from __future__ import annotations

import numpy as np

import dynamic

DOMAIN = np.lib.tracemalloc_domain


def leaf(*values: float) -> dynamic.Tensor:
    return dynamic.tensor([float(v) for v in values], requires_grad=True)


def shares(a: dynamic.Tensor, b: dynamic.Tensor) -> bool:
    return np.shares_memory(a.detach().numpy(), b.detach().numpy())
