"""Padding that cannot be seen in the result: a proof for each size, by the marks in `static/padding/marks.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphs.errors import ShapeError, located
from graphs.ir import Graph
from static.padding.cropping import Cropping, true_shape
from static.padding.follow import culprit, follow
from static.padding.marks import first
from static.padding.marks import padded as padded_mark
from static.padding.specialisation import Names, Specialisation
from static.passes import pipeline
from static.passes.decompose import decompose

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


def prove_padding(padded: Graph, unpadded: Graph, call: Specialisation, at_most: Bounds, crop: Cropping) -> None:
    """Raise ShapeError unless the cropped result of one trace is that of the other, whatever is in the padding."""
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
            raise ShapeError(located(f"{rule}; {remedy}", node.source))
