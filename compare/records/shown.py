"""A record as a small table of HTML, as a notebook shows it: a row a field, fields of fields beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from statistics import median
from typing import Any

from msgspec import Struct, to_builtins

_FEW = 4
"""Lists of more numbers are said by their number and median."""


def html(record: Struct, head: str) -> str:
    """The table of the fields that a record has, under a caption; an environment is left to be asked for."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in _rows("", to_builtins(record))
        if name.partition(" ")[0] != "environment"
    )
    return f"<table><caption>{escape(head)}</caption>{rows}</table>"


def _rows(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _rows(f"{prefix} {name}".strip(), inner)
    elif isinstance(value, list) and value and not all(map(_is_number, value)):
        for place, inner in enumerate(value):
            yield from _rows(f"{prefix} {place}".strip(), inner)
    elif value is not None:
        yield prefix, _said(value)


def _said(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > _FEW:
            return f"{len(value)} numbers, median {_said(median(value))}"
        return ", ".join(map(_said, value)) or "none"
    if not _is_number(value):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
