"""The numbers of PyTorch's tensors and modules: read as NumPy arrays, cast to float64, nudged, and restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compare.engines.nudge import nudging
from compare.engines.state import Piece

Change = Callable[[Any], Any]
"""A function from a tensor of floats to a changed one."""


def array(tensor: Any) -> np.ndarray:
    """Return a tensor as a NumPy array, in float32 or complex64 for dtypes that NumPy lacks. It may share memory."""
    import torch

    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex() and tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    elif tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
        tensor = tensor.float()
    numbers: np.ndarray = tensor.numpy()
    return numbers


def double(tensor: Any) -> Any:
    """Return a tensor in float64 or complex128."""
    import torch

    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def moving(seed: int, unit: float = 0.0) -> Change:
    """Return a function that nudges the floats of a tensor as `compare.engines.nudge` does."""
    rng = np.random.default_rng(seed)

    def move(tensor: Any) -> Any:
        import torch

        if tensor.layout is not torch.strided:
            return tensor
        nudge = nudging(int(rng.integers(2**32)), max(unit, torch.finfo(tensor.dtype).eps))
        moved = nudge(array(tensor))
        return torch.from_numpy(moved).to(tensor.device, tensor.dtype)

    return move


@contextmanager
def meanwhile(held: Sequence[Any], change: Change) -> Iterator[None]:
    """A context in which float tensors in `held` have changed data, and gradients of the same dtype."""
    import torch

    values = [value for value in held if isinstance(value, torch.Tensor) and inexact(value)]
    tensors = [(value, value.data, value.grad if value.is_leaf else None) for value in values]
    try:
        for tensor, data, _ in tensors:
            _detach_gradient(tensor)
            tensor.data = change(data)
        for tensor, _, gradient in tensors:
            if gradient is not None:
                tensor.grad = gradient if gradient.dtype == tensor.dtype else change(gradient)
        yield
    finally:
        for tensor, data, _ in tensors:
            _detach_gradient(tensor)
            tensor.data = data
        for tensor, _, gradient in tensors:
            if gradient is not None:
                tensor.grad = gradient


def _detach_gradient(tensor: Any) -> None:
    """Remove a tensor's gradient, since its dtype must equal the tensor's, which could not change otherwise."""
    if tensor.is_leaf and tensor.grad is not None:
        tensor.grad = None


def inexact(tensor: Any) -> bool:
    """Return whether a tensor holds floats or complex numbers."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


_MARK = "_dynamo_propagated_dynamic_indices"
"""The attribute by which compiled code notes a tensor's varying sizes; later compilations then assume them."""


def snapshot(value: Any) -> Piece | None:
    """Return the piece of a tensor with its gradient, of a random generator, or of a wrapper's inner function."""
    import torch

    if isinstance(value, torch.Tensor):
        return _kept_tensor(value)
    if isinstance(value, torch.Generator):
        before = value.get_state()
        return Piece(lambda: torch.equal(value.get_state(), before), lambda: value.set_state(before) and None)
    if isinstance(value, torch.jit.ScriptModule):
        return Piece(parts=[*value.parameters(), *value.buffers()])
    behind = getattr(value, "__dict__", {}).get("_torchdynamo_orig_callable")
    if behind is not None:
        return Piece(parts=[behind])
    return Piece(parts=[value._orig_mod]) if isinstance(value, torch._dynamo.OptimizedModule) else None


def _kept_tensor(tensor: Any) -> Piece:
    import torch

    if not _is_plain(tensor):
        return Piece()
    with torch.no_grad():
        before, wants = tensor.detach().clone(), tensor.requires_grad
    gradient = tensor.grad if tensor.is_leaf else None

    def is_back() -> bool:
        return tensor.shape == before.shape and tensor.dtype == before.dtype and tensor.device == before.device

    def same() -> bool:
        now = tensor.grad if tensor.is_leaf else None
        return now is gradient and is_back() and torch.equal(tensor.detach(), before)

    def back() -> None:
        vars(tensor).pop(_MARK, None)
        with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
            if is_back():
                tensor.copy_(before)
            else:
                tensor.data = before.clone()
        if tensor.is_leaf:
            tensor.requires_grad_(wants)
            tensor.grad = gradient

    hooks = (tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None))  # one may hold an optimizer
    return Piece(same, back, [gradient, *hooks, *vars(tensor).values()])


def _is_plain(tensor: Any) -> bool:
    """Return whether a tensor has its own elements, each stored once; others are not changed in place."""
    import torch

    dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    return dense and not any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))
