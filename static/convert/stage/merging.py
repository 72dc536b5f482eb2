"""Merging: what the paths of a branch leave, brought together to the values that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.ir import CONSTANT, INPUT, Node
from graphs.ops.control import switch_op
from graphs.ops.movement import astype
from static.convert.stage.columns import Merged
from static.convert.stage.identity import chosen
from static.convert.stage.overwriting import left_by, merge
from static.convert.stage.places import Region, WritePlace, born, freeze
from static.convert.stage.trees import Joined, Leaf, StructureError, combined
from static.convert.stage.unknown import Differing, Partly, Unset, is_number, is_symbol, plain, weak
from static.trace.choice import choice
from static.trace.control import Subgraph, building, emit, finished, nodes_of
from static.trace.symbol import Symbol
from static.trace.tracing import static_key


class Path(NamedTuple):
    """What one branch comes to: its graph, the values it leaves, the places it has written to, or how it ends."""

    graph: Subgraph
    values: list[Any]
    region: Region
    writes: dict[Any, tuple[WritePlace, Any]]
    error: BaseException | None = None


class Merge:
    """The values of the paths of a switch brought together: what differs becomes a result of it, once for all alike."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._values: list[tuple[str, Sequence[Any], Differing | None]] = []
        self._columns: dict[Any, Merged] = {}

    def add(self, name: str, values: Sequence[Any]) -> None:
        """One more value, given for each path."""
        columns_before = len(self._columns)
        failed = next((value for value in values if isinstance(value, Differing)), None)
        try:
            if failed is None:
                self._combined(name, map(plain, values), self._column)
                if _missing(values):
                    self._combined(name, map(_is_set, values), self._column)
        except StructureError as error:
            for key in list(self._columns)[columns_before:]:
                del self._columns[key]
            failed = Differing(f"{error}; give it one structure, shape and dtype on every path")
        self._values.append((name, values, failed))

    def _column(self, name: str, values: Sequence[Any]) -> None:
        key = _key(values)
        if key not in self._columns:
            self._columns[key] = Merged(name, values)

    def results(self, test: Symbol) -> list[Any]:
        """What each value is after the switch."""
        results = dict(zip(self._columns, self._switched(test), strict=True))

        def leaf(_: str, values: Sequence[Any]) -> Symbol:
            return results[_key(values)]

        return [failed or self._result(name, values, leaf) for name, values, failed in self._values]

    def _result(self, name: str, values: Sequence[Any], leaf: Leaf) -> Any:
        value = self._combined(name, map(plain, values), leaf, self._joined)
        missing = _missing(values)
        if not missing or isinstance(value, Unset):
            return value
        return Partly(missing[0], value, self._combined(name, map(_is_set, values), leaf, self._joined))

    def _combined(self, name: str, values: Iterable[Any], leaf: Leaf, joined: Joined = lambda *_: None) -> Any:
        return combined(name, list(values), leaf, joined, self._left)

    def _left(self, values: Sequence[Any]) -> list[Any]:
        """The values as their paths have left them."""
        return [left_by(value, path.writes) for path, value in zip(self._paths, values, strict=True)]

    def _joined(self, new: Any, values: Sequence[Any]) -> None:
        """A container made of several: no one may change it, or them, unless each came to be on its path."""
        pairs = [pair for pair in zip(self._paths, values, strict=True) if not isinstance(pair[1], Unset)]
        chosen(new)
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
        columns = list(self._columns.values())
        for i, path in enumerate(self._paths):
            path.graph.give(lambda i=i: [column.typed(i) for column in columns])  # type: ignore[misc]
        graphs = [path.graph for path in self._paths]
        parts = _picked(test, graphs, len(columns))
        return [self._named(test, part, column) for part, column in zip(parts, columns, strict=True)]

    @staticmethod
    def _named(test: Symbol, result: Symbol, column: Merged) -> Symbol:
        """A result as what user code holds: a number, or a tensor that may be one of those that the paths leave."""
        if column.weak:
            return test if _is_the_test(column) else weak(result)
        merge(result, column.values, test)
        return chosen(result)


def _missing(values: Sequence[Any]) -> list[str]:
    """The name of a variable that some paths do not set."""
    return [value.name for value in values if isinstance(value, (Unset, Partly)) and value.name]


def _is_the_test(column: Merged) -> bool:
    """Whether a result is True where the test holds, and else False."""
    return column.values[0] is False and column.values[1] is True


def _is_set(value: Any) -> Any:
    """Whether a variable is set on a path: a bool, or what tells it at run time."""
    return value.test if isinstance(value, Partly) else not isinstance(value, Unset)


def _key(values: Sequence[Any]) -> tuple[Any, ...]:
    """What tells the values of a result from those of another."""
    return tuple(
        [
            (id(value.node), value.weak) if is_symbol(value) else static_key(value) if is_number(value) else id(value)
            for value in values
        ]
    )


# In the graph --------------------------------------------------------------------------------------------------------


def _picked(test: Symbol, branches: Sequence[Subgraph], count: int) -> list[Symbol]:
    """The outputs of the branch that a test picks, 0 if it is false: a switch, or `where` if neither computes anything.

    To compute a few cheap ops on both sides is slower than a switch, whose gradient computes one side too.
    """
    if not any(map(_computes, branches)):
        otherwise, then = ([_outside(branch, output) for output in branch.outputs] for branch in branches)
        return [choice(test, if_true, if_false) for if_true, if_false in zip(then, otherwise, strict=True)]
    graphs, captured = finished(*branches)
    sources = [*nodes_of([astype(test, np.int64)]), *captured]
    return emit(switch_op, sources, {"branches": tuple(graphs)}, count)


def _computes(branch: Subgraph) -> bool:
    return any(node.op not in (INPUT, CONSTANT) for node in branch.builder.nodes)


def _outside(branch: Subgraph, output: Node) -> Any:
    """What a branch returns, as a value of the enclosing graph."""
    builder = building()
    if output.op is CONSTANT:
        return Symbol(builder, builder.constant(output.attrs["value"], output.attrs["dtype"]))
    outer = next(node for node, inside in branch.builder.captured.items() if inside is output)
    return Symbol(builder, outer)
