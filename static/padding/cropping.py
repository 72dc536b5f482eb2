"""Cropping: which axes of a result follow a padded size, and the result cut to the true sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphs import tree
from graphs.errors import ShapeError
from graphs.spec import TensorSpec
from static.padding.specialisation import Names, Specialisation
from static.trace.tracing import trace

Arguments = Callable[[Sequence[Any]], list[Any]]


class Cropping(NamedTuple):
    """For each output leaf, the name of the padded size that each axis follows, or None."""

    axes: tuple[Names, ...]

    @classmethod
    def of(cls, f: Callable[..., Any], arguments: Arguments, call: Specialisation, names: Sequence[Names]) -> Cropping:
        """Find the axes by tracing with each padded size one larger, and seeing which outputs grow.

        Raises ShapeError when an output's size follows a padded size otherwise than one to one.
        """
        base = [o.spec.shape for o in trace(f, *arguments(call.specs)).outputs]
        cropped: list[list[str | None]] = [[None] * len(shape) for shape in base]
        for name in call.padded:
            wider = [_widened(spec, axes, name) for spec, axes in zip(call.specs, names, strict=True)]
            for axes, before, output in zip(cropped, base, trace(f, *arguments(wider)).outputs, strict=True):
                _mark(axes, name, before, output.spec.shape)
        return cls(tuple(tuple(axes) for axes in cropped))

    def __call__(self, result: Any, call: Specialisation) -> Any:
        """The result with every followed axis cut to its true size."""
        leaves, structure = tree.flatten(result)
        cut = [
            leaf[tuple(map(slice, true_shape(leaf.shape, axes, call)))] if any(axes) else leaf
            for leaf, axes in zip(leaves, self.axes, strict=True)
        ]
        return tree.unflatten(structure, cut)


def true_shape(shape: Sequence[int], axes: Names, call: Specialisation) -> list[int]:
    """A shape less what was padded: an axis that follows a size may be longer or shorter by some elements than that."""
    return [
        size - (call.padded[name] - call.true[name]) if name else size for size, name in zip(shape, axes, strict=True)
    ]


def _widened(spec: TensorSpec, names: Names, name: str) -> TensorSpec:
    return TensorSpec([s + (n == name) for s, n in zip(spec.shape, names, strict=True)], spec.dtype)


def _mark(axes: list[str | None], name: str, before: Sequence[Any], after: Sequence[Any]) -> None:
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if new == old + 1:
            axes[axis] = name
        elif new != old:
            raise ShapeError(f"an output's size goes from {old} to {new} when {name} grows by 1; it cannot be cropped")
