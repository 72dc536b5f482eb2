"""The content of a report as plain data, from which HTML and Markdown are printed, and the glossary of a page.

A page is a sequence of sections. A section is a title over blocks. A block is text, a table, a picture, or a section
again. The printers know only the types of blocks, so a new part of the report is a new `Section`, in its place on the
page. `glossary` makes the section with the words on the page that a newcomer may not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.report.summary import CostModel


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


# The glossary ---------------------------------------------------------------------------------------------------------


WORDS: Mapping[str, str] = {
    "arena": "One block of memory, planned when a graph is compiled, that holds all values of a step.",
    "break-even": "The number of runs after which compiling has paid for itself.",
    "bucket": "A range of sizes that share one compiled graph. Smaller inputs are padded to its upper end.",
    "cell": "One workload at one size.",
    "control": "A workload with a known outcome: one large matrix product takes equal time in both engines.",
    "kernel": "The NumPy function that computes an op. Both engines call the same ones.",
    "ladder": "The static engine with its optimisations switched on one after another. Each adds a rung.",
    "ledger": "The bytes of a step by their purpose, after each op.",
    "mode": "One way to run a workload: the dynamic engine, or the static engine with one shape policy.",
    "op": "One operation on arrays, such as add or matmul.",
    "padding": "Elements added to inputs so that several sizes become one.",
    "parity": "Equal outputs and gradients, within the tolerance of the dtype.",
    "plan": "Where each value of a step lies in the arena, decided when the graph is compiled.",
    "pool": "Memory that the dynamic engine keeps between runs instead of giving it back.",
    "proxy": "Something counted that should go with what the claim says, such as lines of code for effort.",
    "regime": "A condition under which a claim is judged on its own, such as a size of tensors or a kind of workload.",
    "replay": "The dynamic engine runs the last record again while nothing has changed.",
    "rung": "One level of the ladder: one optimisation more than the level below.",
    "shape policy": "How compiled code treats inputs of varying size: exact, symbolic, bucket or pad.",
    "steady state": "What a step takes once its time no longer changes from run to run.",
    "step": "What is measured: a call of the loss with its gradients, or of the function alone.",
    "symbolic": "A size with a name instead of a number: one compiled graph serves all sizes.",
    "tape": "The record that the dynamic engine makes of each run, to compute gradients from.",
    "trace": "To run a function once on values that are not known yet. The result is its graph.",
    "worker": "The fresh process that measures one cell, on one core.",
    "workload": "A function over ops that is measured, with its data and sizes.",
}
_FORMS = {"traced": "trace", "padded": "padding", "shape policies": "shape policy"}
_ANY = "|".join(sorted(map(re.escape, (*WORDS, *_FORMS)), key=len, reverse=True))
CODE = re.compile(r"`([^`\n]+)`")
"""Matches what a sentence has in backticks."""
_WORD = re.compile(rf"{CODE.pattern}|(?<![-\w])(?:{_ANY})(?:s|es)?(?![-\w]| flow|\.\w)", re.IGNORECASE)

_EACH = "Each word with what it means here; pointing at a word says it too"
WORDS_NAME = "words"
"""The anchor of the section; each word has `words-WORD`."""


def glossary(sections: Iterable[Section]) -> Section | None:
    """Return the section with the glossary words that these sections use in sentences; None without any."""
    used = {word for text in _texts(tuple(sections)) for _, word in words_in(text) if word}
    rows = tuple((word, WORDS[word]) for word in sorted(used))
    return (
        Section("Words: what they mean on this page", (FoldedBlock(_EACH, (Terms(rows, WORDS_NAME),)),), WORDS_NAME)
        if rows
        else None
    )


def words_in(text: str) -> Iterator[tuple[str, str]]:
    """Split a text into pieces, each with its glossary word, which is "" for code and for text between words."""
    end = 0
    for match in _WORD.finditer(text):
        yield text[end : match.start()], ""
        yield match[0], "" if match[1] else _base(match[0])
        end = match.end()
    yield text[end:], ""


def word_anchor(word: str) -> str:
    """Return the anchor of a word."""
    return f"{WORDS_NAME}-{word.replace(' ', '-')}"


def _base(form: str) -> str:
    low = form.lower()
    singular = (low.removesuffix("s"), low.removesuffix("es"))
    return next(word for word in (low, _FORMS.get(low, low), *singular) if word in WORDS)


def _texts(value: object) -> Iterator[str]:
    """Yield every sentence in a block and the blocks inside it, without cells of tables and lines of code."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value) and not isinstance(value, Table):
        for field in fields(value):
            if field.name not in _SILENT:
                yield from _texts(getattr(value, field.name))


_SILENT = frozenset({"name", "svg", "narrow", "anchor", "words", "lines", "alt", "table", "icon", "tone", "models"})
