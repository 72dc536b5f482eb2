"""A large diagram made small: its closed groups become one item each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphs.drawing.grouping import LEVEL, ItemGroup, Part, grouped, opened
from graphs.drawing.model import Diagram, Item, Link

MOST = 150
"""Items that a drawing shows one by one."""


def folded(diagram: Diagram, most: int = MOST) -> Diagram:
    """The diagram with at most about so many items: the groups of `grouped`, open as far as there is room."""
    if len(diagram.items) <= most:
        return diagram
    parts = grouped(diagram, min(most, LEVEL))
    items = {item.key: item for item in diagram.items}
    stands: dict[str, Item] = {}  # for each item and body, what is shown of it
    around = {box.key: box.around for box in diagram.boxes}
    for part in _visible(parts, opened(parts, most)):
        held = [items[key] for key in keys_of(part)]
        shown = as_one(part, held, around) if isinstance(part, ItemGroup) else held[0]
        stands |= {item.key: shown for item in held}
        if isinstance(part, ItemGroup):
            stands |= {inner.key: shown for inner in groups_of(part)}
    links = dict.fromkeys(
        Link(stands[link.source].key, stands[link.target].key if link.target in stands else link.target, link.inside)
        for link in diagram.links
    )
    kept = tuple(link for link in links if link.source != link.target)
    boxes = tuple(box for box in diagram.boxes if box.key not in stands)
    return Diagram(diagram.title, tuple(dict.fromkeys(stands.values())), kept, boxes, diagram.code)


def keys_of(part: Part) -> Iterator[str]:
    """The keys of the items in a part."""
    if isinstance(part, ItemGroup):
        for inner in part.parts:
            yield from keys_of(inner)
    else:
        yield part


def groups_of(group: ItemGroup) -> Iterator[ItemGroup]:
    """The group and all that are in it."""
    yield group
    for part in group.parts:
        if isinstance(part, ItemGroup):
            yield from groups_of(part)


def _visible(parts: Sequence[Part], open_: set[str]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, ItemGroup) and part.key in open_:
            yield from _visible(part.parts, open_)
        else:
            yield part


def as_one(group: ItemGroup, items: Sequence[Item], around: Mapping[str, str]) -> Item:
    """A closed group as an item: of the backward pass, and changed, where all of its nodes are.

    `around` is the outer box of each box: a body stands in that.
    """
    own = [item for item in items if item.kind not in ("input", "constant")] or items
    count = sum(item.count for item in items)
    changed = sum(item.count for item in own if item.change)
    lines = tuple(dict.fromkeys(line for item in items for line in item.lines))
    kinds, changes = {item.kind for item in own}, {item.change for item in own}
    return Item(
        items[0].key,
        group.title,
        f"{count:,} nodes: {commonest(own)}" + (f", {changed:,} changed" if changed else ""),
        kinds.pop() if len(kinds) == 1 else "forward",
        lines,
        sum(item.saved for item in items),
        count,
        box=around[group.key] if group.key in around else min((item.box for item in items), key=len),
        is_result=any(item.is_result for item in items),
        change=changes.pop() if len(changes) == 1 else None,
    )


def commonest(items: Iterable[Item]) -> str:
    """The ops that most items are, of items that are folded already by what those say."""
    counts: Counter[str] = Counter()
    for item in items:
        said = item.detail.partition(": ")[2].split(", ")
        named = [item.label] if item.count == 1 else [name for name in said if not name.endswith(" changed")]
        counts.update(dict.fromkeys(named, item.count))
    return ", ".join(name for name, _ in counts.most_common(3))
