"""What is printed on a terminal: text alone, whatever names a results file or a function of the user's brings along."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap

import click

# Control characters but tab and newline, what turns the direction of text around, and halves of characters.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with each character that a terminal would obey written out, ESC as a backslash and `x1b`."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def wrapped(text: str) -> str:
    """The text with its lines broken between words where stderr is a terminal, and as it is elsewhere."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join(lines)


def echo(text: str = "", *, err: bool = False) -> None:
    """A line of plain text on stdout, or on stderr."""
    click.echo(plain(text), err=err)
