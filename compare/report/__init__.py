"""The report of a run: an HTML page that needs nothing but a browser, the same in Markdown, the figures."""

import json
from pathlib import Path
from typing import Any

from compare import results
from compare.files import write_atomic

__all__ = ["write"]


def write(directory: Path) -> list[Path]:
    """Write report.html, report.md and plots/ into a run directory; the files written, the page first.

    Reads results.jsonl and, if it is there, verdicts.json. What a run did not measure is said in the report.
    Raises FileNotFoundError or ResultsError, as `compare.results.read` does.
    """
    from compare.claims import tape
    from compare.report import html, markdown, plots, records, summary, verdicts
    from compare.report.assemble import assemble

    lines = results.read(directory / results.RESULTS)
    found = summary.summarise(records.parse(lines))
    judged, skipped = verdicts.parse(_verdicts(directory / results.VERDICTS))
    pictures, files = plots.draw(found, directory / "plots")
    page = assemble(directory.resolve().name, found, judged, pictures, skipped, tape.told(lines))
    return [
        write_atomic(directory / "report.html", html.render(page).encode()),
        write_atomic(directory / "report.md", markdown.render(page).encode()),
        *files,
    ]


def _verdicts(path: Path) -> Any:
    """The JSON value of the verdicts file; an empty list where there is none, or it is no JSON, or nested too deep."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, RecursionError, ValueError):
        return []
    return found if results.depth_of(found) <= results.DEEPEST else []
