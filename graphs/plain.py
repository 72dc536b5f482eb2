"""Plain text: control characters from user names and files are escaped before they reach a terminal or a page."""

from __future__ import annotations

import html
import re

# Control characters but tab and newline, characters that reverse the direction of text, surrogates, and characters
# that XML forbids.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def plain(text: str) -> str:
    """Escape each character that a terminal would obey or a page cannot hold: ESC is written as its code."""
    return text if text.isprintable() else _UNSAFE.sub(_escape_match, text)


def one_line(text: str) -> str:
    """Escape like `plain`, and line breaks and tabs too: so no name begins a line of its own."""
    return text if text.isprintable() else plain(text).replace("\n", "\\n").replace("\t", "\\t")


def escape_html(text: str) -> str:
    """Escape a text for HTML and SVG, also inside attributes."""
    return html.escape(plain(text))


def _escape_match(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
