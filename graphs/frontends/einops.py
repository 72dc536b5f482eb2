"""einops on tensors of the dynamic engine and on symbols of a trace: a backend, which einops finds among its own.

einops looks for a subclass of its `AbstractBackend` that knows a tensor. That class is here made as soon as einops is
imported, and einops is never imported from here. `einops.layers.dynamic` has its layers as modules of `dynamic.nn`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from graphs import ops
from graphs.dispatch import interpreters


def _add_backend(einops: Any) -> None:
    """Define the backend, beside those of the module `einops._backends`."""

    class ValueBackend(einops.AbstractBackend):  # type: ignore[misc]  # whose types are not known
        """The ops of einops on values of both engines."""

        framework_name = "graphs"
        reshape, transpose, arange = map(staticmethod, (ops.reshape, ops.permute_dims, ops.arange))
        to_numpy = staticmethod(_values)

        def is_appropriate_type(self, tensor: Any) -> bool:
            """Whether it is a tensor or a symbol."""
            return type(tensor) in interpreters

        def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
            """A reduction over axes."""
            return getattr(ops, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            """The tensors along a new first axis."""
            return ops.stack(tensors, axis=0)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, Any]) -> Any:
            """New axes of these sizes, along which the values repeat."""
            for place in pos2len:
                x = ops.expand_dims(x, axis=place)
            return ops.broadcast_to(x, tuple([pos2len.get(i, x.shape[i]) for i in range(n_axes)]))

        def concat(self, tensors: list[Any], axis: int) -> Any:
            """The tensors along an axis."""
            return ops.concat(tensors, axis=axis)

        def is_float_type(self, x: Any) -> bool:
            """Whether the elements have a mean."""
            return bool(x.dtype.kind in "fc")

        def einsum(self, pattern: str, *tensors: Any) -> Any:
            """Sums of products."""
            return ops.einsum(pattern, *tensors)

    einops.ValueBackend = ValueBackend  # Python forgets a subclass that nothing holds


def _values(x: Any) -> Any:
    return x.detach().numpy()


def _add_layers(module: Any) -> None:
    """Give the module `einops.layers.dynamic` the layers of einops."""
    layers, nn, torch = map(import_module, ("einops.layers", "dynamic.nn", "dynamic"))
    mix = import_module("einops.layers._einmix")

    class Rearrange(layers.RearrangeMixin, nn.Module):  # type: ignore[misc,name-defined]
        """`einops.rearrange` as a layer."""

        def forward(self, input: Any) -> Any:
            """The tensor in its new form."""
            return self._apply_recipe(input)

    class Reduce(layers.ReduceMixin, nn.Module):  # type: ignore[misc,name-defined]
        """`einops.reduce` as a layer."""

        def forward(self, input: Any) -> Any:
            """The reduced tensor."""
            return self._apply_recipe(input)

    class EinMix(mix._EinmixMixin, nn.Module):  # type: ignore[misc,name-defined]
        """A linear layer over the axes that its pattern names."""

        def _create_parameters(
            self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float
        ) -> None:
            self.weight = nn.Parameter(torch.zeros(weight_shape).uniform_(-weight_bound, weight_bound))
            bias = None if bias_shape is None else torch.zeros(bias_shape).uniform_(-bias_bound, bias_bound)
            self.bias = bias if bias is None else nn.Parameter(bias)

        def _create_rearrange_layers(self, before: Any, before_sizes: Any, after: Any, after_sizes: Any) -> None:
            self.before = None if before is None else Rearrange(before, **before_sizes)
            self.after = None if after is None else Rearrange(after, **after_sizes)

        def forward(self, input: Any) -> Any:
            """The products, summed as the pattern says."""
            result = torch.einsum(
                self.einsum_pattern, input if self.before is None else self.before(input), self.weight
            )
            result = result if self.bias is None else result + self.bias
            return result if self.after is None else self.after(result)

    for layer in (Rearrange, Reduce, EinMix):
        layer.__module__, layer.__qualname__ = module.__name__, layer.__name__  # where `pickle` looks for it
        setattr(module, layer.__name__, layer)


_ADDITIONS: dict[str, Callable[[ModuleType], None]] = {
    "einops._backends": _add_backend,
    "einops.layers.dynamic": _add_layers,
}


class _Finder:
    """Finds these modules of einops as Python does, or makes an empty one, and lets what is here be added to them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _ADDITIONS:
            return None
        spec = PathFinder.find_spec(name, path) or ModuleSpec(name, None)
        spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as its own loader does."""
        return None if self._own is None else self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and add to it."""
        if self._own is not None:
            self._own.exec_module(module)
        _ADDITIONS[module.__name__](module)


def install() -> None:
    """Meet einops when it is imported, or now where it has been."""
    if "einops._backends" in sys.modules:
        _add_backend(sys.modules["einops._backends"])
    sys.meta_path.insert(0, _Finder)  # before Python's own, which would find the module alone


install()
