"""The page as Markdown, with the figures as files beside it."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from compare.page import blocks
from compare.page.blocks import Block, Page, Section, Table
from graphs.plain import plain

# Only characters that would be markup in their place: rnn_text and [0.40, 0.42] stay as they are.
_MARKUP = re.compile(r"([\\`*|~$]|(?<!\w)_|_(?!\w)|\](?=[(\[:]))")
_LINE_START = re.compile(r"^(#*|\d*)([-+#.)])(?=\s|-|$)")  # the start of a list item, a heading or a rule
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")
_DEEPEST = 6


def render(page: Page) -> str:
    """Return the Markdown of `page`; text is escaped, so that no result can add markup."""
    return "\n\n".join(filter(None, _blocks(page))) + "\n"


def _blocks(page: Page) -> Iterator[str]:
    yield f"# {_text(page.title)}"
    yield _text(page.subtitle)
    if page.conditions:
        yield from _print_block(page.conditions, 2)
    for section in page.sections:
        yield from _section(section, 2)


def _section(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, _DEEPEST)} {_text(section.title)}"
    for block in section.blocks:
        yield from _print_block(block, level + 1)


def _print_block(block: Block, level: int) -> Iterator[str]:
    """Yield the pieces of Markdown of a block."""
    match block:
        case blocks.Section():
            yield from _section(block, level)
        case blocks.FoldedBlock():
            yield f"**{_text(block.title)}**"
            for inner in block.blocks:
                yield from _print_block(inner, level)
        case blocks.Picture():
            yield f"{'#' * min(level, _DEEPEST)} {_text(block.title)}"
            yield f"![{_text(block.title)}](plots/{block.name}.png)"
            yield _text(block.caption)
            yield table(block.table)
        case blocks.PicturedTable():
            rows = tuple((*row, picture.words) for row, picture in zip(block.table.rows, block.pictures, strict=True))
            yield from _print_block(replace(block.table, rows=rows), level)
        case blocks.Table():
            yield f"**{_text(block.title)}**" if block.title else ""
            yield table(block)
        case blocks.Bullets():
            yield f"**{_text(block.title)}**" if block.title else ""
            yield _bullets(map(_text, block.items))
        case _:
            yield _piece(block)


def _piece(
    block: str | blocks.Inline | blocks.VerdictMark | blocks.Claims | blocks.Calculator | blocks.Terms | blocks.Code,
) -> str:
    """Return the Markdown of a block of one piece; a type that is not handled here is an error of the type checker."""
    match block:
        case str():
            return _text(block)
        case blocks.Inline():
            return _text(block.words)
        case blocks.VerdictMark():
            return f"**{block.icon} {_text(block.word)}** {_text(f'{block.effect} {block.of}')}".strip()
        case blocks.Claims():
            rows = [(f"{r.id} {r.title}", f"{r.mark.icon} {r.mark.word}", r.mark.effect, r.why) for r in block.rows]
            return table(
                Table(("claim", "verdict", "effect [95% interval]", "why"), tuple(rows), "llrl") if rows else None
            )
        case blocks.Calculator():
            return ""  # Markdown has no scripts; the formula and its coefficients are printed beside it
        case blocks.Terms():
            return _bullets(f"**{_text(name)}:** {_text(said)}" for name, said in block.rows)
        case blocks.Code():
            return "\n".join(f"    {_one_line(line)}" for line in block.lines)
        case _:
            assert_never(block)


def table(of: Table | None) -> str:
    """Return a table in Markdown with escaped cells; "" for None."""
    if of is None:
        return ""
    rules = tuple({"l": ":--", "r": "--:"}[side] for side in of.align)
    rows = (tuple(map(_text, of.headers)), rules, *(tuple(map(_text, row)) for row in of.rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def _text(value: str) -> str:
    """Return `value` as one line of plain text without markup, HTML or links."""
    plain = html.escape(_MARKUP.sub(r"\\\1", _one_line(value)), quote=False)
    plain = _AUTOLINK.sub(lambda match: f"{match[1]}&#{ord(match[2])};", plain)
    return _LINE_START.sub(r"\1\\\2", plain)


def _one_line(value: str) -> str:
    return plain(" ".join(value.split()))
