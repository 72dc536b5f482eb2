"""Shape policies: which sizes a jitted function compiles for, and what it does to arrays of other sizes.

auto       exact up to the limit of kept executables, then one graph for all sizes where that is proved
exact      compiled for the sizes of each call; every new combination is compiled
symbolic   one graph for every value of the named sizes (or of the sizes that were seen to change)
bucket     named axes padded to the next boundary: powers of two, or given ones
pad        named axes padded to the largest size: a given one, or the largest so far

`Widening` is the one graph for all sizes, used once more sizes came than are kept, and only where it is proved to be
right. A trace refuses Python that asks for a decision by a symbolic size, but not all Python that looks at a size:
`sizes.get(n)` finds no symbol. So the graph for all sizes serves a size only if it is, node by node, the graph that the
function leaves when it is traced for that size. A trace takes a small part of the time of a compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from graphs import tree
from graphs.dims import Dim, evaluate, solve
from graphs.errors import GraphError, ShapeError, locate
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec, TupleSpec
from static.padding import Names, Specialisation
from static.trace.tracing import TracedFunction, is_traced, trace_function


class Policy(Protocol):
    """Chooses the specs to compile for and the padding: equal for equal sizes as long as `version` stays."""

    @property
    def version(self) -> int:
        """How often the policy has learnt something new."""
        ...

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialisation:
        """Return the specs for one call; `names` gives the name of each axis of each array, None where it has none."""
        ...


class Exact:
    """Compile for the sizes as they are."""

    version = 0

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialisation:  # noqa: ARG002  (a Policy)
        """Return the specs of the arrays, without padding."""
        return Specialisation([TensorSpec(a.shape, a.dtype) for a in arrays], {}, {})


class Symbolic:
    """Compile once for every value of the symbolic sizes.

    Named axes are symbolic from the start. Without names an axis becomes symbolic when it is first seen to change,
    except for the size 1, which broadcasts and so is always a number. Axes share a symbol as long as they have had
    the same size in every call.
    """

    def __init__(self) -> None:
        self._seen: dict[Any, _Axes] = {}

    @property
    def version(self) -> int:
        """How often a call has shown something new about the axes."""
        return sum(axes.changes for axes in self._seen.values())

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialisation:
        """Return the specs of the arrays, with symbols for the sizes that vary."""
        if not any(name for axes in names for name in axes):
            kind = tuple((a.ndim, a.dtype) for a in arrays)
            names = self._seen.setdefault(kind, _Axes()).names([a.shape for a in arrays])
        specs = [
            TensorSpec([name or size for name, size in zip(axes, a.shape, strict=True)], a.dtype)
            for a, axes in zip(arrays, names, strict=True)
        ]
        return Specialisation(specs, {}, {})


class _Axes:
    """The axes of arrays of one kind, numbered in order, with the sizes that the calls so far have shown.

    Axes that have had the same size in every call, apart from 1, form a group.
    """

    def __init__(self) -> None:
        self._group: dict[int, int] = {}  # the group of each axis
        self._first: list[int] = []  # the size that each group had first
        self._varies: set[int] = set()  # groups whose size has changed
        self.changes = 0

    def names(self, shapes: Sequence[tuple[int, ...]]) -> list[Names]:
        """Record the sizes of one call; return the symbol of each axis, None for an axis with a number."""
        sizes = [size for shape in shapes for size in shape]
        before = self._group.copy(), self._varies.copy()
        self._learn(sizes)
        self.changes += before != (self._group, self._varies)
        groups = [None if size == 1 else self._group[axis] for axis, size in enumerate(sizes)]
        rest = iter([f"d{group}" if group in self._varies else None for group in groups])
        return [tuple([next(rest) for _ in shape]) for shape in shapes]

    def _learn(self, sizes: Sequence[int]) -> None:
        """Split the groups whose axes differ in this call; an axis that is new joins a group of its size."""
        varied = frozenset(self._varies)
        parts: dict[int, dict[int, int]] = {}  # for each old group: its new group, by size
        apart: dict[int, int] = {}  # the groups of axes seen before, by size
        for axis, size in sorted(enumerate(sizes), key=lambda pair: pair[0] not in self._group):
            if size == 1:
                continue
            before = self._group.get(axis)
            groups = apart if before is None else parts.setdefault(before, {size: before})
            if size not in groups:
                groups[size] = len(self._first)
                self._first.append(size)
            group = self._group[axis] = groups[size]
            apart.setdefault(size, group)
            if size != self._first[group] or before in varied:
                self._varies.add(group)


class AxisPadding:
    """Pad named axes at their end, up to `boundary(name, size)`.

    Numbers are padded with zeros and bools, which are masks, with False.
    """

    def __init__(self, boundary: Callable[[str, int], int]) -> None:
        self._boundary = boundary

    @property
    def version(self) -> int:
        """How often the boundaries have changed."""
        return self._boundary.changes if isinstance(self._boundary, Largest) else 0

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialisation:
        """Return the specs after padding, and the named sizes before and after."""
        true = named_sizes(arrays, names)
        padded = {name: self._boundary(name, size) for name, size in true.items()}
        specs = [TensorSpec(padded_shape(a, axes, padded), a.dtype) for a, axes in zip(arrays, names, strict=True)]
        return Specialisation(specs, true, padded)


def axis_names(dims: Sequence[Any], args: Sequence[Any]) -> list[Names]:
    """Return a name, or None, for each axis of each traced leaf. Raises ShapeError for a wrong number of names."""
    result: list[Names] = []
    for position, arg in enumerate(args):
        names = dims[position] if position < len(dims) else None
        for leaf in tree.leaves(arg):
            if is_traced(leaf):
                result.append(tuple(names) if names is not None else (None,) * np.ndim(leaf))
                if len(result[-1]) != np.ndim(leaf):
                    raise ShapeError(
                        locate(f"dims names {len(result[-1])} axes of argument {position}, which has {np.ndim(leaf)}")
                    )
    return result


def named_sizes(arrays: Sequence[Any], names: Sequence[Names]) -> dict[str, int]:
    """Return the size of each named axis. Raises ShapeError when one name has two sizes."""
    sizes: dict[str, int] = {}
    for array, axes in zip(arrays, names, strict=True):
        for name, size in zip(axes, array.shape, strict=True):
            if name is not None and sizes.setdefault(name, size) != size:
                raise ShapeError(f"dimension {name} is {sizes[name]} in one argument and {size} in another")
    return sizes


def padded_shape(array: Any, names: Names, padded: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an array after its named axes are padded."""
    return tuple([size if name is None else padded[name] for name, size in zip(names, array.shape, strict=True)])


