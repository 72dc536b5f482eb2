"""The content of a report as plain data: HTML and Markdown are printed from one `Page`.

A page is a sequence of sections. A section is a title over blocks. A block is text, a table, a picture, or a section
again. The printers know only the types of blocks, so a new part of the report is a new `Section`, in its place on the
page.
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
    """A table of text; `align` has a letter for each column, l or r. A table with a title can be folded."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    title: str = ""

    @classmethod
    def of(cls, align: str, rows: Iterable[Mapping[str, str]], title: str = "") -> Table | None:
        """Make a table of rows that map headers to cells, all in one order; None without rows."""
        cells = list(rows)
        return cls(tuple(cells[0]), tuple(tuple(row.values()) for row in cells), align, title) if cells else None


@dataclass(frozen=True)
class Picture:
    """A figure: an SVG in the page, also written to plots/`name`, with its title, caption, alt text and table."""

    title: str
    caption: str
    alt: str
    name: str
    svg: str
    table: Table | None = None
    narrow: str = ""


@dataclass(frozen=True)
class Inline:
    """A small SVG that is shown only in the HTML page, and a text that Markdown prints instead.

    The SVG is printed without escaping: its maker must escape every text in it.
    """

    svg: str
    words: str


@dataclass(frozen=True)
class PicturedTable:
    """A table whose rows end with a small picture, under the last header; Markdown prints the picture's text."""

    table: Table
    pictures: tuple[Inline, ...]

    def __post_init__(self) -> None:
        if len(self.pictures) != len(self.table.rows):
            raise ValueError(f"{len(self.pictures)} pictures for {len(self.table.rows)} rows")


@dataclass(frozen=True)
class Bullets:
    """A list of sentences, with an optional title."""

    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True)
class Terms:
    """Names with a text for each. With `defines`, the names are words, and each gets an anchor with this prefix."""

    rows: tuple[tuple[str, str], ...]
    defines: str = ""


@dataclass(frozen=True)
class Code:
    """A block of code: lines of a program or of commands."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class VerdictMark:
    """A verdict as an icon, a word and a tone (its colour), with its effect and the name of the effect (`of`)."""

    icon: str
    word: str
    tone: str
    effect: str = ""
    of: str = ""


@dataclass(frozen=True)
class ClaimRow:
    """A claim in one row: the anchor of its section, its verdict, one sentence, and its regimes as a small SVG."""

    id: str
    title: str
    anchor: str
    mark: VerdictMark
    why: str
    svg: str
    words: str


@dataclass(frozen=True)
class Claims:
    """The table of claims, one row for each."""

    rows: tuple[ClaimRow, ...]


@dataclass(frozen=True)
class Calculator:
    """A form that predicts costs by a script of the page; it is hidden if no script runs."""

    models: tuple[CostModel, ...]


@dataclass(frozen=True)
class FoldedBlock:
    """Blocks that most readers do not need at once, under a title: closed on a screen, open in print."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A title with the blocks under it, in reading order."""

    title: str
    blocks: tuple[Block, ...] = ()
    name: str = ""

    @property
    def short(self) -> str:
        """The title for a table of contents: its part before a colon."""
        return self.title.partition(":")[0]

    @property
    def anchor(self) -> str:
        """The anchor of the section: its name, or else its title in small letters with dashes."""
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
"""A part of a section; a str is a paragraph."""


@dataclass(frozen=True)
class Page:
    """A whole report; `conditions` are the conditions of the run in a word, which opens to the details."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    conditions: FoldedBlock | None = None


def section(title: str, *blocks: Block | None, name: str = "") -> Section | None:
    """Make a section of the blocks that are not None or empty; None without any, so that it is left off the page."""
    held = tuple(block for block in blocks if block)
    return Section(title, held, name) if held else None
