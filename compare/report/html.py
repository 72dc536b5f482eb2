"""The page as one HTML file: styles and figures are inside it, so it opens from a disk with no network."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compare.report.page import Block, Page, Picture

_LONG = 8  # rows of a table or lines of a list beyond which it starts folded
_PROLOG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(<svg[^>]*?) width="[^"]*"| height="[^"]*"(?=[^>]*viewBox)')
_NAME = re.compile(r'((?:\bid|href)="#?|url\(#)')


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
    environment.filters |= {"kind": _kind, "inlined": _inlined, "trusted": Markup}
    return environment


def _kind(block: Block) -> str:
    return type(block).__name__


def _inlined(picture: Picture, svg: str, which: str) -> Markup:
    """A figure as part of the page, so that it follows its theme: every name in it gets that of the picture before."""
    bare = _METADATA.sub("", _PROLOG.sub("", svg))
    named = _NAME.sub(rf"\g<1>{picture.name}-{which}-", bare)
    label = str(Markup.escape(picture.alt))
    return Markup(named.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))  # noqa: S704 (matplotlib escapes)
