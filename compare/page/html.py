"""The page as one HTML file with styles and figures inside, so that it opens from a disk without a network."""

import re
from collections.abc import Iterator
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import to_builtins

from compare.page import terms
from compare.page.blocks import FoldedBlock, Page, Picture, Section, Terms
from compare.page.figures import style
from compare.page.figures.style import with_classes
from graphs.plain import plain

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


def render(page: Page) -> str:
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
        loader=PackageLoader("compare.page"),
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
    environment.filters |= {"anchor": terms.anchor, "linked": partial(_link_terms, unused)}
    return environment


def _link_terms(unused: set[str], said: str) -> Markup:
    """Link the first use of each defined word to its meaning; `unused` are the words not linked on the page yet."""
    pieces = []
    for piece, word in terms.words_in(said):
        if word in unused:
            unused.remove(word)
            pieces.append(
                Markup('<a class="word" href="#{}" title="{}">{}</a>').format(
                    terms.anchor(word), terms.WORDS[word], piece
                )
            )
        else:
            pieces.append(Markup("{}").format(piece))
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
