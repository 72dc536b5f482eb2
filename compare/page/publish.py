"""What a run publishes beside its results: the verdicts, and the report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from compare import page
from compare.claims import Verdict
from compare.claims.agreement import Outside
from compare.errors import ResultsError
from compare.page.blocks import Section
from compare.records import results
from compare.records.record import Record


def publish(
    directory: Path,
    records: Sequence[Record],
    verdicts: Sequence[Verdict],
    outside: Sequence[Outside] = (),
    answer: Section | None = None,
    sections: Sequence[Section] = (),
) -> None:
    """Write verdicts and report into the folder of a run; the arguments are those of `page.write`.

    Raises ResultsError where the disk takes them not.
    """
    try:
        results.write_json(directory / results.VERDICTS, [verdict.to_dict() for verdict in verdicts])
        if outside:
            results.write_json(directory / results.FRAMEWORKS, [framework.to_dict() for framework in outside])
        page.write(directory, records, verdicts, outside, answer, sections)
    except OSError as error:
        again = f"graphduel report {shlex.quote(str(directory))}"
        raise ResultsError(
            f"{directory}: verdicts and report were not written: {error.strerror}; every record is kept, so make room, "
            f"then write them with: {again}"
        ) from error
