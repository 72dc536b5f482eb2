"""Pickling and copying tensors, as PyTorch does: what goes along is the data and whether a gradient is required.

A history is never copied: it belongs to the run that recorded it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import NotDifferentiableError, located

if TYPE_CHECKING:
    from dynamic.tensor import Tensor


def reduced(tensor: Tensor) -> tuple[Any, ...]:
    """What pickle keeps of a tensor, and how to make it again: a leaf. `copy.copy` shares the memory."""
    return restored, (tensor._data, tensor.requires_grad)


def restored(data: np.ndarray[Any, Any], requires_grad: bool) -> Tensor:
    """The leaf that was pickled."""
    from dynamic.tensor import Tensor

    return Tensor(data, requires_grad=requires_grad)


def deep_copied(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with memory of its own, its gradient included. Raises NotDifferentiableError for what an op has made."""
    if not tensor.is_leaf:
        raise NotDifferentiableError(
            located("deepcopy of a tensor that an op has made; detach() it first, or clone() it to stay in the graph")
        )
    made = restored(copy.deepcopy(tensor._data, memo), tensor.requires_grad)
    made.grad = copy.deepcopy(tensor.grad, memo)
    return made
