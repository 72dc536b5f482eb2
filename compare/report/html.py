"""The page as one HTML file: styles and figures are inside it, so it opens from a disk with no network."""

from base64 import b64encode
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from compare.report.page import Page

_LONG = 8  # rows of a table or lines of a list beyond which it starts folded


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
    environment.filters["data_uri"] = _data_uri
    return environment


def _data_uri(svg: Any) -> str:
    """A figure as an image source; an image, unlike inline SVG, shares no ids with the next on the page."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode('ascii')}"
