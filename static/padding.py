"""Padding that cannot be seen in the result: cropped outputs, a comparison, and a proof.

How many elements there are may change a result (a mean counts them): the first padded call is compared with the
unpadded function. What stands in them may too: that it reaches no result is proved for each size (`static/taint.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import tree
from graphs.errors import ShapeError, located
from graphs.spec import TensorSpec
from static import taint
from static.compile import compile
from static.executable import Executable
from static.passes import pipeline
from static.passes.decompose import decompose
from static.shapes import Names, Specialised, pad_axes
from static.trace import trace

Arguments = Callable[[Sequence[Any]], list[Any]]


class Cropping(NamedTuple):
    """For each output leaf, the name of the padded size that each axis follows, or None."""

    axes: tuple[Names, ...]

    @classmethod
    def of(cls, f: Callable[..., Any], arguments: Arguments, call: Specialised, names: Sequence[Names]) -> Cropping:
        """Find the axes by tracing with each padded size one larger, and seeing which outputs grow.

        Raises ShapeError when an output's size follows a padded size otherwise than one to one.
        """
        base = [o.spec.shape for o in trace(f, *arguments(call.specs)).outputs]
        found: list[list[str | None]] = [[None] * len(shape) for shape in base]
        for name in call.padded:
            wider = [_widened(spec, axes, name) for spec, axes in zip(call.specs, names, strict=True)]
            for axes, before, output in zip(found, base, trace(f, *arguments(wider)).outputs, strict=True):
                _mark(axes, name, before, output.spec.shape)
        return cls(tuple(tuple(axes) for axes in found))

    def __call__(self, result: Any, true: Mapping[str, int]) -> Any:
        """The result with every followed axis cut to its true size."""
        leaves, structure = tree.flatten(result)
        cut = [
            leaf[tuple(slice(true[n]) if n else slice(None) for n in axes)] if any(axes) else leaf
            for leaf, axes in zip(leaves, self.axes, strict=True)
        ]
        return tree.unflatten(structure, cut)


def _widened(spec: TensorSpec, names: Names, name: str) -> TensorSpec:
    return TensorSpec([s + (n == name) for s, n in zip(spec.shape, names, strict=True)], spec.dtype)


def _mark(axes: list[str | None], name: str, before: Sequence[Any], after: Sequence[Any]) -> None:
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if new == old + 1:
            axes[axis] = name
        elif new != old:
            raise ShapeError(f"an output's size goes from {old} to {new} when {name} grows by 1; it cannot be cropped")


def check_padding(
    f: Callable[..., Any], executable: Executable, arguments: Arguments, call: Specialised, traced: Sequence[Any],
    names: Sequence[Names], padded_result: Any, crop: Cropping,
) -> None:  # fmt: skip
    """Raise ShapeError unless the padded result is the unpadded one, whatever stands in the padding.

    A function must mask what is padded: with a bool argument (padded with False), or with a length.
    """
    unpadded = compile(f, *arguments(traced))(*arguments(traced))
    other = [pad_axes(a, axes, call.padded, _other_fill(a)) for a, axes in zip(traced, names, strict=True)]
    refilled = crop(executable(*arguments(other)), call.true)
    for leaf, *others in zip(*map(tree.leaves, (unpadded, padded_result, refilled)), strict=True):
        if not all(_close(leaf, o) for o in others):
            raise ShapeError(
                f"{executable.graph.name}: padding {dict(call.true)} to {dict(call.padded)} changes the result; "
                "mask the padding with a bool argument over the padded axis, or use shapes='exact'"
            )


Bounds = tuple[str | None, ...]


def bounds(traced: Sequence[Any], names: Sequence[Names], true: Mapping[str, int]) -> Bounds:
    """For each argument of integers the smallest true size that none of them is above, as a length would be."""
    return tuple([_bound(array, axes, true) for array, axes in zip(traced, names, strict=True)])


def _bound(array: Any, axes: Names, true: Mapping[str, int]) -> str | None:
    if array.dtype.kind not in "iu" or not array.size:
        return None
    largest = array.max()
    fitting = [name for name, size in true.items() if largest <= size and name not in axes]
    return min(fitting, key=lambda name: true[name], default=None)


def prove_padding(
    executable: Executable, call: Specialised, names: Sequence[Names], at_most: Bounds, crop: Cropping
) -> None:
    """Raise ShapeError unless nothing that may stand in the padding of these sizes can reach a result."""
    graph = pipeline.apply(decompose, executable.traced.graph)
    marks = []
    for spec, axes, bound in zip(call.specs, names, at_most, strict=True):
        true = [size if name is None else call.true[name] for name, size in zip(axes, spec.shape, strict=True)]
        upper = None if bound is None else float(call.true[bound])
        marks.append(taint.padded(spec.shape, spec.dtype, true)._replace(upper=upper))
    found = taint.follow(graph, marks)
    for output, axes in zip(graph.outputs, crop.axes, strict=True):
        mark = found[output].at(tuple(slice(call.true[name]) if name else slice(None) for name in axes))
        if (mark.taint | mark.extra).any():
            node = taint.culprit(graph, found, output)
            rule = (
                f"padding {dict(call.true)} to {dict(call.padded)} may change the result: what stands in the padding "
                f"reaches it by {node.op.name}"
            )
            remedy = "mask it with graphs.where and a bool or length argument, or use shapes='exact'"
            raise ShapeError(located(f"{graph.name}: {rule}; {remedy}", node.source))


def _other_fill(array: Any) -> float:
    """A value, valid for this array, that is not what it is padded with."""
    return float(array.max()) if array.size and array.dtype.kind in "iu" else 1.0


def _close(a: Any, b: Any) -> bool:
    kind = np.asarray(a).dtype
    tolerance = 100 * np.finfo(kind).eps if kind.kind == "f" else 0
    scale = np.max(np.abs(a), initial=0) if kind.kind == "f" else 0
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * (1 + scale), equal_nan=True))
