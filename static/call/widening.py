"""One graph for all sizes, used once more sizes came than are kept, and only where it is proved to be right.

A trace refuses Python that asks for a decision by a symbolic size, but not all Python that looks at a size:
`sizes.get(n)` finds no symbol. So the graph for all sizes serves a size only if it is, node by node, the graph that the
function leaves when it is traced for that size. A trace takes a small part of the time of a compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphs.dims import Dim, evaluate, solve
from graphs.errors import GraphError
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec, TupleSpec
from static.call.policies import Symbolic
from static.padding.proof import Names, Specialisation
from static.trace.tracing import TracedFunction, trace_function

OTHERS = 8  # sizes for which the graph is found to be another, before it is given up


@dataclass
class _Kind:
    """Facts about arguments that differ in sizes alone: `refusal` is why no graph serves all of them.

    `others` counts the sizes for which the graph was found to be another.
    """

    policy: Symbolic = field(default_factory=Symbolic)
    others: int = 0
    refusal: str = ""


class Widening:
    """Decides which calls of a function can share one graph."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self._f = f
        self._kinds: dict[Hashable, _Kind] = {}
        self._wide: dict[Hashable, TracedFunction] = {}
        self.refusal = ""  # why the arguments that came last have none

    def specialise(
        self,
        kind: Hashable,
        arrays: Sequence[Any],
        names: Sequence[Names],
        filled: Callable[[Any], list[Any]],
        full: bool,
    ) -> Specialisation | None:
        """Return the symbolic specs for these arrays; None below the limit, and where no graph serves all sizes.

        `filled` makes arguments from specs.
        """
        history = self._kinds.setdefault(kind, _Kind())
        wide = history.policy(arrays, [(None,) * len(axes) for axes in names])
        self.refusal = history.refusal
        if not full or history.refusal or not any(spec.symbols for spec in wide.specs):
            return None
        if self._is_proved(history, kind, wide.specs, arrays, filled):
            return wide
        self.refusal = history.refusal
        return None

    def _is_proved(
        self,
        history: _Kind,
        kind: Hashable,
        specs: list[TensorSpec],
        arrays: Sequence[Any],
        filled: Callable[[Any], list[Any]],
    ) -> bool:
        """Whether the graph of the symbolic specs, at the sizes of these arrays, is the graph traced for them."""
        key = kind, tuple([spec.shape for spec in specs])
        try:
            if key not in self._wide:
                self._wide[key] = trace_function(self._f, filled(specs))
        except Exception as error:  # noqa: BLE001  (whatever the user's function makes of a symbol)
            history.refusal = str(error).partition(";")[0]
            return False
        exact = trace_function(self._f, filled([TensorSpec(a.shape, a.dtype) for a in arrays]), general=True)
        sizes = solve([("", spec.shape) for spec in specs], [a.shape for a in arrays])
        same = is_same(self._wide[key], exact, sizes)
        history.others += not same
        history.refusal = "its ops differ from size to size" if history.others > OTHERS else ""
        return same


def is_same(wide: TracedFunction, exact: TracedFunction, sizes: Mapping[str, int]) -> bool:
    """Whether a graph with symbols, at these sizes, is the same as another one, node by node."""
    laid_out = wide.outputs == exact.outputs and [*map(id, wide.reads)] == [*map(id, exact.reads)]
    try:
        return laid_out and _same_graphs(wide.graph, exact.graph, sizes)
    except GraphError:  # two sizes that cannot be compared
        return False


def _alike(wide: Any, exact: Any, sizes: Mapping[str, int]) -> bool:
    """Whether two attribute values are the same at these sizes."""
    if isinstance(wide, Dim):
        return np.ndim(exact) == 0 and bool(evaluate(wide, sizes) == exact)
    if type(wide) is not type(exact):
        return False
    compare = _COMPARED.get(type(wide))
    if compare is not None:
        return compare(wide, exact, sizes)
    return bool(wide == exact or (wide != wide and exact != exact))


def _same_items(wide: Sequence[Any], exact: Sequence[Any], sizes: Mapping[str, int]) -> bool:
    return len(wide) == len(exact) and all(_alike(a, b, sizes) for a, b in zip(wide, exact, strict=True))


def _same_specs(wide: TensorSpec, exact: TensorSpec, sizes: Mapping[str, int]) -> bool:
    return wide.dtype == exact.dtype and _same_items(wide.shape, exact.shape, sizes)


def _same_tuples(wide: TupleSpec, exact: TupleSpec, sizes: Mapping[str, int]) -> bool:
    return _same_items(wide.items, exact.items, sizes)


def _same_arrays(wide: np.ndarray[Any, Any], exact: np.ndarray[Any, Any], _: Mapping[str, int]) -> bool:
    floating = wide.dtype.kind == "f"
    return wide.dtype == exact.dtype and np.array_equal(wide, exact, equal_nan=floating)


def _same_slices(wide: slice, exact: slice, sizes: Mapping[str, int]) -> bool:
    return _same_items((wide.start, wide.stop, wide.step), (exact.start, exact.stop, exact.step), sizes)


def _same_graphs(wide: Graph, exact: Graph, sizes: Mapping[str, int]) -> bool:
    if len(wide) != len(exact):
        return False
    numbers = ({node: i for i, node in enumerate(graph.nodes)} for graph in (wide, exact))
    rows = [_rows(graph, number) for graph, number in zip((wide, exact), numbers, strict=True)]
    return all(_same_nodes(a, b, sizes) for a, b in zip(*rows, strict=True))


def _rows(graph: Graph, number: Mapping[Node, int]) -> Iterator[tuple[Node | None, list[int]]]:
    """Yield each node with the indices of its inputs, and at the end the indices of the graph's inputs and outputs."""
    for node in graph.nodes:
        yield node, [number[source] for source in node.inputs]
    yield None, [number[node] for node in (*graph.inputs, *graph.outputs)]


def _same_nodes(wide: Any, exact: Any, sizes: Mapping[str, int]) -> bool:
    (node, places), (other, others) = wide, exact
    if places != others or node is None or other is None:
        return places == others and node is other
    if node.op is not other.op or not _alike(node.spec, other.spec, sizes):
        return False
    skipped = {"spec"} if node.is_source and not node.is_constant else set()
    keys = node.attrs.keys() - skipped
    return keys == other.attrs.keys() - skipped and all(_alike(node.attrs[k], other.attrs[k], sizes) for k in keys)


_COMPARED: dict[type, Callable[..., bool]] = {
    Graph: _same_graphs,
    list: _same_items,
    np.ndarray: _same_arrays,
    slice: _same_slices,
    TensorSpec: _same_specs,
    TupleSpec: _same_tuples,
    tuple: _same_items,
}
