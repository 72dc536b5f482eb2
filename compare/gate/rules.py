"""The rules of `--fail-if`: `static > 1.05` holds where static takes more than 1.05 times as long as dynamic.

    RULE = MODE [ "/" MODE ] ( ">" | ">=" | "<" | "<=" ) NUMBER

The ratio is of the steady times of two modes; the second is the first measured mode, such as dynamic, if it is not
named. A rule holds only if the whole 95% interval of the ratio lies on its side, so that noise alone fails no build.

The second part is the gate of `graphduel compare`: it judges the rules, computes the exit code, and writes JUnit XML,
which CI systems show as tests, and a Markdown summary.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from compare import text
from compare.claims.evidence import cells, join_evidence, steady
from compare.claims.verdict import ratio_of
from compare.errors import InputsError, NothingMeasuredError
from compare.own.plan import ComparisonPlan
from compare.own.result import Result
from compare.page import show
from compare.records.cells import Parity, ParityRow, Time
from compare.records.record import Failure, Records, records_of
from compare.stats import LEAST, Interval
from graphs.files import write_file
from graphs.plain import plain

ALLOWED = "write MODE > NUMBER or MODE / MODE > NUMBER, with >, >=, < or <=, such as 'static > 1.05'"

Outcome = Literal["holds", "does not hold", "unclear", "not measured"]

_RULE = re.compile(r"([\w-]+)\s*(?:/\s*([\w-]+))?\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?)", re.ASCII)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class FailRule:
    """A rule as written, and its parts: the ratio `top / bottom` of two modes is compared with a number."""

    written: str
    top: str
    bottom: str
    comparison: str
    number: float

    def judge(self, records: Records) -> Judgement:
        """Judge the rule by the records of one function."""
        timed = cells(records, Time)
        ratio = ratio_of(join_evidence(timed), self.top, self.bottom, steady) if timed else None
        if ratio is None:
            return Judgement(self, "not measured", None)
        compared = _COMPARISONS[self.comparison]
        ends = {compared(ratio.low, self.number), compared(ratio.high, self.number)}
        if len(ends) == 2 or not ratio.bounded:
            return Judgement(self, "unclear", ratio)
        return Judgement(self, "holds" if ends.pop() else "does not hold", ratio)


@dataclass(frozen=True)
class Judgement:
    """A rule, whether it holds, and the ratio with its interval."""

    rule: FailRule
    outcome: Outcome
    ratio: Interval | None

    @property
    def measured(self) -> str:
        """The measured ratio in words, as `static-exact ÷ dynamic is 0.45× [0.44, 0.46]`."""
        pair = f"{self.rule.top} ÷ {self.rule.bottom}"
        return f"{pair} is {text.estimate(self.ratio)}" if self.ratio else f"{pair} was not measured"

    def __str__(self) -> str:
        return f"--fail-if '{self.rule.written}': {self.outcome}: {self.measured}"


def parse_rule(written: str, modes: Sequence[str], aliases: Mapping[str, str]) -> FailRule:
    """Parse a rule over the measured modes; a rule with one mode compares it with the first of them.

    Raises InputsError, which says what is allowed.
    """
    parts = _RULE.fullmatch(written.strip())
    if parts is None:
        raise InputsError(f"--fail-if {written!r} cannot be read; {ALLOWED}")
    top, bottom = (aliases.get(name, name) for name in (parts[1], parts[2] or modes[0]))
    for mode in (top, bottom):
        if mode not in modes:
            raise InputsError(f"--fail-if {written!r}: {mode} is not measured; the modes that are: {', '.join(modes)}")
    if top == bottom:
        raise InputsError(f"--fail-if {written!r} compares {top} with itself; {ALLOWED}")
    number = float(parts[4])
    if not number:
        raise InputsError(f"--fail-if {written!r} compares with 0, which no ratio reaches; {ALLOWED}")
    return FailRule(written.strip(), top, bottom, parts[3], number)


RULE_HOLDS = 6
"""The exit code if a rule holds."""
_INCONCLUSIVE = 3


@dataclass(frozen=True)
class Gate:
    """The rules of a comparison, and the files to write: JUnit XML and a Markdown summary."""

    rules: tuple[FailRule, ...] = ()
    junit: Path | None = None
    summary: Path | None = None

    def judge(self, result: Result) -> tuple[Judgement, ...]:
        """Judge each rule, write the files, and return the judgements."""
        judgements = tuple(rule.judge(result.records) for rule in self.rules)
        if self.junit is not None:
            write_file(self.junit, junit(result, judgements))
        if self.summary is not None:
            write_file(self.summary, markdown(result, judgements).encode())
        return judgements

    def fail(self, name: str, error: str) -> None:
        """Write the files for a comparison of the function `name` that ended in an error: one test, and why."""
        if self.junit is not None:
            write_file(self.junit, _suite(name, [("comparison", "error", error)]))
        if self.summary is not None:
            write_file(self.summary, f"## {_text(name)}\n\nNo result: {_text(error)}\n".encode())


def gate(rules: Sequence[str], junit: Path | None, summary: Path | None, plans: Sequence[ComparisonPlan]) -> Gate:
    """Make the gate of these rules and files, over the modes of all plans.

    Raises InputsError for a rule that cannot be read, or could never be judged.
    """
    modes = tuple(mode for plan in plans for mode in plan.subject.labels)
    aliases = {alias: mode for plan in plans for alias, mode in plan.subject.adapter.aliases.items()}
    processes = plans[0].situation.processes
    read = tuple(parse_rule(rule, modes, aliases) for rule in rules)
    if rules and 0 < processes < LEAST:
        asked = f"--processes 0 or at least {LEAST}, not {processes}"
        raise InputsError(f"--fail-if needs an interval, and so {asked}")
    return Gate(read, junit, summary)


def exit_code(measured: int, judgements: Sequence[Judgement]) -> int:
    """Return the exit code of a comparison with rules; without rules it would be `measured`.

    Errors of measuring come first, then 5 for a rule whose modes were not measured, then `RULE_HOLDS`. Times that
    cannot be told apart, which alone give 3, do not fail a gate with rules.
    """
    if not judgements or measured not in (0, _INCONCLUSIVE):
        return measured
    outcomes = {judgement.outcome for judgement in judgements}
    if "not measured" in outcomes:
        return NothingMeasuredError.exit_code
    return RULE_HOLDS if "holds" in outcomes else 0


SUITE = "graphduel compare"
_KINDS = {"disagree": "failure", "failed": "error", "unsupported": "skipped"}
_RULES = {"holds": "failure", "not measured": "error"}

Entry = tuple[str, str, str]
"""A JUnit test: its name, the XML element of its outcome ("" if it passed), and the message."""


def junit(result: Result, judgements: Sequence[Judgement]) -> bytes:
    """Return JUnit XML with a test for the parity of each mode, for each failed measurement and for each rule."""
    compared = [item for record in records_of(result.records, Parity) for item in record.modes.items()]
    return _suite(
        result.name,
        [
            *(
                (f"parity of {mode}", _KINDS.get(row.status, ""), _errors(row) if row.reason is None else row.reason)
                for mode, row in compared
            ),
            *(("measurement", "error", str(failure.error)) for failure in records_of(result.records, Failure)),
            *(
                (f"--fail-if {each.rule.written}", _RULES.get(each.outcome, ""), f"{each.outcome}: {each.measured}")
                for each in judgements
            ),
        ],
    )


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
    """Return Markdown with the verdict in a sentence, the table of modes, the rules, and notes on refusals."""
    head, *modes = show.table(result)
    parts = [f"## {_text(result.name)}", _text(result.verdict.sentence), _table(head, modes)]
    if judgements:
        rows = [(f"`{judgement.rule.written}`", judgement.outcome, judgement.measured) for judgement in judgements]
        parts.append(_table(("fails if", "outcome", "measured"), rows))
    notes = [f"* {_text(note)}" for note in show.notes_of(result)]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"


def _errors(row: ParityRow) -> str:
    return f"output error {row.output_error:.1e}, gradient error {row.gradient_error:.1e}, allowed {row.tolerance:g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    cells = ([words if words.startswith(("`", "---")) else _text(words) for words in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _text(words: str) -> str:
    """Return words in one line, escaped for Markdown."""
    return re.sub(r"([\\`*_<>|#\[\]])", r"\\\1", " ".join(plain(words).split()))
