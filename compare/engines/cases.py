"""Forms of a case that engines take: one example alone, or every example with its mask, padded to the longest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import static
from compare.errors import UnsupportedError
from compare.workloads.base import Case, Dims, Example
from graphs import tree
from static.call.policies import axis_names, named_sizes, pad_axes
from static.trace.tracing import static_key


def alone(case: Case) -> Case:
    """Return the case with its example of median length only, and with one loss for all modes.

    Modes then differ in the graph mode only: no shape varies, and no function is rewritten for one engine.
    """
    middle = median_length(case.lengths)
    loss = case.static_loss or case.loss
    return replace(
        case, loss=loss, static_loss=None, examples=(case.examples[middle],), lengths=(case.lengths[middle],)
    )


def median_length(lengths: Sequence[int]) -> int:
    """Return the index of the example with the median length."""
    return sorted(range(len(lengths)), key=lengths.__getitem__)[len(lengths) // 2]


def traceable_loss(case: Case) -> Callable[..., Any]:
    """Return the loss for a fixed graph: the one rewritten without branches on values, or else the loss converted."""
    return case.static_loss or convert_loss(case.loss, case)


def convert_loss(loss: Callable[..., Any], case: Case) -> Callable[..., Any]:
    """Return a loss of the case, with its control flow converted where the case branches on values."""
    return static.converted(loss) if case.branches else loss


def signature(example: Example) -> Hashable:
    """Return the key that an engine specialises on: structure, shapes and dtypes of arrays, and all other values."""
    leaves, structure = tree.flatten(example)
    return structure, tuple((x.shape, str(x.dtype)) if hasattr(x, "dtype") else static_key(x) for x in leaves)


def masked_dims(case: Case) -> Dims:
    """Return the dims of `(params, *example, mask)`; the mask has the axis that varies. Raises UnsupportedError."""
    if case.dims is None:
        raise UnsupportedError("padding needs to know which axes vary; give the case its dims")
    return (*case.dims, (names(case.dims)[0],))


def names(dims: Dims) -> list[str]:
    """Return the names of the axes that vary, each as often as it occurs."""
    return [name for axes in dims if isinstance(axes, tuple) for name in axes if isinstance(name, str)]


def longest(case: Case) -> tuple[Example, ...]:
    """Return every example with its mask, padded to the longest."""
    dims = masked_dims(case)[1:]
    masked = [case.masked_example(index) for index in range(len(case.examples))]
    axes = axis_names(dims, masked[0])
    sizes = [named_sizes(tree.leaves(example), axes) for example in masked]
    largest = {name: max(size[name] for size in sizes) for name in sizes[0]}

    def pad(example: Example) -> Example:
        leaves, structure = tree.flatten(example)
        wide = [pad_axes(leaf, named, largest) for leaf, named in zip(leaves, axes, strict=True)]
        result: Example = tree.unflatten(structure, wide)
        return result

    return tuple(map(pad, masked))
