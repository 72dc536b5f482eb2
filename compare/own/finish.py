"""The end of a run on a function of the user's: the claims about one function, judged, and its report."""

from __future__ import annotations

from pathlib import Path

from compare.claims import Verdict
from compare.own import claims, page
from compare.page.publish import publish
from compare.records.record import Record


def finish(directory: Path, records: list[Record]) -> list[Verdict]:
    """Judge the records, and write verdicts and report into the folder. Raises ResultsError where that fails."""
    verdicts = claims.judge(records)
    publish(directory, records, verdicts, answer=page.answer(records, verdicts), sections=page.sections(records))
    return verdicts
