"""Words of modes: `compile(dynamic=True, backend="aot_eager")`, a compiler and its keywords as its users write them.

A word is all that defines a mode. `NAME=WORD` gives the mode a name of its own. Values are literals, so that a mode's
name carries its word through jobs, journals and records, and any process reads it again; nothing is evaluated.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compare.errors import InputsError
from compare.records.record import NAME

LIKE = 'such as compile(dynamic=True, mode="max-autotune")'
VALUES = "numbers, text in quotes, True, False, None, and tuples, lists and dicts of these"

_NAMED = re.compile(rf"\s*({NAME})\s*=\s*(.*)", re.ASCII | re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def part(written: str) -> tuple[str, str]:
    """Return the name and the word of `NAME=WORD`; the name is "" for a word alone."""
    named = _NAMED.fullmatch(written)
    return (named[1], named[2].strip()) if named else ("", written.strip())


def is_call(word: str) -> bool:
    """Return whether a word has keywords, or none in brackets; a bare name is a mode or what a framework lists."""
    return "(" in word


def parse(word: str) -> tuple[str, dict[str, Any]]:
    """Return the compiler of a word, and the values of its keywords. Raises InputsError for what is no word."""
    try:
        call: Any = ast.parse(word.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputsError(f"{word!r} cannot be read as a mode; write a compiler and its keywords, {LIKE}") from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise InputsError(f"{word!r} is no mode; write a compiler and its keywords, {LIKE}")
    compiler = call.func.id
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise InputsError(f"{word}: every option of {compiler} has its name, {LIKE}")
    values: dict[str, Any] = {}
    for keyword in call.keywords:
        name = str(keyword.arg)
        if name in values:
            raise InputsError(f"{word}: {name} is given twice")
        values[name] = _literal(word, name, keyword.value)
    return compiler, values


def _literal(word: str, name: str, node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        value = ...
    if not _is_plain(value):
        raise InputsError(f"{word}: {name} is not written out; it may hold {VALUES}")
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(part) for pair in value.items() for part in pair)
    return value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def text(compiler: str, values: Mapping[str, Any]) -> str:
    """Return a word that `parse` reads as this compiler and these values."""
    return f"{compiler}({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def folder(mode: str) -> str:
    """Return the name of a folder for a mode, whose word may hold what no file's name has."""
    return mode if re.fullmatch(NAME, mode, re.ASCII) else hashlib.sha256(mode.encode()).hexdigest()[:16]


def split(listed: str) -> list[str]:
    """Split words at the commas that stand outside of brackets and quotes."""
    return [word for each in _parts(listed) if (word := each.strip())]


def _parts(listed: str) -> Iterator[str]:
    start, quote, open_, place = 0, "", list[str](), 0
    while place < len(listed):
        mark = listed[place]
        if quote:
            place += mark == "\\"
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        elif mark in _CLOSING:
            open_.append(_CLOSING[mark])
        elif open_ and mark == open_[-1]:
            open_.pop()
        elif mark == "," and not open_:
            yield listed[start:place]
            start = place + 1
        place += 1
    yield listed[start:]
