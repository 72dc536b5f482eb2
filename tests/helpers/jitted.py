"""Functions for jit."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs


def ones(*shape: int) -> Any:
    return np.ones(shape)


def double(x: Any) -> Any:
    return x * 2


def masked_loss(w: Any, x: Any, mask: Any) -> Any:
    """The mean over the rows that the mask keeps, and a recurrence over all of them."""
    state = w * 0
    for t in range(x.shape[0]):
        state = graphs.where(mask[t], np.tanh(state + x[t] * w), state)
    rows = graphs.where(mask, (x @ w) ** 2, 0.0)
    return rows.sum() / graphs.astype(mask, "float64").sum() + state.sum()


def unmasked_loss(w: Any, x: Any) -> Any:
    return masked_loss(w, x, np.ones(x.shape[0], bool))
