"""Weights that are computed from other parameters before each call: by their length, or by spectral norm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.nn import draws
from dynamic.nn.module import Module
from dynamic.nn.parameter import Parameter
from dynamic.tensor import Tensor
from graphs import ops
from graphs.errors import OptionError, locate
from graphs.ops.shapes import dtype_of, shape_of

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _ComputedWeight(NamedTuple):
    """One computed weight, and the hook that computes it."""

    kind: str
    compute: Callable[[Module], Any]
    sources: tuple[str, ...]
    hook: Any


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """The module, whose weight is from now on `g * v / |v|`, of parameters `{name}_g` and `{name}_v`.

    The norm is that of each slice along `dim`, or of all where it is None (Salimans and Kingma, 2016). Raises
    AttributeError where there is no such weight, and OptionError where it is computed already.
    """
    weight = _take_weight(module, name)
    axes = None if dim is None else tuple(i for i in range(weight.ndim) if i != dim % weight.ndim)
    module.register_parameter(f"{name}_g", Parameter(_length(weight.detach(), axes)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    compute = partial(_of_length, name, axes)
    return _compute_before_calls(module, name, "weight_norm", compute, (f"{name}_g", f"{name}_v"))


def _of_length(name: str, axes: tuple[int, ...] | None, module: Module) -> Any:
    """The parameter `{name}_v` scaled to the norm `{name}_g`."""
    g, v = getattr(module, f"{name}_g"), getattr(module, f"{name}_v")
    return ops.multiply(v, ops.divide(g, _length(v, axes)))


def _length(v: Any, axes: tuple[int, ...] | None) -> Any:
    return ops.sqrt(ops.sum(ops.square(v), axis=axes, keepdims=axes is not None))


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """The module with the weight as a parameter again. Raises OptionError where weight_norm has not computed it."""
    return _remove_computation(module, name, "weight_norm")


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """The module, whose weight is from now on the parameter `{name}_orig` divided by its largest singular value.

    That value is estimated from the buffers `{name}_u` and `{name}_v`, which each call in training improves by power
    iterations (Miyato, Kataoka, Koyama and Yoshida, 2018). The weight counts as a matrix whose rows lie along `dim`:
    1 for transposed convolutions, else 0. Raises OptionError for less than one iteration.
    """
    if n_power_iterations < 1:
        raise OptionError(locate(f"spectral_norm: there are 1 iterations or more, not {n_power_iterations}"))
    weight = _take_weight(module, name)
    along = dim if dim is not None else 1 if "ConvTranspose" in type(module).__name__ else 0
    rows, columns = shape_of(_matrix(weight, along))
    for letter, size in (("u", rows), ("v", columns)):
        start = draws.normal((int(size),), 0.0, 1.0).astype(dtype_of(weight))
        module.register_buffer(f"{name}_{letter}", Tensor(start / max(float(np.linalg.norm(start)), eps)))
    module.register_parameter(f"{name}_orig", Parameter(weight.detach()))
    compute = partial(_of_singular_value, name, along, n_power_iterations, eps)
    return _compute_before_calls(module, name, "spectral_norm", compute, (f"{name}_orig", f"{name}_u", f"{name}_v"))


def _of_singular_value(name: str, along: int, iterations: int, eps: float, module: Module) -> Any:
    """The parameter `{name}_orig` with the largest singular value 1."""
    u, v = getattr(module, f"{name}_u"), getattr(module, f"{name}_v")
    weight = getattr(module, f"{name}_orig")
    matrix = _matrix(weight, along)
    if module.training:
        with no_grad():
            for _ in range(iterations):
                v.copy_(_unit(ops.matmul(ops.matrix_transpose(matrix), u), eps))
                u.copy_(_unit(ops.matmul(matrix, v), eps))
        u, v = u.clone(), v.clone()  # the next call changes the buffers before this one's backward may have run
    return ops.divide(weight, ops.sum(ops.multiply(u, ops.matmul(matrix, v))))


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """The module with the divided weight as a parameter. Raises OptionError where spectral_norm has not computed it."""
    return _remove_computation(module, name, "spectral_norm")


def _matrix(weight: Any, along: int) -> Any:
    front = ops.moveaxis(weight, along, 0)
    return ops.reshape(front, (shape_of(front)[0], -1))


def _unit(vector: Any, eps: float) -> Any:
    return ops.divide(vector, ops.maximum(ops.sqrt(ops.sum(ops.square(vector))), eps))


def _take_weight(module: Module, name: str) -> Any:
    """Remove the weight from the module's parameters, and return it."""
    if name in vars(module).get("_weights", {}):
        raise OptionError(locate(f"{name!r} of {type(module).__name__} is computed already; remove that norm first"))
    weight = getattr(module, name)
    delattr(module, name)
    return weight


def _compute_before_calls(
    module: Module, name: str, kind: str, compute: Callable[[Module], Any], sources: tuple[str, ...]
) -> Module:
    computed_weights = dict(vars(module).get("_weights", {}))
    hook = module.register_forward_pre_hook(partial(_pre_hook, name, compute))
    computed_weights[name] = _ComputedWeight(kind, compute, sources, hook)
    module._weights = computed_weights
    with no_grad():
        setattr(module, name, compute(module) if kind == "weight_norm" else getattr(module, sources[0]).detach())
    return module


def _pre_hook(name: str, compute: Callable[[Module], Any], module: Module, _: Any) -> None:
    setattr(module, name, compute(module))


def _remove_computation(module: Module, name: str, kind: str) -> Module:
    computed_weights = dict(vars(module).get("_weights", {}))
    if name not in computed_weights or computed_weights[name].kind != kind:
        raise OptionError(locate(f"{kind} does not compute {name!r} of {type(module).__name__}; name another weight"))
    computed = computed_weights.pop(name)
    computed.hook.remove()
    was_training = module.training
    with no_grad():
        weight = computed.compute(module.eval())
    module.train(was_training)
    for source in (*computed.sources, name):
        delattr(module, source)
    module._weights = computed_weights
    module.register_parameter(name, Parameter(weight))
    return module
