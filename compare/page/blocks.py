"""What the report says, as plain data: the HTML and the Markdown are two printings of one `Page`.

A page is a sequence of sections, a section a title over blocks, and a block text, a table, a picture, or a section
again. The printers know the kinds of blocks alone, so whoever has something to say makes a `Section`, and its place is
its place in the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.page.summary import CostModel


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `align` has one letter a column, l or r. One with a title can be folded away."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    title: str = ""

    @classmethod
    def of(cls, align: str, rows: Iterable[Mapping[str, str]], title: str = "") -> Table | None:
        """The table of rows that have each cell under its header, all in one order; None without rows."""
        cells = list(rows)
        return cls(tuple(cells[0]), tuple(tuple(row.values()) for row in cells), align, title) if cells else None


@dataclass(frozen=True)
class Picture:
    """A figure as the file plots/`name` beside the report, and in the page, with its words and its numbers."""

    title: str
    caption: str
    alt: str
    name: str
    svg: str
    table: Table | None = None
    narrow: str = ""


@dataclass(frozen=True)
class Inline:
    """A small SVG that stands in the page alone, and what it shows in words, which Markdown prints instead.

    The SVG is printed as it is: whoever makes it escapes every text in it.
    """

    svg: str
    words: str


@dataclass(frozen=True)
class PicturedTable:
    """A table whose rows each end with a small picture, under the last header; Markdown prints its words."""

    table: Table
    pictures: tuple[Inline, ...]

    def __post_init__(self) -> None:
        if len(self.pictures) != len(self.table.rows):
            raise ValueError(f"{len(self.pictures)} pictures for {len(self.table.rows)} rows")


@dataclass(frozen=True)
class Bullets:
    """A list of sentences, with a title or without."""

    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True)
class Terms:
    """Names, each with what is said about it. With `defines` they are words, and each has an anchor below this one."""

    rows: tuple[tuple[str, str], ...]
    defines: str = ""


@dataclass(frozen=True)
class Code:
    """Lines of a program or of commands."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class VerdictMark:
    """A verdict as a sign, a word and a colour, with the effect that it rests on."""

    icon: str
    word: str
    tone: str
    effect: str = ""
    of: str = ""


@dataclass(frozen=True)
class ClaimRow:
    """A claim in one row: the section it links to, its verdict, one sentence, and its regimes as a small SVG."""

    id: str
    title: str
    anchor: str
    mark: VerdictMark
    why: str
    svg: str
    words: str


@dataclass(frozen=True)
class Claims:
    """The claims, a row each."""

    rows: tuple[ClaimRow, ...]


@dataclass(frozen=True)
class Calculator:
    """A form that a small script of the page answers; where no script runs, it is not shown."""

    models: tuple[CostModel, ...]


@dataclass(frozen=True)
class FoldedBlock:
    """What most readers do not need at once, under a line that says what it is: closed on a screen, open in print."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A title, and what stands under it, in reading order. One without blocks is not printed."""

    title: str
    blocks: tuple[Block, ...] = ()
    name: str = ""

    @property
    def short(self) -> str:
        """The title as a list of contents has it: what stands before a colon."""
        return self.title.partition(":")[0]

    @property
    def anchor(self) -> str:
        """What links to this section name; the title in small letters, if no name was given."""
        return self.name or re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


Block = (
    str
    | Table
    | PicturedTable
    | Picture
    | Inline
    | Bullets
    | Terms
    | Code
    | VerdictMark
    | Claims
    | Calculator
    | FoldedBlock
    | Section
)
"""What a section holds; a str is a paragraph."""


@dataclass(frozen=True)
class Page:
    """A whole report, in reading order; `conditions` are those of the run, in a word that opens to the details."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    conditions: FoldedBlock | None = None


def section(title: str, *blocks: Block | None, name: str = "") -> Section | None:
    """The section of those blocks that are there; None where none is, for what was not measured is not on the page."""
    held = tuple(block for block in blocks if block)
    return Section(title, held, name) if held else None
