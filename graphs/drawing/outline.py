"""Graphs as text that fits a terminal: a repeated block is printed once, and what changed line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphs.drawing.adapt import of_graph
from graphs.drawing.folding import MOST, as_one, keys_of
from graphs.drawing.grouping import ItemGroup, Part, grouped, opened
from graphs.drawing.model import Diagram, Item
from graphs.drawing.svg import SIGNS

CHANGES = 12
"""Changes of one pass that are printed."""
_GONE = "-"
"""Stands before the key of a node that was removed."""
Row = tuple[float, str]  # where in the graph it stands, and what it says


def outline(graph: Any, head: str, rows: Sequence[Sequence[str]], end: str, most: int = MOST) -> str:
    """A graph (of graphs/ir.py, with its text by node) as text, folded where it has more than `most` nodes.

    Of a block that repeats itself the first time is printed. If that is too much, functions or lines are a row each.
    """
    lines = [line for each in rows for line in each]
    if len(rows) > most:
        writer = _Outline(of_graph(graph), rows)
        lines = writer.text(most)
    return "\n".join([head, *lines, end])


class _Outline:
    def __init__(self, diagram: Diagram, rows: Sequence[Sequence[str]]) -> None:
        self.rows = rows
        self.items = {item.key: item for item in diagram.items}
        self.parts = grouped(diagram)

    def text(self, most: int) -> list[str]:
        """The rows in the order of the graph."""
        every = list(self._rows(self.parts, None))
        if len(every) > most:
            every = list(self._rows(self.parts, opened(self.parts, most)))
        return [line for _, line in sorted(every, key=lambda row: row[0])]

    def _rows(self, parts: Sequence[Part], open_: set[str] | None) -> Iterator[Row]:
        """The rows of parts; groups that are not open are a row each, if `open_` says which are."""
        for part in parts:
            if not isinstance(part, ItemGroup):
                if _is_outer(part):
                    yield from ((_number(part), line) for line in self.rows[_number(part)])
            elif part.times > 1:
                yield from self._rows([part.first], open_)
                yield from self._more(part)
            elif open_ is None or part.key in open_:
                yield from self._rows(part.parts, open_)
            else:
                yield from self._closed(part)

    def _more(self, group: ItemGroup) -> Iterator[Row]:
        first = self._outer([group.first])
        rest = [key for key in self._outer(group.parts) if key not in set(first)]
        if first and rest:
            said = f"{group.times - 1:,} more like these {len(first):,} nodes, {rest[0]} to {rest[-1]}"
            yield _number(first[-1]) + 0.5, f"    … {said}"

    def _closed(self, group: ItemGroup) -> Iterator[Row]:
        keys = self._outer([group])
        if keys:
            row = as_one(group, [self.items[key] for key in keys], {})
            text = f"  {keys[0]} to {keys[-1]}: {row.detail}"
            yield _number(keys[0]), f"{text:<66}  # {group.title}"

    def _outer(self, parts: Sequence[Part]) -> list[str]:
        """The keys of computed nodes in parts, those in bodies of control flow left out, in their order."""
        keys = [key for part in parts for key in keys_of(part) if _is_outer(key)]
        return sorted((key for key in keys if self.items[key].kind not in ("input", "constant")), key=_number)


def _is_outer(key: str) -> bool:
    return key[1:].isdigit()


def _number(key: str) -> int:
    return int(key[1:])


def changes_of(diagram: Diagram, most: int | None = CHANGES) -> list[str]:
    """A row for each node that changed, `+ %3: f32[4] = tanh(%2, axis=0)  # model.py:6`; the first `most` of them.

    A node reads what it reads now; one that was removed, what it read before.
    """
    changed = [item for item in diagram.items if item.change]
    reads: dict[str, list[str]] = {item.key: [] for item in diagram.items}
    for link in diagram.links:
        if not link.inside and (link.target.startswith(_GONE) or not link.source.startswith(_GONE)):
            reads[link.target].append(link.source.lstrip(_GONE))
    rows = [_row(item, reads[item.key]) for item in changed[:most]]
    left = len(changed) - len(rows)
    return [*rows, *([f"    … and {left:,} more; --unfold prints all"] if left else [])]


def _row(item: Item, reads: Sequence[str]) -> str:
    call = f"({', '.join(filter(None, (*reads, item.options)))})" if item.kind in ("forward", "backward") else ""
    text = f"  {SIGNS[item.look]} {item.key.lstrip(_GONE)}: {item.detail} = {item.label}{call}"
    return f"{text:<66}  # {item.lines[0]}" if item.lines else text
