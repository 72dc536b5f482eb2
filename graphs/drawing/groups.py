"""Nested groups of a diagram: repeated blocks, functions and lines of the user's, of at most `LEVEL` parts each.

The nodes of a group are neighbours in the order of the graph, so that closed groups never read each other in a circle.
An input or a constant is in the group of its first reader. `fold` makes a large diagram small: each closed group
becomes one item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil

import numpy as np

from graphs.drawing.diagram import Diagram, Item, Kind, Link

LEVEL = 40
"""Parts that a group may have; more are cut into parts of their own."""
_PERIOD, _DEPTH, _LEAST = 400, 60, 6
"""The longest block that is looked for, how often a rest is looked at again, and the nodes that repetitions have."""


@dataclass(frozen=True)
class ItemGroup:
    """A group: a title, and the keys of its items and inner groups. `count` is the number of items in all of it.

    With `cut` the group exists only because its parts were too many. A repeated block occurs `times` times, and the
    parts of its group are those of the `first` time.
    """

    key: str
    title: str
    parts: tuple[Part, ...]
    count: int
    cut: bool = False
    times: int = 1
    first: Part = ""


Part = ItemGroup | str


def group_items(diagram: Diagram, most: int = LEVEL) -> tuple[Part, ...]:
    """The groups and the keys of single items at the top level, in the order of the graph."""
    return _add_keys(_Grouping(diagram, most).level(""), "")


def open_groups(parts: Sequence[Part], most: int) -> set[str]:
    """The keys of the groups to open at first: level by level, while at most `most` parts are visible."""
    shown, keys, waiting = len(parts), set[str](), [parts]
    while waiting:
        groups = [part for part in waiting.pop(0) if isinstance(part, ItemGroup) and not part.cut]
        more = sum(len(group.parts) - 1 for group in groups)
        if groups and shown + more <= most:
            shown += more
            keys.update(group.key for group in groups)
            waiting += [group.parts for group in groups]
    return keys


@dataclass(frozen=True)
class _Unit:
    """An item with the inputs and constants that it reads first, and the bodies that it runs."""

    item: Item
    parts: tuple[Part, ...]
    looks: Hashable  # the same for units that are alike


_Token = Sequence[_Unit]


class _Grouping:
    def __init__(self, diagram: Diagram, most: int) -> None:
        self.diagram, self.most = diagram, most
        self.items = {item.key: item for item in diagram.items}
        self.by_box: dict[str, list[Item]] = {}
        for item in diagram.items:
            self.by_box.setdefault(item.box, []).append(item)
        self.sources: dict[str, list[str]] = {}
        self.bodies: dict[str, list[str]] = {}
        for link in diagram.links:
            (self.bodies if link.inside else self.sources).setdefault(
                link.source if link.inside else link.target, []
            ).append(link.target if link.inside else link.source)
        self.titles = {box.key: box.title for box in diagram.boxes}
        # From the coarsest to the finest: what units that stand beside each other have in common.
        self.names: tuple[Callable[[Item], str], ...] = (self._function, self._line, lambda item: item.label)

    def level(self, box: str) -> list[Part]:
        """The parts of one box. A box in it without an owner, such as a tape beside a graph, is a group of its own."""
        units = list(self._units(box))
        owned = {key for keys in self.bodies.values() for key in keys}
        loose = [body.key for body in self.diagram.boxes if body.around == box and body.key not in owned]
        return self._cut([*self._arrange(units, 0), *map(self._body, loose)])

    def _body(self, key: str) -> ItemGroup:
        return self._group(self.titles[key], self.level(key), key)

    def _units(self, box: str) -> Iterator[_Unit]:
        placed = set[str]()
        items = self.by_box.get(box, [])
        read = {source for item in items for source in self.sources.get(item.key, ())}
        for item in items:
            if item.kind in ("input", "constant") and item.key in read:
                continue  # it comes with its reader
            sources = [
                self.items[source]
                for source in self.sources.get(item.key, ())
                if source not in placed and self.items[source].kind in ("input", "constant")
            ]
            sources = [source for source in sources if source.box == box]
            placed.update(source.key for source in sources)
            bodies = [self._body(body) for body in self.bodies.get(item.key, ())]
            own = item.label, item.detail, item.options, item.kind, item.lines, item.change
            looks = own, sum(body.count for body in bodies)  # and not its inputs: the first block has those of all
            yield _Unit(item, (*(source.key for source in sources), item.key, *bodies), looks)

    def _function(self, item: Item) -> str:
        line = self.diagram.code.get(item.lines[0]) if item.lines else None
        return _kind_label(line.function, item.kind) if line and line.function else ""

    def _line(self, item: Item) -> str:
        return _kind_label(item.lines[0], item.kind) if item.lines else ""

    def _arrange(self, units: _Token, depth: int) -> list[Part]:
        """The parts of units: by function at depth 0, then by line, then single; each depth folds repetitions."""
        if depth == len(self.names) - 1:
            return self._fold_repeats([[unit] for unit in units], depth, _DEPTH)
        tokens: list[_Token] = []
        for name, run in groupby(units, lambda unit: self.names[depth](unit.item)):
            beside = list(run)
            tokens += [beside] if name else [[unit] for unit in beside]
        if len(tokens) <= 1 or len(tokens) == len(units):
            return self._arrange(units, depth + 1)
        return self._fold_repeats(tokens, depth, _DEPTH)

    def _fold_repeats(self, tokens: Sequence[_Token], depth: int, again: int) -> list[Part]:
        """The parts of tokens; the repeated block that covers most nodes is one part."""
        best = _repetition(tokens) if again else None
        if best is None:
            return [part for token in tokens for part in self._as_parts(token, depth)]
        start, period, count = best
        end = start + period * count
        blocks = [tokens[at : at + period] for at in range(start, end, period)]
        names = list(dict.fromkeys(self._common_name(token, depth) for token in blocks[0]))
        what = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        parts: list[Part] = []
        for number, block in enumerate(blocks, 1):
            held = self._fold_repeats(block, depth, again - 1)
            parts.append(held[0] if len(held) == 1 else self._group(f"{number:,} of {count:,}: {what}", held))
        whole = replace(self._group(f"{count:,} × {what}", parts), times=count, first=parts[0])
        left, right = tokens[:start], tokens[end:]
        return [*self._fold_repeats(left, depth, again - 1), whole, *self._fold_repeats(right, depth, again - 1)]

    def _common_name(self, token: _Token, depth: int) -> str:
        """The name that all units of a token share."""
        item = token[0].item
        return next(filter(None, (name(item) for name in self.names[depth:])), item.label)

    def _as_parts(self, token: _Token, depth: int) -> Sequence[Part]:
        if len(token) == 1:
            return token[0].parts
        return [self._group(self._common_name(token, depth), self._arrange(token, depth + 1))]

    def _cut(self, parts: list[Part]) -> list[Part]:
        """The parts, or where they are too many, groups of neighbouring parts."""
        while len(parts) > self.most:
            size = ceil(len(parts) / min(self.most, ceil(len(parts) / self.most)))
            cuts = [parts[at : at + size] for at in range(0, len(parts), size)]
            parts = [cut[0] if len(cut) == 1 else self._group(self._span(cut), cut) for cut in cuts]
        return parts

    def _span(self, parts: Sequence[Part]) -> str:
        first, last = self._title(parts[0]), self._title(parts[-1])
        return first if first == last else f"{first} to {last}"

    def _title(self, part: Part) -> str:
        if isinstance(part, ItemGroup):
            return part.title.partition(" to ")[0]
        item = self.items[part]
        return item.lines[0] if item.lines else f"{item.key} {item.label}"

    def _group(self, title: str, parts: list[Part], key: str = "") -> ItemGroup:
        count = sum(part.count if isinstance(part, ItemGroup) else 1 for part in parts)
        return ItemGroup(key, title, tuple(self._cut(parts)), count, len(parts) > self.most)


def _kind_label(name: str, kind: Kind) -> str:
    return f"∇ {name}" if kind == "backward" else name


def _repetition(tokens: Sequence[_Token]) -> tuple[int, int, int] | None:
    """The start, the number of tokens and the repetitions of the repeated block that covers most nodes."""
    if len(tokens) < 2:
        return None
    numbers: dict[Hashable, int] = {}
    looks = (tuple(unit.looks for unit in token) for token in tokens)
    signs = np.array([numbers.setdefault(look, len(numbers)) for look in looks])
    if len(numbers) == len(tokens):
        return None
    before = np.concatenate([[0], np.cumsum([len(token) for token in tokens])])
    best, most = None, _LEAST - 1
    for period in range(1, min(len(tokens) // 2, _PERIOD) + 1):
        start, length = _longest(signs[period:] == signs[:-period])
        count = length // period + 1
        nodes = before[start + period * count] - before[start]
        if count > 1 and nodes > most:
            best, most = (start, period, count), nodes
    return best


def _longest(holds: np.ndarray) -> tuple[int, int]:
    """The start and the length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]])))
    if not edges.size:
        return 0, 0
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    longest = int(lengths.argmax())
    return int(starts[longest]), int(lengths[longest])


