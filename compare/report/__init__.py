"""The report of a run: an HTML page that needs nothing but a browser, the same in Markdown, the figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.claims.base import Verdict
    from compare.frameworks.outside.agreement import Outside
    from compare.records.record import Records

__all__ = ["write"]


def write(directory: Path, records: Records, judged: Iterable[Verdict], outside: Sequence[Outside] = ()) -> list[Path]:
    """Write report.html, report.md and plots/ into a run directory; the files written, the page first.

    `outside` is what the run says of frameworks, and `records` are those of our engines.

    What a run did not measure is said in the report.
    """
    from compare.claims import conditions
    from compare.records.files import write_atomic
    from compare.report import frameworks, html, markdown, plots, summary, verdicts
    from compare.report.assemble import assemble

    found = summary.summarise(records)
    pictures, files = plots.draw(found, directory / "plots")
    page = assemble(
        directory.resolve().name,
        found,
        list(map(verdicts.printed, judged)),
        pictures,
        " ".join(conditions.sentences(records)),
        frameworks.section(outside),
    )
    return [
        write_atomic(directory / "report.html", html.render(page).encode()),
        write_atomic(directory / "report.md", markdown.render(page).encode()),
        *files,
    ]
