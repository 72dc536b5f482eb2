"""What a drawing holds, as plain data: items, links between them, and boxes around some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["input", "constant", "forward", "backward"]
Change = Literal["added", "removed", "rewritten"]
Look = Literal["input", "constant", "forward", "backward", "added", "removed", "rewritten"]


@dataclass(frozen=True)
class Item:
    """One node, or several that were folded into one.

    `saved` are the bytes that the backward pass reads of it; `count` is how many nodes it stands for; `lines` are the
    user's lines that it came from; `box` is the key of the box that it stands in, "" for none. `size` are the bytes of
    its result, 0 where a size is symbolic; `change` is what makes it differ from the graph that it is compared with.
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
    size: int = 0
    change: Change | None = None

    @property
    def look(self) -> Look:
        """How it is drawn: by its change, and else by its kind."""
        return self.change or self.kind


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


class CodeLine(NamedTuple):
    """A line of the user's: the function that it is in, "" for none, and what it says."""

    function: str
    text: str


@dataclass(frozen=True)
class Diagram:
    """A graph to be drawn; `code` says what stands in the lines of its items, as far as that can be read."""

    title: str
    items: tuple[Item, ...]
    links: tuple[Link, ...]
    boxes: tuple[Body, ...] = ()
    code: Mapping[str, CodeLine] = field(default_factory=dict, hash=False)
