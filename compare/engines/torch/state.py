"""The state of a call of PyTorch: the numbers of tensors, and what a call leaves, by the names of messages.

Numbers are read as NumPy arrays, cast to float64, nudged, and restored. A call leaves buffers, counters, and trained
tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.engines.nudge import nudging
from compare.engines.reach import ReachedCode, is_users_class, names_in
from compare.engines.state import Piece
from compare.engines.step import Function, StateReader

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
def meanwhile(holders: Sequence[Any], change: Change) -> Iterator[None]:
    """A context in which tensors of floats or complex numbers have changed data, and gradients of the same dtype."""
    import torch

    values = [
        each for each in holders if isinstance(each, torch.Tensor) and (each.is_floating_point() or each.is_complex())
    ]
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

    # only a tensor that has its own elements, each stored once, is changed in place
    dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    if not dense or any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)):
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


# What a call leaves ---------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """A place with a value that a call may change or replace."""

    space: Mapping[str, Any]
    name: str
    label: str


def state_reader(
    function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
) -> StateReader:
    """Return a reader of buffers, of numbers in which modules count, and of tensors that a call `changed`.

    For a step that `trains` it also reads parameters, the gradients that the step leaves, and optimizers' state.
    """
    import torch

    code = ReachedCode(function)
    arguments: Any = list(calls)
    values: list[Any] = [*optree.tree_leaves(arguments), *code.values]
    names = names_in(function, calls, code)
    modules = _modules(values, names)
    loose = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf]
    loose += [piece.of for piece in changed if not piece.is_argument and isinstance(piece.of, torch.Tensor)]
    alone = [_Place({"": value}, "", f"the tensor `{names.get(id(value), k)}`") for k, value in enumerate(loose)]
    if not trains:  # a loss changes no tensor that requires gradients
        alone = [place for place in alone if not place.space[place.name].requires_grad]
    places = _once([*_places(modules, trains=trains), *alone])
    optimizers = [value for value in values if trains and isinstance(value, torch.optim.Optimizer)]

    def read() -> dict[str, Any]:
        now = {place.label: place.space.get(place.name) for place in places}
        leaves = {label: value for label, value in now.items() if isinstance(value, torch.Tensor) and value.is_leaf}
        left = {
            f"the gradient of {label}": () if tensor.grad is None else tensor.grad
            for label, tensor in leaves.items()
            if trains and tensor.requires_grad
        }
        labels = {id(value): label for label, value in now.items()}
        kept = {
            f"`{name}` of {labels[id(tensor)]}": value
            for optimizer in optimizers
            for tensor, state in optimizer.state.items()
            for name, value in state.items()
            if id(tensor) in labels and isinstance(value, torch.Tensor)
        }
        return {**now, **left, **kept}

    return StateReader({place.label: place.space[place.name] for place in places}, read)


def _modules(values: Sequence[Any], names: Mapping[int, str]) -> list[tuple[str, Any]]:
    """Return each module with its path, and modules inside others as well."""
    import torch

    outer = [value for value in values if isinstance(value, torch.nn.Module)]
    paths: dict[int, tuple[str, Any]] = {}
    for module in sorted(outer, key=lambda module: -len(list(module.modules()))):
        for path, inner in module.named_modules():
            paths.setdefault(id(inner), (".".join(filter(None, (names.get(id(module)), path))), inner))
    return list(paths.values())


def _places(modules: Sequence[tuple[str, Any]], *, trains: bool) -> Iterator[_Place]:
    import torch

    for path, module in modules:
        before = f"{path}." if path else ""
        spaces = {"the buffer": vars(module)["_buffers"]}
        if trains:
            spaces["the parameter"] = vars(module)["_parameters"]
        for what, space in spaces.items():
            yield from (_Place(space, name, f"{what} `{before}{name}`") for name in space if space[name] is not None)
        for name, value in vars(module).items():
            number = isinstance(value, (int, float)) and is_users_class(type(module)) and name != "training"
            if isinstance(value, torch.Tensor) or (number and not name.startswith("_")):
                yield _Place(vars(module), name, f"the attribute `{before}{name}`")


def _once(places: Sequence[_Place]) -> list[_Place]:
    """Return the first place of each tensor, and the places of all other values."""
    import torch

    first: dict[Any, _Place] = {}
    for place in places:
        value = place.space[place.name]
        first.setdefault(id(value) if isinstance(value, torch.Tensor) else (id(place.space), place.name), place)
    return list(first.values())
