"""What symbolic sizes become when a program is bound to numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from graphs import dims
from graphs.dims import Dim
from graphs.ir import Graph
from graphs.spec import TensorSpec

Runs = Mapping[Graph, Callable[..., Any]]


def resolve(value: Any, sizes: Mapping[str, int], runs: Runs = MappingProxyType({})) -> Any:
    """An attribute with every symbolic size in it replaced by its number, and every graph by what runs it."""
    if isinstance(value, Dim):
        return dims.evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(resolve(v, sizes, runs) for v in value)
    if isinstance(value, slice):
        return slice(*(resolve(v, sizes) for v in (value.start, value.stop, value.step)))
    if isinstance(value, TensorSpec):
        return TensorSpec([dims.evaluate(size, sizes) for size in value.shape], value.dtype)
    if isinstance(value, Graph):
        return runs[value]
    return value
