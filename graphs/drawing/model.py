"""What a drawing holds, as plain data: items, links between them, and boxes around some of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["input", "constant", "forward", "backward", "added", "removed"]


@dataclass(frozen=True)
class Item:
    """One node, or several that were folded into one.

    `saved` are the bytes that the backward pass reads of it; `count` is how many nodes it stands for; `lines` are the
    user's lines that it came from; `box` is the key of the box that it stands in, "" for none.
    """

    key: str
    label: str
    detail: str
    kind: Kind
    lines: tuple[str, ...] = ()
    saved: int = 0
    count: int = 1
    options: str = ""
    box: str = ""
    is_result: bool = False


@dataclass(frozen=True)
class Link:
    """`target` reads `source`; `inside` where the target is the box of a body that the source's node runs."""

    source: str
    target: str
    inside: bool = False


@dataclass(frozen=True)
class Body:
    """A body: the branches, the condition or the step of a control-flow node. `around` is the key of the outer box."""

    key: str
    title: str
    around: str = ""


@dataclass(frozen=True)
class Diagram:
    """A graph to be drawn."""

    title: str
    items: tuple[Item, ...]
    links: tuple[Link, ...]
    boxes: tuple[Body, ...] = field(default=())
