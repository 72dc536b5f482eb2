"""What is printed on a terminal: text alone, whatever names a results file or a function of the user's brings along."""

from __future__ import annotations

import shutil
import sys
import textwrap

import click


def wrapped(text: str) -> str:
    """The text with its lines broken between words where stderr is a terminal, and as it is elsewhere."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join(lines)


def echo(text: str = "", *, err: bool = False) -> None:
    """A line of plain text on stdout, or on stderr."""
    from graphs.plain import plain  # which loads NumPy: help prints without it

    click.echo(plain(text), err=err)
