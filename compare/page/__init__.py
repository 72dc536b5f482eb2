"""The report of a run: an HTML page that needs nothing but a browser, the same in Markdown, the figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.claims.agreement import Outside
    from compare.claims.base import Verdict
    from compare.page.blocks import Section
    from compare.records.record import Records

__all__ = ["write"]


def write(
    directory: Path,
    records: Records,
    judged: Iterable[Verdict],
    outside: Sequence[Outside] = (),
    answer: Section | None = None,
    sections: Sequence[Section] = (),
) -> list[Path]:
    """Write report.html, report.md and plots/ into a run directory; the files written, the page first.

    `outside` is what the run says of frameworks, and `records` are those of our engines. `answer` takes the place of
    the section that opens the page, and `sections` follow it. What a run did not measure is listed under the limits.
    """
    from compare.page import assemble, html, markdown, plots, summary
    from compare.records.files import write_atomic

    summarised = summary.summarise(records)
    drawn = plots.draw(summarised, directory / "plots")
    page = assemble.page(directory.resolve().name, summarised, tuple(judged), drawn, outside, answer, sections)
    return [
        write_atomic(directory / "report.html", html.render(page).encode()),
        write_atomic(directory / "report.md", markdown.render(page).encode()),
        *drawn.files,
    ]
