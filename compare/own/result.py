"""The result of comparing one function: its verdict, as a table, in a notebook, as JSON and as a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from compare.claims.verdict import MeasuredFunction
from compare.errors import CompareError, NothingMeasuredError
from compare.records import journal, results
from compare.records.record import Failure
from compare.report import show

SCHEMA = 1
"""The version of `Result.to_dict`; a field may be added without a new version."""


class ComparisonStopped(KeyboardInterrupt):
    """A comparison was stopped; `result` is that of its finished processes, which the message shows, or None."""

    def __init__(self, result: Result | None) -> None:
        super().__init__(*([str(result)] if result else ()))
        self.result = result


@dataclass(frozen=True, repr=False)
class Result(MeasuredFunction):
    """The result of comparing one function: `records` as of a run of the suite, and the `verdict` on them."""

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 fine, 1 something failed, 3 times do not answer the question, 4 a mode disagrees.

        It is 5 if nothing was measured, or every mode that compiles was refused.
        """
        verdict = self.verdict
        if verdict.disagree:
            return 4
        if verdict.steady.outcome == "not measured":
            return NothingMeasuredError.exit_code
        failed = any(reason.startswith("failed") for reason in verdict.refused.values())
        if failed or any(isinstance(record, Failure) for record in self.records):
            return 1
        if verdict.steady.outcome == "alone" and len(self.modes) > 1:
            return NothingMeasuredError.exit_code
        return 0 if verdict.answered else 3

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict and the records in plain JSON values."""
        return {
            "schema": SCHEMA,
            "kind": "comparison",
            "function": self.name,
            "modes": list(self.modes),
            "verdict": self.verdict.to_dict(),
            "threads": {number: measured.verdict.to_dict() for number, measured in self.by_threads.items()},
            "records": to_builtins(self.records),
        }

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write results.jsonl, verdicts.json, report.html, report.md and plots/; return the path of the page.

        Raises CompareError where the directory cannot be written or is not empty; with `overwrite` it may hold results,
        which stay until the new ones are complete.
        """
        from compare.report.function import finish

        folder = empty(Path(directory), overwrite=overwrite)
        with journal.hold_lock(folder, results.silent):
            empty(folder, overwrite=overwrite)
            results.replace(folder / results.RESULTS, self.records)
            finish(folder, list(self.records))
        return folder / "report.html"

    def __repr__(self) -> str:
        return show.plain(self)

    def _repr_html_(self) -> str:
        return show.html(self)


def empty(folder: Path, *, overwrite: bool = False) -> Path:
    """Return the folder, made if need be.

    Raises CompareError unless it can be written to and is empty; with `overwrite` it may hold results.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in folder.iterdir()} - {journal.LOCK}
        if names and not (overwrite and results.has_some(folder)):
            remedy = "choose another" if results.RESULTS not in names else "choose another, or give --overwrite"
            raise CompareError(f"{folder} is not empty; {remedy}")
    except OSError as error:
        raise CompareError(f"cannot write to {folder}: {error.strerror}; choose another") from error
    return folder
