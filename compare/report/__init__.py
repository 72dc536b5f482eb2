"""The report of a run: an HTML page that needs only a browser, the same in Markdown, its figures and verdicts.

`assemble` makes the page from records as plain data (`blocks`), and `html` and `markdown` print it. Read `publish`
here, then `assemble`, `blocks` and `verdicts`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.errors import ResultsError

if TYPE_CHECKING:
    from compare.claims.base import Verdict
    from compare.claims.frameworks import Outside
    from compare.records.record import Records
    from compare.report.blocks import Section

__all__ = ["publish", "write"]


def write(
    directory: Path,
    records: Records,
    judged: Sequence[Verdict],
    outside: Sequence[Outside] = (),
    answer: Section | None = None,
    sections: Sequence[Section] = (),
    every: Records = (),
) -> list[Path]:
    """Write report.html, report.md and plots/ into a run directory; returns the paths of the files, report.html first.

    `outside` has the results on frameworks, and `records` are those of our engines. `answer` replaces the section that
    opens the page, and `sections` follow it. `every` adds the records on further numbers of threads, which some figures
    compare. The limits list the claims and figures that the run did not measure.
    """
    from compare.report import assemble, figures, printers, summary
    from graphs.files import write_file

    summarised = summary.summarise(records, every)
    drawn = figures.draw_all(summarised, directory / "plots")
    page = assemble.page(directory.resolve().name, summarised, judged, drawn, outside, answer, sections)
    return [
        write_file(directory / "report.html", printers.to_html(page).encode()),
        write_file(directory / "report.md", printers.to_markdown(page).encode()),
        *drawn.files,
    ]


def publish(
    directory: Path, records: Records, judged: Sequence[Verdict], outside: Sequence[Outside] = (), **opening: Any
) -> None:
    """Write verdicts and report into the folder of a run; `opening` has further arguments of `write`.

    Raises ResultsError if the disk refuses them.
    """
    from msgspec import to_builtins

    from compare.records import results
    from compare.report import runs

    try:
        results.write_json(directory / results.VERDICTS, [verdict.to_dict() for verdict in judged])
        if shared := runs.shared_verdict(opening.get("every") or records):
            results.write_json(directory / results.SHARED, to_builtins(shared))
        if outside:
            results.write_json(directory / results.FRAMEWORKS, [framework.to_dict() for framework in outside])
        write(directory, records, judged, outside, **opening)
    except OSError as error:
        again = f"graphduel report {shlex.quote(str(directory))}"
        raise ResultsError(
            f"{directory}: verdicts and report were not written: {error.strerror}; every record is kept, so make room, "
            f"then write them with: {again}"
        ) from error
