"""A result as rows of text: plain for a terminal or a log, HTML for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from compare.claims import tape
from compare.own.measure import HERE
from compare.own.verdict import Measured
from compare.records.record import of
from compare.records.runs import Failure, Run
from compare.report import text

COLUMNS = ("mode", "a call, warm", "÷ dynamic", "one run from nothing", "compiles", "memory")
WIDTH = 100
ONE_PROCESS = (
    "intervals: they cover this one process and no other, in which memory may lie otherwise; a function that a file "
    "has by name can be measured in fresh ones"
)

_CELL = "padding:.25em 1.2em .25em 0;border-bottom:1px solid rgba(128,128,128,.35)"


def rows(result: Measured) -> list[tuple[str, ...]]:
    """A row for each mode under COLUMNS; empty where nothing was measured."""
    found = result.verdict
    warm, first, memory = (contest.values for contest in (found.steady, found.first, found.memory))
    return [
        (
            mode,
            text.seconds(warm[mode]) if mode in warm else "",
            _of_dynamic(result, mode),
            text.seconds(first[mode]) if mode in first else "",
            f"{found.compiles[mode]:,}" if mode in found.compiles else "",
            text.size(memory[mode]) if mode in memory else "",
        )
        for mode in result.modes
    ]


def heading(result: Measured) -> str:
    """`loss: value and gradients over 3 inputs; 3 × fresh workers; with the tape in Python`, if it ran there."""
    settings = _settings(result)
    step = "value and gradients" if settings["gradient"] else "value"
    calls = text.counted(settings["inputs"], "input")
    python = "; with the tape in Python" if tape.in_python(result.records) else ""
    return f"{result.name}: {step} over {calls}; {settings['processes']} × {settings['where']}{python}"


def plain(result: Measured) -> str:
    """The heading, an aligned table and the verdict, as wide as a page."""
    lines = [heading(result), "", *aligned((COLUMNS, *rows(result))), ""]
    notes = [
        line
        for note in notes_of(result)
        for line in textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    ]
    return "\n".join([*lines, *textwrap.wrap(result.verdict.sentence, WIDTH, break_on_hyphens=False), *notes])


def notes_of(result: Measured) -> list[str]:
    """That all ran in one process or in Python, effects allowed, why modes were not timed, and what failed."""
    refused = [f"{mode}: {reason}" for mode, reason in result.verdict.refused.items()]
    where = tape.in_python(result.records)
    slow = [f"{where}: the dynamic engine takes longer than compiled; see graphduel doctor"] if where else []
    effects = [f"besides its result, {result.name} {effect}" for effect in _settings(result).get("effects", ())]
    alone = [ONE_PROCESS] if _settings(result)["where"] == HERE else []
    return [*slow, *alone, *effects, *refused, *(f"failed: {failure.error}" for failure in of(result.records, Failure))]


def _settings(result: Measured) -> Mapping[str, Any]:
    return of(result.records, Run)[0].settings


def aligned(table: Iterable[Sequence[str]]) -> list[str]:
    """The rows as lines: the first column to the left, numbers to the right."""
    body = list(table)
    widths = [max(map(len, column)) for column in zip(*body, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in body
    ]


def html(result: Measured) -> str:
    """The same as an HTML fragment; every text in it is escaped."""
    head = "".join(_cell("th", name, place) for place, name in enumerate(COLUMNS))
    body = "".join(f"<tr>{''.join(_cell('td', c, i) for i, c in enumerate(row))}</tr>" for row in rows(result))
    notes = "".join(f"<p>{escape(note)}</p>" for note in notes_of(result))
    return (
        '<div style="max-width:60em">'
        f"<p><strong>{escape(heading(result))}</strong></p>"
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{escape(result.verdict.sentence)}</p>{notes}</div>"
    )


def _cell(tag: str, value: str, place: int) -> str:
    return f'<{tag} style="{_CELL};text-align:{"right" if place else "left"}">{escape(value)}</{tag}>'


def _of_dynamic(result: Measured, mode: str) -> str:
    ratio = result.verdict.of_dynamic.get(mode)
    return f"{text.ratio(ratio.estimate)} {text.interval(ratio.low, ratio.high)}" if ratio else ""
