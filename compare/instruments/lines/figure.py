"""The lines of a step as a table: what each costs in each engine, the dearest first."""

from collections.abc import Iterator, Sequence

from compare.instruments.lines.schema import Line, Lines, LinesArm
from compare.records.record import of
from compare.report import text
from compare.report.page import Table
from compare.report.plots import Drawing
from compare.report.summary import Summary

_TITLE = "Line by line"
CAPTION = (
    "One warm step over the input of median length, read in a pass of its own. The time of a line ends with "
    "its kernel, and covers the Python code before it. Backward kernels count for the line whose gradient they "
    "compute. Made are the bytes of the arrays that its kernels write; saved are those among them that backward reads. "
    "`elsewhere` is what no line has: entering and leaving the step, checking arguments, laying out results."
)
HEADERS = ("line", "source", "engine", "time", "share", "kernels", "made", "saved")
ELSEWHERE = "elsewhere"


def draw(summary: Summary) -> Drawing:
    """The table of every cell whose lines were read."""
    found = [row for record in of(summary.records, Lines) for row in rows(record)]
    if not found:
        return Drawing("lines", _TITLE, "This run did not read its steps line by line.")
    return Drawing("lines", _TITLE, CAPTION, table=Table(HEADERS, tuple(found), "lllrrrrr"))


def rows(record: Lines) -> Iterator[tuple[str, ...]]:
    """A row for each line and arm, under HEADERS; lines by their longest time in any arm, arms side by side."""
    arms = {arm: row for arm, row in record.arms.items() if row.status == "ok"}
    for line in ranked(list(arms.values())):
        for arm, row in arms.items():
            if line in row.lines:
                yield (line, record.code.get(line, ""), arm, *_costs(row, row.lines[line]))
    for arm, row in arms.items():
        yield (ELSEWHERE, "", arm, text.seconds(row.elsewhere), _share(row, row.elsewhere), "", "", "")


def ranked(arms: Sequence[LinesArm]) -> list[str]:
    """The lines of all arms, the dearest first."""
    found = dict.fromkeys(line for row in arms for line in row.lines)
    return sorted(found, key=lambda line: -max(row.lines[line].seconds for row in arms if line in row.lines))


def _costs(row: LinesArm, line: Line) -> tuple[str, ...]:
    saved = f"{line.saved} × {text.size(line.saved_bytes / line.saved)}" if line.saved else "0"
    return text.seconds(line.seconds), _share(row, line.seconds), f"{line.kernels:,}", text.size(line.made), saved


def _share(row: LinesArm, seconds: float) -> str:
    return f"{seconds / row.step:.0%}" if row.step else ""
