"""Can padding reach a result? A padded graph beside the unpadded one, followed element by element, without data.

Both graphs are traces of one function, the one at the padded sizes and the other at the true ones. Where they have the
same ops, each value has a partner in the other graph. Some places of the padded value are *real*: the partner has them
too. Each element is marked: *tainted* when it is real and may differ from the unpadded one, or is not real and may be
anything; *known* when it is the same number in every padded call. Padding of numbers is tainted; padding of a mask is
known to be False.

Every op has a rule that computes the marks of its results from the marks of its operands, valid for all data:

- Op by element: operands must have the same places real. A result is tainted where an operand is, unless something
  known decides: `where` on a known condition, a product with a known 0, `and` with a known False.
- Elements moved: the elements of both values are numbered, and both kernels move the numbers.
- Reductions: an element that is not real must be known to be one that the op ignores: 0 in a sum, -inf in a maximum.
- A step of a scan that the unpadded scan does not take: the state after it must be, element by element, the state
  before it, and its row is not real.
- A step of a scan that both take, a branch, a while_loop: the two bodies beside each other. Whether both take the same
  branch, or make as many iterations, must not be tainted.
- Numbers and options that are not the same at both sizes, such as the divisor of a mean, taint the results that depend
  on them.
- An op without a rule taints its results if anything of an operand is not real or tainted.

A length argument works as a mask does: an integer that is at most the true size is below every position in the padding,
so that `arange(T) < length` is known to be False there.

The proof assumes that 0 * x is 0 (padding that a function turns into NaN or infinity shows as NaN). It also assumes
that numbers which meet a mask's infinity, or its lowest number, are finite and far smaller: x added to or subtracted
from these does not change them, and no x equals them.

Read `prove_padding` first, which proves one size; then `marks`, `reductions`, `rules` and `pairing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import tree
from graphs.errors import ShapeError, locate
from graphs.ir import Graph
from graphs.spec import TensorSpec
from static.padding.marks import Mark, first, padded_argument
from static.padding.marks import padded_argument as padded_mark
from static.padding.pairing import culprit, follow
from static.passes import pipeline
from static.passes.simplification import decompose
from static.trace.tracing import trace

__all__ = ["Mark", "culprit", "first", "follow", "padded_argument"]


Bounds = tuple[str | None, ...]


def bounds(traced: Sequence[Any], names: Sequence[Names], true: Mapping[str, int]) -> Bounds:
    """Return for each array of integers the smallest true size that none of its elements exceeds, as for lengths."""
    return tuple([_bind_axis(array, axes, true) for array, axes in zip(traced, names, strict=True)])


def _bind_axis(array: Any, axes: Names, true: Mapping[str, int]) -> str | None:
    if array.dtype.kind not in "iu" or not array.size:
        return None
    largest = array.max()
    fitting = [name for name, size in true.items() if largest <= size and name not in axes]
    return min(fitting, key=lambda name: true[name], default=None)


def prove_padding(padded: Graph, unpadded: Graph, call: Specialisation, at_most: Bounds, crop: Cropping) -> None:
    """Raise ShapeError unless the cropped padded result equals the unpadded one for any content of the padding."""
    graph, true = (pipeline.apply(decompose, version) for version in (padded, unpadded))
    marks = []
    for node, other, bound in zip(graph.inputs, true.inputs, at_most, strict=True):
        upper = None if bound is None else float(call.true[bound])
        marks.append(padded_mark(node.spec.shape, node.spec.dtype, other.spec.shape)._replace(upper=upper))
    refused = f"{graph.name}: padding {dict(call.true)} to {dict(call.padded)} may change the result: "
    try:
        followed = follow(graph, true, marks)
    except ShapeError as error:
        raise ShapeError(f"{refused}{error}; use graphs.scan for it, or shapes='exact'") from None
    for output, mark, axes in zip(graph.outputs, followed.outputs, crop.axes, strict=True):
        kept = true_shape(mark.taint.shape, axes, call)
        if mark.wrong.any() or not all(map(np.array_equal, mark.real, first(mark.taint.shape, kept))):
            node = culprit(followed, output)
            rule = f"{refused}what stands in the padding, or how much there is, reaches it by {node.op.name}"
            remedy = "mask it with graphs.where and a bool or length argument, or use shapes='exact'"
            raise ShapeError(locate(f"{rule}; {remedy}", node.source))


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
            wider = [_widen_axis(spec, axes, name) for spec, axes in zip(call.specs, names, strict=True)]
            for axes, before, output in zip(cropped, base, trace(f, *arguments(wider)).outputs, strict=True):
                _mark(axes, name, before, output.spec.shape)
        return cls(tuple(tuple(axes) for axes in cropped))

    def __call__(self, result: Any, call: Specialisation) -> Any:
        """Return the result with every followed axis cut to its true size."""
        leaves, structure = tree.flatten(result)
        cut = [
            leaf[tuple(map(slice, true_shape(leaf.shape, axes, call)))] if any(axes) else leaf
            for leaf, axes in zip(leaves, self.axes, strict=True)
        ]
        return tree.unflatten(structure, cut)


def true_shape(shape: Sequence[int], axes: Names, call: Specialisation) -> list[int]:
    """Return a shape less its padding; an axis that follows a size may be some elements longer or shorter than it."""
    return [
        size - (call.padded[name] - call.true[name]) if name else size for size, name in zip(shape, axes, strict=True)
    ]


def _widen_axis(spec: TensorSpec, names: Names, name: str) -> TensorSpec:
    return TensorSpec([s + (n == name) for s, n in zip(spec.shape, names, strict=True)], spec.dtype)


def _mark(axes: list[str | None], name: str, before: Sequence[Any], after: Sequence[Any]) -> None:
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if new == old + 1:
            axes[axis] = name
        elif new != old:
            raise ShapeError(f"an output's size goes from {old} to {new} when {name} grows by 1; it cannot be cropped")


Names = tuple[str | None, ...]
"""The name of each axis of an array, None where it has none."""


class Specialisation(NamedTuple):
    """The specs that a call is compiled for, one for each traced leaf, and the named sizes before and after padding."""

    specs: list[TensorSpec]
    true: Mapping[str, int]
    padded: Mapping[str, int]
