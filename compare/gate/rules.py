"""The rules of `--fail-if`: `static > 1.05` holds where static takes more than 1.05 times as long as dynamic.

    RULE     = [ MODE "." ] QUANTITY [ "/" MODE ] COMPARISON NUMBER [ UNIT ]
             | MODE [ "/" MODE ] COMPARISON NUMBER
    QUANTITY = "call" | "first_run" | "memory" | "compiles" | "breaks" | "coverage"

A rule without a quantity is about a warm call. Seconds and bytes with a unit are compared as they are. Without one they
are divided by those of a second mode: of the first measured one, such as dynamic, if it is not named; of the same mode
in an earlier run, if it is `baseline`. Counts and the coverage are compared as they are. Without a mode a rule is about
the first mode that compiles. A rule holds only if the whole 95% interval lies on its side, so that noise alone fails no
build.

The second part is the gate of `graphduel compare`: it judges the rules, computes the exit code, and writes JUnit XML,
which CI systems show as tests, and a Markdown summary.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from compare import text
from compare.claims.threads import busy_sentence
from compare.engines import OWN, find_engine
from compare.errors import InputsError, NothingMeasuredError
from compare.gate.quantities import QUANTITIES, Quantity
from compare.own.result import Result
from compare.plans.comparison import ComparisonPlan
from compare.records.cells import Parity, ParityRow
from compare.records.record import Cell, Failure, OfModes, Record, Records, group_by, records_of
from compare.report import show
from compare.stats import LEAST, Interval
from compare.workloads import nearest
from graphs.errors import plain
from graphs.files import write_file

ALLOWED = (
    "write MODE > NUMBER or MODE / MODE > NUMBER, with >, >=, < or <=, such as 'static > 1.05', or one of "
    f"{', '.join(QUANTITIES)} of a mode, such as 'compile.compiles > 2' or 'compile.first_run > 30 s'"
)
BASELINE = "baseline"
"""The word for the same mode in an earlier run."""
TIME = "call"
"""The quantity of a rule that names none."""

Outcome = Literal["holds", "does not hold", "unclear", "not measured"]

_SIDE = r"([\w-]+)(?:\.(\w+))?"
_RULE = re.compile(rf"{_SIDE}\s*(?:/\s*([\w-]+))?\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Zµ]*)", re.ASCII)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class FailRule:
    """A rule as written, and its parts: a `quantity` of the mode `top`, or its ratio to `bottom`, and a number.

    `bottom` is a mode, `BASELINE`, or "" where the quantity is compared as it is. `number` is in seconds or bytes where
    the rule has a unit.
    """

    written: str
    top: str
    bottom: str
    comparison: str
    number: float
    quantity: str = TIME

    def judge(self, records: Records, before: Records = ()) -> Judgement:
        """Judge the rule by the records of one function; `before` are those of the baseline."""
        measured = self._measure(QUANTITIES[self.quantity], records, before)
        if measured is None:
            return Judgement(self, "unclear" if busy_sentence(records) else "not measured", None)
        compared = _COMPARISONS[self.comparison]
        ends = {compared(measured.low, self.number), compared(measured.high, self.number)}
        if len(ends) == 2 or not measured.bounded:
            return Judgement(self, "unclear", measured)
        return Judgement(self, "holds" if ends.pop() else "does not hold", measured)

    def _measure(self, quantity: Quantity, records: Records, before: Records) -> Interval | None:
        if self.bottom == BASELINE:
            return quantity.change(records, before, self.top)
        return quantity.ratio(records, self.top, self.bottom) if self.bottom else quantity.of(records, self.top)

    @property
    def measure(self) -> str:
        """What the rule measures, as `static-exact ÷ dynamic`, `compile.compiles` or `compile.memory ÷ eager`."""
        top = self.top if self.quantity == TIME and self.bottom else f"{self.top}.{self.quantity}"
        return f"{top} ÷ {self.bottom}" if self.bottom else top


@dataclass(frozen=True)
class Judgement:
    """A rule, whether it holds, and what was measured: a ratio, or a quantity, with its interval."""

    rule: FailRule
    outcome: Outcome
    value: Interval | None

    @property
    def measured(self) -> str:
        """The measured value in words, as `static-exact ÷ dynamic is 0.45× [0.44, 0.46]`."""
        if self.value is None:
            where = " in both runs, on one machine" if self.rule.bottom == BASELINE else ""
            why = "; the machine was busy" if self.outcome == "unclear" else ""
            return f"{self.rule.measure} was not measured{where}{why}"
        written = text.ratio if self.rule.bottom else QUANTITIES[self.rule.quantity].written
        return f"{self.rule.measure} is {_with_interval(self.value, written)}"

    def __str__(self) -> str:
        return f"--fail-if '{self.rule.written}': {self.outcome}: {self.measured}"


def _with_interval(value: Interval, written: Callable[[float], str]) -> str:
    """Return a quantity with its interval; one without width is exact, and has none."""
    if value.low == value.high:
        return written(value.estimate)
    if written is text.ratio or not value.bounded:
        return f"{written(value.estimate)} {text.interval(value.low, value.high)}"
    return f"{written(value.estimate)} [{written(value.low)}, {written(value.high)}]"


def parse_rule(
    written: str, modes: Sequence[str], aliases: Mapping[str, str], *, has_baseline: bool = False
) -> FailRule:
    """Parse a rule over the measured modes, the first of which is the base.

    Raises InputsError, which says what is allowed.
    """
    parts = _RULE.fullmatch(written.strip())
    if parts is None and (word := next((mode for mode in modes if "(" in mode and mode in written), None)):
        raise InputsError(
            f"--fail-if {written!r}: {word} needs a name there: --mode 'NAME={word}', and NAME in the rule"
        )
    if parts is None:
        raise InputsError(f"--fail-if {written!r} cannot be read; {ALLOWED}")
    top, quantity, bottom, comparison, figure, unit = parts.groups()
    if quantity is None and top in QUANTITIES and top not in (*modes, *aliases):
        top, quantity = modes[min(1, len(modes) - 1)], top
    quantity = quantity or TIME
    if quantity not in QUANTITIES:
        raise InputsError(f"--fail-if {written!r}: {quantity} is no quantity; {nearest(quantity, tuple(QUANTITIES))}")
    asked = QUANTITIES[quantity]
    if unit and (unit not in asked.units or bottom):
        allowed = ", ".join(asked.units) if asked.units and not bottom else "none, since it is a plain number"
        raise InputsError(f"--fail-if {written!r}: {unit!r} is no unit of {quantity}; its units: {allowed}")
    if not (unit or asked.absolute):
        bottom = bottom or modes[0]
    top, bottom = (aliases.get(name, name) for name in (top, bottom or ""))
    _check_modes(written, top, bottom, modes, has_baseline=has_baseline)
    number = float(figure) * asked.units.get(unit, 1.0)
    if bottom and not number:
        raise InputsError(f"--fail-if {written!r} compares with 0, which no ratio reaches; {ALLOWED}")
    return FailRule(written.strip(), top, bottom, comparison, number, quantity)


def _check_modes(written: str, top: str, bottom: str, modes: Sequence[str], *, has_baseline: bool) -> None:
    if bottom == BASELINE and BASELINE not in modes and not has_baseline:
        raise InputsError(
            f"--fail-if {written!r} compares with an earlier run; give --baseline NAME, made by --save-baseline"
        )
    for mode in (top, bottom):
        if mode not in (*modes, BASELINE * has_baseline, ""):
            raise InputsError(f"--fail-if {written!r}: {mode} is not measured; the modes that are: {', '.join(modes)}")
    if top == bottom:
        raise InputsError(f"--fail-if {written!r} compares {top} with itself; {ALLOWED}")


def judge_change(written: Sequence[str], before: Records, after: Records) -> list[tuple[Cell, Judgement]]:
    """Judge rules on the later of two finished runs, in each cell that has the rule's modes; the other is the baseline.

    Raises InputsError as `parse_rule`.
    """
    cells = group_by(records_of(after, OfModes), lambda record: record.cell)
    modes = {cell: tuple(dict.fromkeys(mode for r in group for mode in r.modes)) for cell, group in cells.items()}
    everything, aliases = tuple(dict.fromkeys(chain.from_iterable(modes.values()))), find_engine(OWN).aliases
    rules = [parse_rule(each, everything, aliases, has_baseline=True) for each in written]
    return [
        (cell, rule.judge(*(_of_cell(records, cell) for records in (after, before))))
        for rule in rules
        for cell, there in modes.items()
        if {rule.top, rule.bottom} <= {*there, BASELINE, ""}
    ]


def _of_cell(records: Records, cell: Cell) -> list[Record]:
    return [record for record in records if not isinstance(record, OfModes) or record.cell == cell]


RULE_HOLDS = 6
"""The exit code if a rule holds."""
_INCONCLUSIVE = 3


@dataclass(frozen=True)
class Gate:
    """The rules of a comparison, the records of its baseline, and the files to write: JUnit XML and Markdown."""

    rules: tuple[FailRule, ...] = ()
    junit: Path | None = None
    summary: Path | None = None
    before: Records = ()

    def judge(self, result: Result) -> tuple[Judgement, ...]:
        """Judge each rule, write the files, and return the judgements."""
        judgements = tuple(rule.judge(result.records, self.before) for rule in self.rules)
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


def gate(
    rules: Sequence[str],
    junit: Path | None,
    summary: Path | None,
    plans: Sequence[ComparisonPlan],
    before: Records | None = None,
) -> Gate:
    """Make the gate of these rules and files, over the modes of all plans; `before` are the baseline's records.

    Raises InputsError for a rule that cannot be read, or could never be judged.
    """
    modes = tuple(dict.fromkeys(mode for plan in plans for mode in plan.subject.labels))
    aliases = {alias: mode for plan in plans for alias, mode in plan.subject.adapter.aliases.items()}
    processes = plans[0].situation.processes
    read = tuple(parse_rule(rule, modes, aliases, has_baseline=before is not None) for rule in rules)
    if rules and len({plan.situation.threads for plan in plans}) > 1:
        raise InputsError("--fail-if judges one answer; give one number of --threads, and a command for each")
    if 0 < processes < LEAST and any(QUANTITIES[rule.quantity].paired for rule in read):
        asked = f"--processes 0 or at least {LEAST}, not {processes}"
        raise InputsError(f"--fail-if needs an interval, and so {asked}")
    return Gate(read, junit, summary, before or ())


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
