"""What one graph has that another does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from graphs.drawing.model import Diagram, Item, Link


def difference(before: Diagram, after: Diagram) -> Diagram:
    """Both diagrams as one: what is in both once, and else as removed from `before` or added in `after`.

    Two nodes are the same where their op, spec and options are, and all that they are computed from.
    """
    left, right = _contents(before), _contents(after)
    kept = Counter(left.values()) & Counter(right.values())
    merged = dict[str, str]()  # from a key of `before` to the key of the same node in `after`
    by_content = dict[Hashable, list[str]]()
    for key, content in right.items():
        by_content.setdefault(content, []).append(key)
    for key, content in left.items():
        if kept[content]:
            kept[content] -= 1
            merged[key] = by_content[content].pop(0)
    same = set(merged.values())
    items = [item if item.key in same else replace(item, kind="added") for item in after.items]
    items += [_removed(item) for item in before.items if item.key not in merged]
    names = {item.key: merged.get(item.key, f"-{item.key}") for item in before.items}
    links = [Link(names[link.source], names[link.target]) for link in before.links if link.target in names]
    every = dict.fromkeys([*after.links, *links])
    return Diagram(f"{before.title} to {after.title}", tuple(items), tuple(every), after.boxes)


def _removed(item: Item) -> Item:
    return replace(item, key=f"-{item.key}", kind="removed", box="")


def _contents(diagram: Diagram) -> dict[str, Hashable]:
    """A number for each item, the same for two that are alike with all that they are computed from."""
    sources: dict[str, list[str]] = {item.key: [] for item in diagram.items}
    for link in diagram.links:
        if link.target in sources:
            sources[link.target].append(link.source)
    contents: dict[str, Hashable] = {}
    for item in diagram.items:
        own = item.label, item.detail, item.options, item.box
        contents[item.key] = hash((own, tuple(contents.get(source) for source in sources[item.key])))
    return contents
