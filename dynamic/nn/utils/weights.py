"""Weights that are computed from other parameters, before each call or when read: by length, or by spectral norm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.nn import draws
from dynamic.nn.containers import ModuleDict
from dynamic.nn.module import Module
from dynamic.nn.parameter import Parameter
from dynamic.tensor import wrap
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
        module.register_buffer(f"{name}_{letter}", wrap(start / max(float(np.linalg.norm(start)), eps)))
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


# Parametrizations: a weight is computed whenever it is read -----------------------------------------------------------


class ParametrizationList(Module):
    """The parameters that a weight is computed from, and the modules that compute it, one after another."""

    def __init__(self, modules: list[Any], original: Any) -> None:
        super().__init__()
        self._count = 0
        for parametrization in modules:
            self.append(parametrization)
        sources = original
        with no_grad():
            for parametrization in reversed(modules):
                sources = (
                    parametrization.right_inverse(sources) if hasattr(parametrization, "right_inverse") else sources
                )
        self.is_tensor = not isinstance(sources, (tuple, list))
        self._names = ["original"] if self.is_tensor else [f"original{i}" for i in range(len(sources))]
        for name, source in zip(self._names, [sources] if self.is_tensor else sources, strict=True):
            setattr(self, name, Parameter(source.detach(), original.requires_grad))

    def append(self, parametrization: Any) -> None:
        """Add a module behind the others."""
        self.add_module(str(self._count), parametrization)
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        return getattr(self, str(range(self._count)[index]))

    def forward(self) -> Any:
        """The weight."""
        value = self[0](*[getattr(self, name) for name in self._names])
        for i in range(1, self._count):
            value = self[i](value)
        return value

    def right_inverse(self, value: Any) -> None:
        """Set the parameters so that the weight is `value`. Raises OptionError for a module without `right_inverse`."""
        with no_grad():
            for i in reversed(range(self._count)):
                if not hasattr(self[i], "right_inverse"):
                    kind = type(self[i]).__name__
                    raise OptionError(locate(f"a weight computed by {kind} is not set; define its right_inverse"))
                value = self[i].right_inverse(value)
            for name, source in zip(self._names, [value] if self.is_tensor else value, strict=True):
                getattr(self, name).copy_(source)


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a weight of a module is computed, or any."""
    held = vars(module).get("parametrizations")
    return held is not None and (len(held) > 0 if tensor_name is None else tensor_name in held)


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """The module, whose tensor is from now on what `parametrization` makes of parameters, computed when it is read.

    Raises OptionError for a name that is no parameter, and for a result of another shape, unless `unsafe`.
    """
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    if module._kinds.get(tensor_name) != "parameter":
        raise OptionError(locate(f"{type(module).__name__} has no parameter {tensor_name!r}; see named_parameters()"))
    weight = getattr(module, tensor_name)
    held = ParametrizationList([parametrization], weight)
    if not unsafe and shape_of(held()) != shape_of(weight):
        raise OptionError(locate(f"the parametrization makes {shape_of(held())} of {shape_of(weight)}; keep the shape"))
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"__module__": kind.__module__})
        module.parametrizations = ModuleDict()
    computed = property(
        lambda self: self.parametrizations[tensor_name](),
        lambda self, value: self.parametrizations[tensor_name].right_inverse(value),
    )
    setattr(type(module), tensor_name, computed)
    module.parametrizations[tensor_name] = held
    return module


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """The module with the tensor as a parameter: what is computed now, or the one that it was computed from.

    Raises OptionError where it is not computed, and where it was computed from several that shall stay.
    """
    if not is_parametrized(module, tensor_name):
        raise OptionError(locate(f"{tensor_name!r} of {type(module).__name__} is not computed; name another tensor"))
    held = module.parametrizations[tensor_name]
    if not leave_parametrized and not held.is_tensor:
        raise OptionError(locate(f"{tensor_name!r} is computed from several tensors; leave leave_parametrized out"))
    with no_grad():
        value = held() if leave_parametrized else held.original
    del module.parametrizations[tensor_name]
    delattr(type(module), tensor_name)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__mro__[1]
    module.register_parameter(tensor_name, Parameter(value.detach()))
    return module


class _WeightNorm(Module):
    def __init__(self, axes: tuple[int, ...] | None) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, g: Any, v: Any) -> Any:
        return ops.multiply(v, ops.divide(g, _length(v, self.axes)))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return _length(weight, self.axes), weight


class _SpectralNorm(Module):
    def __init__(self, weight: Any, iterations: int, along: int, eps: float) -> None:
        super().__init__()
        self.iterations, self.along, self.eps = iterations, along, eps
        for name, size in zip(("_u", "_v"), shape_of(_matrix(weight, along)), strict=True):
            start = draws.normal((int(size),), 0.0, 1.0).astype(dtype_of(weight))
            self.register_buffer(name, wrap(start / max(float(np.linalg.norm(start)), eps)))
        self._improve(weight.detach(), 15)

    def _improve(self, weight: Any, count: int) -> None:
        matrix = _matrix(weight, self.along)
        with no_grad():
            for _ in range(count):
                self._u.copy_(_unit(ops.matmul(matrix, self._v), self.eps))
                self._v.copy_(_unit(ops.matmul(ops.matrix_transpose(matrix), self._u), self.eps))

    def forward(self, weight: Any) -> Any:
        if self.training:
            self._improve(weight, self.iterations)
        u, v = self._u.clone(), self._v.clone()
        return ops.divide(weight, ops.sum(ops.multiply(u, ops.matmul(_matrix(weight, self.along), v))))

    def right_inverse(self, value: Any) -> Any:
        return value


def _norm_of_weight(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """The module, whose weight is `g * v / |v|`, of `original0` and `original1`, computed when it is read."""
    ndim = getattr(module, name).ndim
    axes = None if dim is None else tuple(i for i in range(ndim) if i != dim % ndim)
    return register_parametrization(module, name, _WeightNorm(axes), unsafe=True)


def _norm_of_spectrum(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """The module, whose weight is `original` divided by its largest singular value, computed when it is read."""
    along = dim if dim is not None else 1 if "ConvTranspose" in type(module).__name__ else 0
    weight = getattr(module, name)
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, along, eps))


PARAMETRIZE = {
    f.__name__: f for f in (ParametrizationList, is_parametrized, register_parametrization, remove_parametrizations)
}
PARAMETRIZATIONS = {"weight_norm": _norm_of_weight, "spectral_norm": _norm_of_spectrum}