def pad_axes(array: Any, names: Names, padded: Mapping[str, int]) -> Any:
    """Return an array with its named axes padded at the end; the array itself when nothing is missing."""
    shape = padded_shape(array, names, padded)
    if shape == array.shape:
        return array
    wide = np.zeros(shape, array.dtype)  # np.pad takes ten times as long for small arrays
    wide[tuple(map(slice, array.shape))] = array
    return wide


def power_of_two(name: str, size: int) -> int:  # noqa: ARG001  (a boundary may depend on the name)
    """Return the next power of two, at least `size`."""
    return 1 << max(size - 1, 0).bit_length()


class Boundaries:
    """A function from a size to the next of some given sizes. Raises ShapeError above the largest."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sorted(sizes)

    def __call__(self, name: str, size: int) -> int:
        """Return the boundary for a size."""
        for boundary in self._sizes:
            if size <= boundary:
                return boundary
        raise ShapeError(f"dimension {name} is {size}, above the largest bucket {self._sizes[-1]}; add a bucket")


class Largest:
    """A function from a size to the largest size of its name so far."""

    def __init__(self) -> None:
        self._largest: dict[str, int] = {}
        self.changes = 0

    def __call__(self, name: str, size: int) -> int:
        """Return the largest size of that name so far."""
        if size > self._largest.get(name, -1):
            self._largest[name] = size
            self.changes += 1
        return self._largest[name]


def policy(shapes: str, buckets: Sequence[int] | None) -> Policy:
    """Return the policy of this name, with these sizes to pad to. Raises ValueError for an unknown name."""
    if shapes in ("auto", "exact"):
        return Exact()
    if shapes == "symbolic":
        return Symbolic()
    if shapes == "bucket":
        return AxisPadding(Boundaries(buckets) if buckets else power_of_two)
    if shapes == "pad":
        return AxisPadding(Boundaries(buckets) if buckets else Largest())
    raise ValueError(f"shapes is 'auto', 'exact', 'symbolic', 'bucket' or 'pad', not {shapes!r}")


# One graph for all sizes ----------------------------------------------------------------------------------------------

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
