"""What the report says, as plain data: the HTML and the Markdown are two printings of one `Page`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `align` has one letter a column, l or r."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str

    @classmethod
    def of(cls, align: str, rows: Iterable[Mapping[str, str]]) -> Table | None:
        """The table of rows that have each cell under its header, all in one order; None without rows."""
        found = list(rows)
        return cls(tuple(found[0]), tuple(tuple(row.values()) for row in found), align) if found else None


@dataclass(frozen=True)
class Picture:
    """A figure as files beside the report, or, where `name` is None, the reason why it is missing."""

    title: str
    caption: str
    alt: str
    name: str | None
    svg: bytes
    table: Table | None


@dataclass(frozen=True)
class PageVerdict:
    """A claim with what the run says about it; everything is ready to print."""

    claim: str
    title: str
    statement: str
    opposite: str
    word: str
    icon: str
    tone: str
    effect: str
    effect_name: str
    why: str
    measured: str
    rule: str
    regimes: Table | None
    strongest: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    not_tested: tuple[str, ...]
    literature: tuple[str, ...]


@dataclass(frozen=True)
class Frameworks:
    """What a run says of other frameworks: whether they agree with our engines, why not, and what each took."""

    question: str
    notes: tuple[str, ...]
    agreement: Table
    reasons: tuple[tuple[str, tuple[str, ...]], ...]
    cells: Table
    verdicts: tuple[tuple[str, Table], ...]


@dataclass(frozen=True)
class Page:
    """A whole report, in reading order."""

    title: str
    subtitle: str
    headline: tuple[str, ...]
    verdicts: tuple[PageVerdict, ...]
    pictures: tuple[Picture, ...]
    parity_notes: tuple[str, ...]
    parity: Table | None
    environment: Table | None
    commands: tuple[str, ...]
    limits: tuple[str, ...]
    failures: Table | None
    frameworks: Frameworks | None = None
