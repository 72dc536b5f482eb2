"""Text that only says what it says: whatever names of the user's, or of a file, bring along."""

from __future__ import annotations

import html
import re

# Control characters but tab and newline, what turns the direction of text around, halves of characters, and what XML
# forbids besides.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def plain(text: str) -> str:
    """The text with each character that a terminal would obey, or a page not hold, written out, ESC as its code."""
    return text if text.isprintable() else _UNSAFE.sub(_escape_match, text)


def one_line(text: str) -> str:
    """The same in one line, with line breaks and tabs written out too: so no name begins a line of its own."""
    return text if text.isprintable() else plain(text).replace("\n", "\\n").replace("\t", "\\t")


def escape_html(text: str) -> str:
    """The text, plain, as part of HTML or SVG, and of an attribute there."""
    return html.escape(plain(text))


def _escape_match(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
