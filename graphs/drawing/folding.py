"""A large diagram made small: nodes of one line of the user's, in one pass, become one item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from graphs.drawing.model import Diagram, Item, Link

MOST = 150
"""Items that a drawing shows one by one."""


def folded(diagram: Diagram, most: int = MOST) -> Diagram:
    """The diagram with at most about so many items: folded by line, by file where lines are too many, else by op."""
    for group in (_line, _file, _op):
        if len(diagram.items) <= most:
            return diagram
        diagram = _folded(diagram, group)
    return diagram


def _line(item: Item) -> str:
    return item.lines[0] if item.lines else item.label


def _file(item: Item) -> str:
    return item.lines[0].partition(":")[0] if item.lines else item.label


def _op(item: Item) -> str:
    return item.label.partition(":")[0]


def _folded(diagram: Diagram, group: Callable[[Item], str]) -> Diagram:
    """Items of one group, kind and box as one; inputs and results stay what they are where they are few."""
    groups: dict[tuple[str, ...], list[Item]] = {}
    for item in diagram.items:
        name = "inputs" if item.kind == "input" else "constants" if item.kind == "constant" else group(item)
        groups.setdefault((item.box, item.kind, name), []).append(item)
    items = {key: _one(key[2], held) for key, held in groups.items()}
    stands = {item.key: items[key].key for key, held in groups.items() for item in held}
    links = dict.fromkeys(
        Link(stands[link.source], stands.get(link.target, link.target), link.inside) for link in diagram.links
    )
    kept = tuple(link for link in links if link.source != link.target)
    return Diagram(diagram.title, tuple(items.values()), kept, diagram.boxes)


def _one(name: str, items: list[Item]) -> Item:
    if len(items) == 1:
        return items[0]
    first, count = items[0], sum(item.count for item in items)
    lines = tuple(dict.fromkeys(line for item in items for line in item.lines))
    detail = f"{count:,} nodes: {_commonest(items)}" if name not in ("inputs", "constants") else f"{count:,} arrays"
    saved, is_result = sum(item.saved for item in items), any(item.is_result for item in items)
    return Item(first.key, name, detail, first.kind, lines, saved, count, "", first.box, is_result)


def _commonest(items: Iterable[Item]) -> str:
    """The ops that most items are, of items that are folded already by what those say."""
    counts: Counter[str] = Counter()
    for item in items:
        named = [item.label] if item.count == 1 else item.detail.partition(": ")[2].split(", ")
        counts.update(dict.fromkeys(named, item.count))
    return ", ".join(name for name, _ in counts.most_common(3))
