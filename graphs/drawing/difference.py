"""The difference of two graphs: nodes that were added or removed, or that read other nodes than before."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from graphs.drawing.diagram import Body, Change, Diagram, Item, Link

_NUMBER = re.compile(r"%\d+")


def difference(before: Diagram, after: Diagram) -> Diagram:
    """One diagram of two: items in both appear once, others as removed from `before`, added in `after`, or rewritten.

    A rewritten node has the op, spec and options of a node in `before`, and reads other nodes. A removed node stands
    above what followed it.
    """
    same = match_nodes(before, after)
    left, right = changes(before, after, same)
    boxes = {body.key for body in after.boxes}
    names = {item.key: same.get(item.key, f"-{item.key}") for item in before.items}
    gone: dict[str, list[Item]] = defaultdict(list)  # by the item of `after` that they stand above
    waiting = list[Item]()
    for item in before.items:
        if item.key in same:
            gone[same[item.key]] += waiting
            waiting = []
        else:
            box = item.box if item.box in boxes else ""
            waiting.append(replace(item, key=names[item.key], change=left[item.key], box=box))
    items = list[Item]()
    for item in after.items:
        items += [*gone[item.key], replace(item, change=right.get(item.key))]
    links = [
        Link(names[link.source], names[link.target])
        for link in before.links
        if link.target in names and not (link.source in same and link.target in same)
    ]
    title = f"{before.title} to {after.title}" if before.title != after.title else after.title
    every = tuple(dict.fromkeys([*after.links, *links]))
    return Diagram(title, (*items, *waiting), every, after.boxes, {**before.code, **after.code})


def mark_changes(before: Diagram, after: Diagram) -> tuple[Diagram, Diagram]:
    """Both diagrams with their changes marked: removed in the first, added or rewritten in the second."""
    left, right = changes(before, after, match_nodes(before, after))
    return _mark(before, left), _mark(after, right)


def _mark(diagram: Diagram, change: Mapping[str, Change]) -> Diagram:
    return replace(diagram, items=tuple(replace(item, change=change.get(item.key)) for item in diagram.items))


def changes(before: Diagram, after: Diagram, same: Mapping[str, str]) -> tuple[dict[str, Change], dict[str, Change]]:
    """The changes by key: of the items removed from `before`, and of those added or rewritten in `after`."""
    kept = {key: old for old, key in same.items()}
    left: dict[str, Change] = {item.key: "removed" for item in before.items if item.key not in same}
    reads_before, reads_after = _sources(before), _sources(after)
    right: dict[str, Change] = {}
    for item in after.items:
        if item.key not in kept:
            right[item.key] = "added"
        elif [same.get(source) for source in reads_before[kept[item.key]]] != reads_after[item.key]:
            right[item.key] = "rewritten"
    return left, right


def match_nodes(before: Diagram, after: Diagram) -> dict[str, str]:
    """The key in `after` for each key in `before` of the same node: one of the same op, spec and options.

    Nodes are matched in four rounds. The first matches nodes that are computed alike from the inputs on, the second
    nodes that are used alike up to the results. The third matches nodes whose neighbours have the same ops, and the
    last matches the others in their order.
    """
    same = dict[str, str]()
    numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
    first, other = _own(before, numbers), _own(after, numbers)
    upwards, downwards = (_sources(before), _sources(after)), (_readers(before), _readers(after))
    for left, right in (
        (_through(first, upwards[0], numbers), _through(other, upwards[1], numbers)),
        (_through(first, downwards[0], numbers), _through(other, downwards[1], numbers)),
        (_near(first, upwards[0], downwards[0], numbers), _near(other, upwards[1], downwards[1], numbers)),
        (first, other),
    ):
        taken = set(same.values())
        by_content: dict[int, Iterator[str]] = {
            content: iter(keys)
            for content, keys in _by_content({key: c for key, c in right.items() if key not in taken}).items()
        }
        for key, content in left.items():
            if key not in same and (match := next(by_content.get(content, iter(())), None)) is not None:
                same[key] = match
    return same


def renumber_like(before: Diagram, after: Diagram, fresh: Iterator[int]) -> Diagram:
    """`after` with the numbers of `before` for the nodes that both have, and new numbers for the others.

    So a node keeps its name through all passes. Nodes in bodies keep their own numbers.
    """
    kept = {key: old for old, key in match_nodes(before, after).items()}
    names = {item.key: kept.get(item.key) or f"%{next(fresh)}" for item in after.items if not item.box}

    def rename_key(key: str) -> str:
        outer, *inner = key.split(".", 1)
        return ".".join([names[outer], *inner]) if key else ""

    def retitle(title: str) -> str:
        words, _, key = title.rpartition(" ")
        return f"{words} {rename_key(key)}"

    items = tuple(replace(item, key=rename_key(item.key), box=rename_key(item.box)) for item in after.items)
    links = tuple(replace(link, source=rename_key(link.source), target=rename_key(link.target)) for link in after.links)
    boxes = tuple(Body(rename_key(box.key), retitle(box.title), rename_key(box.around)) for box in after.boxes)
    return replace(after, items=items, links=links, boxes=boxes)


def _by_content(contents: Mapping[str, int]) -> dict[int, list[str]]:
    keys: dict[int, list[str]] = defaultdict(list)
    for key, content in contents.items():
        keys[content].append(key)
    return keys


def _own(diagram: Diagram, numbers: defaultdict[Hashable, int]) -> dict[str, int]:
    """A description of each item without its sources; inputs are described by their order."""
    places = count()
    return {
        item.key: numbers[
            next(places) if item.kind == "input" and not item.box else item.label,
            item.detail,
            item.options,
            _NUMBER.sub("%", item.box),
        ]
        for item in diagram.items
    }


def _through(
    own: Mapping[str, int], beside: Mapping[str, Sequence[str]], numbers: defaultdict[Hashable, int]
) -> dict[str, int]:
    """A number for each item that stands for it and all items from which `beside` leads to it."""
    contents: dict[str, int] = {}
    for start in own:
        stack = [start]
        while stack:
            key = stack[-1]
            missing = [other for other in beside[key] if other not in contents]
            if missing and key not in contents:
                stack += missing
                continue
            stack.pop()
            contents[key] = numbers[own[key], tuple(contents[other] for other in beside[key])]
    return contents


def _near(
    own: Mapping[str, int],
    sources: Mapping[str, Sequence[str]],
    readers: Mapping[str, Sequence[str]],
    numbers: defaultdict[Hashable, int],
) -> dict[str, int]:
    """A number for each item that stands for it and the ops of its neighbours."""
    return {
        key: numbers[content, tuple(own[k] for k in sources[key]), tuple(sorted(own[k] for k in readers[key]))]
        for key, content in own.items()
    }


def _sources(diagram: Diagram) -> dict[str, list[str]]:
    return _ends([(link.target, link.source) for link in diagram.links if not link.inside], diagram)


def _readers(diagram: Diagram) -> dict[str, list[str]]:
    return _ends([(link.source, link.target) for link in diagram.links if not link.inside], diagram)


def _ends(pairs: Sequence[tuple[str, str]], diagram: Diagram) -> dict[str, list[str]]:
    ends: dict[str, list[str]] = {item.key: [] for item in diagram.items}
    for key, other in pairs:
        ends[key].append(other)
    return ends
