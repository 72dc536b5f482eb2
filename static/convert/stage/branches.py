"""Branches: ordinary Python where the test is known, else all of them traced, and a switch that picks at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.errors import GraphError
from graphs.ir import CONSTANT, INPUT, Node
from graphs.ops.control import switch_op
from graphs.ops.elementwise import where
from graphs.ops.movement import astype
from static.convert.stage.columns import Merged
from static.convert.stage.places import Region, WritePlace, born, freeze, write
from static.convert.stage.trees import Leaf, StructureError, combined
from static.convert.stage.unknown import Differing, Partly, Unset, is_symbol, plain, read, refuse, truth, weak
from static.trace.control import Subgraph, building, emit, finished, nodes_of
from static.trace.symbol import Symbol

Block = Callable[[], Any]


class Variables(NamedTuple):
    """The variables that blocks may set: their names, and how to get and set all of them."""

    names: tuple[str, ...]
    get: Callable[[], tuple[Any, ...]]
    put: Callable[[Sequence[Any]], None]


NOTHING = Variables((), tuple, lambda _: None)


class Path(NamedTuple):
    """What one branch comes to: its graph, the values it leaves, the places it has written to."""

    graph: Subgraph
    values: list[Any]
    region: Region
    writes: dict[Any, tuple[WritePlace, Any]]


def branch(test: Any, then: Block, otherwise: Block, variables: Variables, live: Sequence[str]) -> None:
    """`if test: then() else: otherwise()`, where the variables `live` are read later."""
    if not is_symbol(test):
        (then if test else otherwise)()
        return
    before = variables.get()
    kept = [i for i, name in enumerate(variables.names) if name in live]

    def run(block: Block) -> Callable[[], list[Any]]:
        def traced() -> list[Any]:
            variables.put(before)
            block()
            after = variables.get()
            return [after[i] for i in kept]

        return traced

    try:
        found = decided(truth(test), [run(otherwise), run(then)], [repr(variables.names[i]) for i in kept])
    finally:
        variables.put(before)
    after = list(before)
    for i, value in zip(kept, found, strict=True):
        after[i] = value
    variables.put(after)


def choose(test: Any, then: Block, otherwise: Block) -> Any:
    """`then() if test else otherwise()`."""
    if not is_symbol(test):
        return then() if test else otherwise()
    (value,) = decided(truth(test), [lambda: [otherwise()], lambda: [then()]], ["the value"])
    return read(value)


def both(first: Any, second: Block) -> Any:
    """`first and second()`."""
    if not is_symbol(first):
        return first and second()
    (value,) = decided(truth(first), [lambda: [first], lambda: [second()]], ["the value of `and`"])
    return read(value)


def any_of(first: Any, second: Block) -> Any:
    """`first or second()`."""
    if not is_symbol(first):
        return first or second()
    (value,) = decided(truth(first), [lambda: [second()], lambda: [first]], ["the value of `or`"])
    return read(value)


# What follows makes the switch -------------------------------------------------------------------------------------


def decided(test: Symbol, blocks: Sequence[Callable[[], list[Any]]], names: Sequence[str]) -> list[Any]:
    """The values of the block that the test picks (0 if it is false); places that blocks write to are written."""
    paths = [_traced(f"branch{i}", block) for i, block in enumerate(blocks)]
    places = list({key: place for path in paths for key, (place, _) in path.writes.items()}.values())
    merge = _Merge(paths)
    for i, name in enumerate(names):
        merge.add(name, [path.values[i] for path in paths])
    for place in places:
        merge.add(place.label, [_left(path, place) for path in paths])
    found = merge.results(test)
    for place, value in zip(places, found[len(names) :], strict=True):
        write(place, read(value))
    return found[: len(names)]


def _traced(name: str, block: Callable[[], list[Any]]) -> Path:
    values: list[Any] = []
    writes: dict[Any, tuple[WritePlace, Any]] = {}
    region = Region()

    def body(_: list[Any]) -> None:
        with region:
            try:
                values.extend(reached(block))
            finally:
                writes.update(region.undo())

    return Path(Subgraph(name, body, []), values, region, writes)


def reached(block: Callable[[], Any]) -> Any:
    """What a block gives that only the run knows to be reached: what it raises is refused, for a graph cannot raise."""
    try:
        return block()
    except GraphError:
        raise
    except RecursionError:
        refuse("a function calls itself until a value says stop; write a loop")
    except Exception as error:  # noqa: BLE001  (whatever the user's code raises)
        kind = type(error).__name__
        refuse(
            f"{kind} is raised where only the run knows whether it is reached ({error}); return a value that says so"
        )


def _left(path: Path, place: WritePlace) -> Any:
    """What a place holds at the end of a path."""
    return path.writes[place.key][1] if place.key in path.writes else place.get()


class _Merge:
    """The values of the paths of a switch brought together: what differs becomes a result of it."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._values: list[tuple[str, Sequence[Any], Differing | None]] = []
        self._columns: list[Merged] = []

    def add(self, name: str, values: Sequence[Any]) -> None:
        """One more value, given for each path."""
        known = len(self._columns)
        failed = next((value for value in values if isinstance(value, Differing)), None)
        try:
            if failed is None:
                combined(name, [plain(value) for value in values], self._column, lambda *_: None)
        except StructureError as error:
            del self._columns[known:]
            failed = Differing(f"{error}; give it one structure, shape and dtype on every path")
        self._values.append((name, values, failed))

    def _column(self, name: str, values: Sequence[Any]) -> None:
        self._columns.append(Merged(name, values))

    def results(self, test: Symbol) -> list[Any]:
        """What each value is after the switch."""
        results = iter(self._switched(test))

        def result(*_: Any) -> Symbol:
            return next(results)

        return [self._result(name, values, failed, result) for name, values, failed in self._values]

    def _result(self, name: str, values: Sequence[Any], failed: Differing | None, leaf: Leaf) -> Any:
        if failed is not None:
            return failed
        value = combined(name, [plain(value) for value in values], leaf, self._joined)
        partly = [one.name for one in values if isinstance(one, (Unset, Partly)) and one.name]
        return value if not partly or isinstance(value, Unset) else Partly(partly[0], value)

    def _joined(self, new: Any, values: Sequence[Any]) -> None:
        """A container made of several: no one may change it, or them, unless each came to be on its path."""
        pairs = [pair for pair in zip(self._paths, values, strict=True) if not isinstance(pair[1], Unset)]
        if isinstance(new, tuple):
            return
        if all(path.region.has_made(value) for path, value in pairs):
            born(new)
        else:
            for container in (new, *(value for _, value in pairs)):
                freeze(container)

    def _switched(self, test: Symbol) -> list[Symbol]:
        if not self._columns:
            return []
        for i, path in enumerate(self._paths):
            path.graph.give(lambda i=i: [column.typed(i) for column in self._columns])  # type: ignore[misc]
        graphs = [path.graph for path in self._paths]
        parts = _selected(test, graphs) or _switch(test, graphs, len(self._columns))
        return [weak(part) if column.weak else part for part, column in zip(parts, self._columns, strict=True)]


def _switch(test: Symbol, branches: Sequence[Subgraph], count: int) -> list[Symbol]:
    graphs, captured = finished(*branches)
    sources = [*nodes_of([astype(test, np.int64)]), *captured]
    return emit(switch_op, sources, {"branches": tuple(graphs)}, count)


def _selected(test: Symbol, branches: Sequence[Subgraph]) -> list[Symbol] | None:
    """The results picked from values that are there anyway, where no branch computes anything."""
    if any(node.op not in (INPUT, CONSTANT) for branch in branches for node in branch.builder.nodes):
        return None
    values = [[_outside(branch, output) for output in branch.outputs] for branch in branches]
    return [where(test, one, other) for other, one in zip(*values, strict=True)]


def _outside(branch: Subgraph, output: Node) -> Any:
    """What a branch returns, as a value of the enclosing graph."""
    if output.op is CONSTANT:
        value = output.attrs["value"]
        return (
            value
            if isinstance(value, np.ndarray)
            else Symbol(building(), building().constant(value, output.spec.dtype))
        )
    outer = next(node for node, inside in branch.builder.captured.items() if inside is output)
    return Symbol(building(), outer)
