"""The files of the gate: JUnit's XML, which CI systems show as tests, and a Markdown summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from compare.gate.rules import Judgement
from compare.own.result import Result
from compare.page import show
from compare.records.cells import Parity, ParityArm
from compare.records.record import Failure, of
from graphs.plain import plain

SUITE = "graphduel compare"
_KINDS = {"disagree": "failure", "failed": "error", "unsupported": "skipped"}
_RULES = {"holds": "failure", "not measured": "error"}

Entry = tuple[str, str, str]
"""The name of a test, the element that says how it ended ("" if it passed), and the words."""


def junit(result: Result, judgements: Sequence[Judgement]) -> bytes:
    """A test for the parity of each mode, for each failed measurement and for each rule."""
    return _suite(result.name, [*_parity(result), *_failures(result), *_rules(judgements)])


def junit_of_error(name: str, error: str) -> bytes:
    """One test, which is an error: the comparison of that function came to no result."""
    return _suite(name, [("comparison", "error", error)])


def _suite(name: str, entries: Sequence[Entry]) -> bytes:
    kinds = [kind for _, kind, _ in entries]
    suite = ET.Element("testsuite", name=SUITE, tests=str(len(entries)))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(kinds.count(kind)))
    for test_name, kind, words in entries:
        test = ET.SubElement(suite, "testcase", classname=plain(name), name=plain(test_name))
        if kind:
            ET.SubElement(test, kind, message=plain(words))
        elif words:
            ET.SubElement(test, "system-out").text = plain(words)
    ET.indent(suite)
    return ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"


def markdown(result: Result, judgements: Sequence[Judgement]) -> str:
    """The verdict in a sentence, the table of modes, the rules, and what was refused or failed."""
    parts = [f"## {_text(result.name)}", _text(result.verdict.sentence), _table(*_split(show.table(result)))]
    if judgements:
        rows = [(f"`{judgement.rule.written}`", judgement.outcome, judgement.measured) for judgement in judgements]
        parts.append(_table(("fails if", "outcome", "measured"), rows))
    notes = [f"* {_text(note)}" for note in show.notes_of(result)]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"


def markdown_of_error(name: str, error: str) -> str:
    """That the comparison of that function came to no result, and why."""
    return f"## {_text(name)}\n\nNo result: {_text(error)}\n"


def _split(table: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    return table[0], table[1:]


def _parity(result: Result) -> list[Entry]:
    rows = [item for record in of(result.records, Parity) for item in record.arms.items()]
    return [(f"parity of {mode}", _KINDS.get(row.status, ""), _said(row)) for mode, row in rows]


def _said(row: ParityArm) -> str:
    if row.reason is not None:
        return row.reason
    return f"output error {row.output_error:.1e}, gradient error {row.gradient_error:.1e}, allowed {row.tolerance:g}"


def _failures(result: Result) -> list[Entry]:
    return [("measurement", "error", str(failure.error)) for failure in of(result.records, Failure)]


def _rules(judgements: Iterable[Judgement]) -> list[Entry]:
    return [
        (
            f"--fail-if {judgement.rule.written}",
            _RULES.get(judgement.outcome, ""),
            f"{judgement.outcome}: {judgement.measured}",
        )
        for judgement in judgements
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(words: str) -> str:
    return words if words.startswith(("`", "---")) else _text(words)


def _text(words: str) -> str:
    """Words in one line that Markdown shows as they are."""
    return re.sub(r"([\\`*_<>|#\[\]])", r"\\\1", " ".join(plain(words).split()))
