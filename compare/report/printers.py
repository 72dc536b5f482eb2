"""The page as one HTML file with styles and figures inside, or as Markdown with the figures as files beside it.

The HTML file opens from a disk without a network. In both, every text of the page is escaped.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import assert_never

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import to_builtins

from compare.report import blocks
from compare.report.blocks import Block, FoldedBlock, Page, Picture, Section, Table, Terms
from compare.report.figures import style
from compare.report.figures.style import with_classes
from graphs.errors import plain

_LONG = 8  # a table or list with more rows than this starts folded
_PROLOG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r' (?:width|height)="[^"]*"')
_WIDE = re.compile(r' width="([0-9.]+)pt"')
_PIXELS = 4 / 3  # CSS pixels per point
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_THEMED = {
    style.INK: "ink",
    "#000000": "ink",
    style.FAINT: "faint",
    style.BAND: "band",
    style.STYLE["grid.color"]: "grid",
    style.TINT: "tint",
    style.EDGE: "soft",
    "#ffffff": "card",
}
"""The colours of figures that follow the theme of the page, each with its variable in report.css."""
_COLOUR = re.compile("|".join(_THEMED))
_NAME = re.compile(r'(\bid="|\bhref="#|url\(#)')


def to_html(page: Page) -> str:
    """Return the HTML of `page`; every text in it is escaped."""
    defined = {word for section in page.sections for word in _defined_terms(section)}
    return plain(_environment(defined).get_template("report.html.j2").render(page=page, long=_LONG))


def _defined_terms(section: Section) -> Iterator[str]:
    for block in section.blocks:
        for inner in block.blocks if isinstance(block, FoldedBlock) else (block,):
            if isinstance(inner, Terms) and inner.defines:
                yield from (name for name, _ in inner.rows)


def _environment(unused: set[str]) -> Environment:
    environment = Environment(
        loader=PackageLoader("compare.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "plain": to_builtins,
        "inlined": _inline_svg,
        "trusted": Markup,
    }
    environment.filters |= {"anchor": blocks.word_anchor, "linked": partial(_link_terms, unused)}
    return environment


def _link_terms(unused: set[str], said: str) -> Markup:
    """Link the first use of each defined word to its meaning, and set what stands in backticks as code.

    `unused` are the words that are not linked on the page yet.
    """
    pieces = []
    for piece, word in blocks.words_in(said):
        if word in unused:
            unused.remove(word)
            pieces.append(
                Markup('<a class="word" href="#{}" title="{}">{}</a>').format(
                    blocks.word_anchor(word), blocks.WORDS[word], piece
                )
            )
        else:
            code = blocks.CODE.fullmatch(piece)
            pieces.append(Markup("<code>{}</code>").format(code[1]) if code else Markup("{}").format(piece))
    return Markup("").join(pieces)


def _inline_svg(picture: Picture, svg: str, which: str) -> Markup:
    """Return a figure's SVG for inlining, so that it follows the page's theme; its ids get the picture's name first."""
    head, opening, body = _STYLE.sub("", _METADATA.sub("", _PROLOG.sub("", svg))).partition(">")
    points = float(_WIDE.findall(head)[0])
    sized = f'{_SIZE.sub("", head)} style="max-width: {points * _PIXELS:.0f}px"{opening}'
    bare = sized + _COLOUR.sub(lambda colour: f"var(--{_THEMED[colour[0]]})", body)
    named = with_classes(_NAME.sub(rf"\g<1>{picture.name}-{which}-", bare), f"{picture.name}-{which}-s")
    label = str(Markup.escape(picture.alt))
    return Markup(named.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))  # noqa: S704 (matplotlib escapes)


# Markdown -------------------------------------------------------------------------------------------------------------


# Only characters that would be markup in their place: rnn_text and [0.40, 0.42] stay as they are.
_MARKUP = re.compile(r"([\\`*|~$]|(?<!\w)_|_(?!\w)|\](?=[(\[:]))")
_LINE_START = re.compile(r"^(#*|\d*)([-+#.)])(?=\s|-|$)")  # the start of a list item, a heading or a rule
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")
_DEEPEST = 6


def to_markdown(page: Page) -> str:
    """Return the Markdown of `page`; text is escaped, so that no result can add markup."""
    parts: tuple[Block, ...] = (*filter(None, (page.conditions,)), *page.sections)
    pieces = (piece for part in parts for piece in _print_block(part, 2))
    return "\n\n".join(filter(None, (f"# {_text(page.title)}", _text(page.subtitle), *pieces))) + "\n"


def _print_block(block: Block, level: int) -> Iterator[str]:
    """Yield the pieces of Markdown of a block."""
    match block:
        case blocks.Section():
            yield f"{'#' * min(level, _DEEPEST)} {_text(block.title)}"
            for inner in block.blocks:
                yield from _print_block(inner, level + 1)
        case blocks.FoldedBlock():
            yield f"**{_text(block.title)}**"
            for inner in block.blocks:
                yield from _print_block(inner, level)
        case blocks.Picture():
            yield f"{'#' * min(level, _DEEPEST)} {_text(block.title)}"
            yield f"![{_text(block.title)}](plots/{block.name}.png)"
            yield _text(block.caption)
            yield markdown_table(block.table)
        case blocks.PicturedTable():
            rows = tuple((*row, picture.words) for row, picture in zip(block.table.rows, block.pictures, strict=True))
            yield from _print_block(replace(block.table, rows=rows), level)
        case blocks.Table():
            yield f"**{_text(block.title)}**" if block.title else ""
            yield markdown_table(block)
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
            headers = ("claim", "verdict", "effect [95% interval]", "why")
            rows = [(f"{r.id} {r.title}", f"{r.mark.icon} {r.mark.word}", r.mark.effect, r.why) for r in block.rows]
            return markdown_table(Table(headers, tuple(rows), "llrl") if rows else None)
        case blocks.Calculator():
            return ""  # Markdown has no scripts; the formula and its coefficients are printed beside it
        case blocks.Terms():
            return _bullets(f"**{_text(name)}:** {_text(said)}" for name, said in block.rows)
        case blocks.Code():
            return "\n".join(f"    {_one_line(line)}" for line in block.lines)
        case _:
            assert_never(block)


def markdown_table(of: Table | None) -> str:
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
