"""The page as one HTML file: styles and figures are inside it, so it opens from a disk with no network."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import to_builtins

from compare.report.page import Block, Page, Picture
from compare.report.plots import style
from compare.report.plots.compact import with_classes

_LONG = 8  # rows of a table or lines of a list beyond which it starts folded
_PROLOG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r' (?:width|height)="[^"]*"')
_WIDE = re.compile(r' width="([0-9.]+)pt"')
_PIXELS = 4 / 3  # of CSS in a point
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
    """The HTML of `page`; every text of it is escaped."""
    return _environment().get_template("report.html.j2").render(page=page, long=_LONG)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("compare.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"kind": _kind, "plain": to_builtins, "inlined": _inlined, "trusted": Markup}
    return environment


def _kind(block: Block) -> str:
    return type(block).__name__


def _inlined(picture: Picture, svg: str, which: str) -> Markup:
    """A figure as part of the page, so that it follows its theme: every name in it gets that of the picture before."""
    head, opening, body = _STYLE.sub("", _METADATA.sub("", _PROLOG.sub("", svg))).partition(">")
    points = float(_WIDE.findall(head)[0])
    sized = f'{_SIZE.sub("", head)} style="max-width: {points * _PIXELS:.0f}px"{opening}'
    bare = sized + _COLOUR.sub(lambda found: f"var(--{_THEMED[found[0]]})", body)
    named = with_classes(_NAME.sub(rf"\g<1>{picture.name}-{which}-", bare), f"{picture.name}-{which}-s")
    label = str(Markup.escape(picture.alt))
    return Markup(named.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))  # noqa: S704 (matplotlib escapes)