def _add_keys(parts: Sequence[Part], path: str) -> tuple[Part, ...]:
    """The parts with keys for groups without one: the path of titles, so that similar graphs share keys."""
    times: Counter[str] = Counter()
    keyed: list[Part] = []
    for part in parts:
        if isinstance(part, ItemGroup):
            times[part.title] += 1
            key = part.key or f"{path}/{part.title}#{times[part.title]}"
            keyed.append(replace(part, key=key, parts=_add_keys(part.parts, key)))
        else:
            keyed.append(part)
    return tuple(keyed)


MOST = 150
"""Items that a drawing shows one by one."""


def fold(diagram: Diagram, most: int = MOST) -> Diagram:
    """The diagram with about `most` items at most: the groups of `group_items`, opened as far as that allows."""
    if len(diagram.items) <= most:
        return diagram
    parts = group_items(diagram, min(most, LEVEL))
    items = {item.key: item for item in diagram.items}
    stands: dict[str, Item] = {}  # for each item and body, what is shown of it
    around = {box.key: box.around for box in diagram.boxes}
    for part in _visible(parts, open_groups(parts, most)):
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
    """The keys of all items in a part."""
    if isinstance(part, ItemGroup):
        for inner in part.parts:
            yield from keys_of(inner)
    else:
        yield part


def groups_of(group: ItemGroup) -> Iterator[ItemGroup]:
    """The group itself and all groups inside it."""
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
    """A closed group as one item. It is marked as backward, or as changed, where all of its nodes are.

    `around` maps each box to its outer box.
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
    """The most common ops of the items, as text; folded items count by their own text."""
    counts: Counter[str] = Counter()
    for item in items:
        said = item.detail.partition(": ")[2].split(", ")
        named = [item.label] if item.count == 1 else [name for name in said if not name.endswith(" changed")]
        counts.update(dict.fromkeys(named, item.count))
    return ", ".join(name for name, _ in counts.most_common(3))
