"""How `graphduel compare` ends as a gate: its rules judged, its files written, and its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.errors import InputsError, NothingMeasuredError
from compare.gate import outputs
from compare.gate.rules import FailRule, Judgement, parsed
from compare.own.question import Question
from compare.own.result import Result
from compare.stats import LEAST
from graphs.files import write_file

RULE_HOLDS = 6
"""The exit code where a rule holds."""
_INCONCLUSIVE = 3


@dataclass(frozen=True)
class Gate:
    """The rules of a comparison, and the files to write: JUnit's XML, and Markdown."""

    rules: tuple[FailRule, ...] = ()
    junit: Path | None = None
    summary: Path | None = None

    def judge(self, result: Result) -> tuple[Judgement, ...]:
        """The judgement of each rule, after the files were written, each in one step."""
        judgements = tuple(rule.judge(result.records) for rule in self.rules)
        if self.junit is not None:
            write_file(self.junit, outputs.junit(result, judgements))
        if self.summary is not None:
            write_file(self.summary, outputs.markdown(result, judgements).encode())
        return judgements

    def fail(self, name: str, error: str) -> None:
        """Write the files of a comparison of this function that has ended in an error."""
        if self.junit is not None:
            write_file(self.junit, outputs.junit_of_error(name, error))
        if self.summary is not None:
            write_file(self.summary, outputs.markdown_of_error(name, error).encode())


def gate(rules: Sequence[str], junit: Path | None, summary: Path | None, questions: Sequence[Question]) -> Gate:
    """The gate that was asked for, over the modes of all questions.

    Raises InputsError for a rule that cannot be read, or never could be judged.
    """
    modes = tuple(mode for question in questions for mode in question.modes)
    aliases = {alias: mode for question in questions for alias, mode in question.adapter.aliases.items()}
    processes = questions[0].processes
    read = tuple(parsed(rule, modes, aliases) for rule in rules)
    if rules and 0 < processes < LEAST:
        asked = f"--processes 0 or at least {LEAST}, not {processes}"
        raise InputsError(f"--fail-if needs an interval, and so {asked}")
    return Gate(read, junit, summary)


def exit_code(measured: int, judgements: Sequence[Judgement]) -> int:
    """The exit code of a comparison that alone would end with `measured`.

    What went wrong in measuring comes first, then 5 for a rule whose modes were not measured, then `RULE_HOLDS`. That
    times cannot be told apart, which is 3, fails no gate that has rules.
    """
    if not judgements or measured not in (0, _INCONCLUSIVE):
        return measured
    outcomes = {judgement.outcome for judgement in judgements}
    if "not measured" in outcomes:
        return NothingMeasuredError.exit_code
    return RULE_HOLDS if "holds" in outcomes else 0
