"""The page as Markdown, with the figures as files beside it."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch

from compare.page.blocks import (
    Block,
    Bullets,
    Calculator,
    Claims,
    Code,
    Folded,
    Inline,
    Page,
    Picture,
    PicturedTable,
    Section,
    Table,
    Terms,
    VerdictMark,
)
from compare.words.terminal import plain

# Only what would be markup where it stands: rnn_text and [0.40, 0.42] stay as they are.
_MARKUP = re.compile(r"([\\`*|~$]|(?<!\w)_|_(?!\w)|\](?=[(\[:]))")
_LINE_START = re.compile(r"^(#*|\d*)([-+#.)])(?=\s|-|$)")  # of a list, a heading or a rule
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")
_DEEPEST = 6


def render(page: Page) -> str:
    """The Markdown of `page`; text is escaped, so no result can add markup of its own."""
    return "\n\n".join(filter(None, _blocks(page))) + "\n"


def _blocks(page: Page) -> Iterator[str]:
    yield f"# {_text(page.title)}"
    yield _text(page.subtitle)
    if page.conditions:
        yield from _printed(page.conditions, 2)
    for section in page.sections:
        yield from _section(section, 2)


def _section(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, _DEEPEST)} {_text(section.title)}"
    for block in section.blocks:
        yield from _printed(block, level + 1)


@singledispatch
def _printed(block: Block, _level: int) -> Iterator[str]:
    """The pieces of Markdown that a block is; one of a kind that nobody knows is an error here, not a gap there."""
    raise TypeError(f"a page holds no {type(block).__name__}")


@_printed.register
def _(block: Section, level: int) -> Iterator[str]:
    yield from _section(block, level)


@_printed.register
def _(block: Folded, level: int) -> Iterator[str]:
    yield f"**{_text(block.title)}**"
    for inner in block.blocks:
        yield from _printed(inner, level)


@_printed.register
def _(block: str, _level: int) -> Iterator[str]:
    yield _text(block)


@_printed.register
def _(block: Inline, _level: int) -> Iterator[str]:
    yield _text(block.words)


@_printed.register
def _(block: VerdictMark, _level: int) -> Iterator[str]:
    yield f"**{block.icon} {_text(block.word)}** {_text(f'{block.effect} {block.of}')}".strip()


@_printed.register
def _(block: Table, _level: int) -> Iterator[str]:
    yield f"**{_text(block.title)}**" if block.title else ""
    yield table(block)


@_printed.register
def _(block: PicturedTable, level: int) -> Iterator[str]:
    rows = tuple((*row, picture.words) for row, picture in zip(block.table.rows, block.pictures, strict=True))
    yield from _printed(replace(block.table, rows=rows), level)


@_printed.register
def _(block: Claims, _level: int) -> Iterator[str]:
    rows = tuple((f"{r.id} {r.title}", f"{r.mark.icon} {r.mark.word}", r.mark.effect, r.why) for r in block.rows)
    yield table(Table(("claim", "verdict", "effect [95% interval]", "why"), rows, "llrl")) if rows else ""


@_printed.register
def _(_block: Calculator, _level: int) -> Iterator[str]:
    yield from ()  # Markdown runs no script: the formula and its coefficients stand beside it


@_printed.register
def _(block: Bullets, _level: int) -> Iterator[str]:
    yield f"**{_text(block.title)}**" if block.title else ""
    yield _bullets(map(_text, block.items))


@_printed.register
def _(block: Terms, _level: int) -> Iterator[str]:
    yield _bullets(f"**{_text(name)}:** {_text(said)}" for name, said in block.rows)


@_printed.register
def _(block: Code, _level: int) -> Iterator[str]:
    yield "\n".join(f"    {_one_line(line)}" for line in block.lines)


@_printed.register
def _(block: Picture, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, _DEEPEST)} {_text(block.title)}"
    yield f"![{_text(block.title)}](plots/{block.name}.png)"
    yield _text(block.caption)
    yield table(block.table)


def table(of: Table | None) -> str:
    """A table, its cells escaped; nothing for None."""
    if of is None:
        return ""
    rules = tuple({"l": ":--", "r": "--:"}[side] for side in of.align)
    rows = (tuple(map(_text, of.headers)), rules, *(tuple(map(_text, row)) for row in of.rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def _text(value: str) -> str:
    """`value` as one line of plain words: no markup, no HTML, no link."""
    plain = html.escape(_MARKUP.sub(r"\\\1", _one_line(value)), quote=False)
    plain = _AUTOLINK.sub(lambda match: f"{match[1]}&#{ord(match[2])};", plain)
    return _LINE_START.sub(r"\1\\\2", plain)


def _one_line(value: str) -> str:
    return plain(" ".join(value.split()))
