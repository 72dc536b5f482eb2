"""The memory of tensors of the dynamic engine, and what brings it back."""

from __future__ import annotations

from typing import Any

import numpy as np

import dynamic
from compare.engines.state import Piece


def array_of(tensor: Any) -> np.ndarray:
    """The memory of a tensor."""
    array: np.ndarray = tensor.detach().numpy()
    return array


def as_array(leaf: Any) -> Any:
    """An array for a tensor."""
    return array_of(leaf) if isinstance(leaf, dynamic.Tensor) else leaf


def kept_tensor(tensor: Any) -> Piece:
    """What brings back a tensor with its gradient."""
    before, gradient = tensor.numpy(force=True).copy(), tensor.grad

    def same() -> bool:
        return tensor.grad is gradient and np.array_equal(tensor.numpy(force=True), before)

    def back() -> None:
        np.copyto(array_of(tensor), before)
        tensor.grad = gradient

    return Piece(same, back, [gradient])
