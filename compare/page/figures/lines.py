"""The figure and table of a step's source lines: the cost of each line in each engine, the dearest first."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary
from compare.records.cells import LineCost, SourceLines, SourceLinesRow, rank_lines
from compare.records.record import records_of
from compare.words import text

_TITLE = "Line by line"
CAPTION = (
    "One warm step over the input of median length, read in passes of its own; what these take longer than a step that "
    "nobody watches is taken from all lines alike. The time of a line ends with "
    "its kernel, and covers the Python code before it. Backward kernels count for the line whose gradient they "
    "compute. Made are the bytes of the arrays that its kernels write; saved are those among them that backward reads. "
    "`elsewhere` is what no line has: entering and leaving the step, checking arguments, laying out results."
)
HEADERS = ("line", "source", "engine", "time", "share", "kernels", "made", "saved")
ELSEWHERE = "elsewhere"
MOST = 12
"""The largest number of lines that are drawn; the table has all."""


def draw(summary: Summary) -> Drawing:
    """Draw the lines of the first cell, with the table of the lines of every cell."""
    costs = [row for record in records_of(summary.records, SourceLines) for row in rows(record)]
    if not costs:
        return Drawing("lines", _TITLE, "This run did not read its steps line by line.")
    shown = records_of(summary.records, SourceLines)[0]
    table = Table(HEADERS, tuple(costs), "lllrrrrr")
    return Drawing("lines", _TITLE, CAPTION, _alt(shown), _bars(shown), table)


def _bars(record: SourceLines) -> Figure | None:
    """Draw a group of bars for each of the dearest lines, a bar for each mode; None if no mode has a line."""
    modes = {mode: row for mode, row in record.modes.items() if row.status == "ok"}
    names = rank_lines(list(modes.values()))[:MOST]
    if not names:
        return None
    figure = style.figure(1.2 + 0.28 * len(names) * len(modes))
    axes = figure.subplots()
    height = 0.8 / len(modes)
    for place, (mode, row) in enumerate(modes.items()):
        seconds = [row.lines[name].seconds * 1e6 if name in row.lines else 0.0 for name in names]
        bars = axes.barh(
            [i + place * height for i in range(len(names))], seconds, height, label=mode, color=style.colour(mode)
        )
        for bar, name, micros in zip(bars, names, seconds, strict=True):
            style.add_tooltip(bar, f"{mode}, {name}: {text.seconds(micros / 1e6)}")
    labels = [style.clean(f"{name}  {record.code.get(name, '')}", 60 if style.columns(2) > 1 else 30) for name in names]
    axes.set_yticks([i + 0.4 - height / 2 for i in range(len(names))], labels)
    axes.invert_yaxis()
    axes.set_xlabel("µs of a step; shorter is better")
    axes.legend()
    return figure


def _alt(record: SourceLines) -> str:
    parts = [f"{mode} {name} {text.seconds(row.lines[name].seconds)}" for mode, row in record.modes.items()
             for name in rank_lines([row])[:MOST]]  # fmt: skip
    return f"Time of each line of source. {'; '.join(parts)}."


def rows(record: SourceLines) -> Iterator[tuple[str, ...]]:
    """Yield a row for each line and mode, under HEADERS, ordered by the longest time of a line in any mode."""
    modes = {mode: row for mode, row in record.modes.items() if row.status == "ok"}
    for line in rank_lines(list(modes.values())):
        for mode, row in modes.items():
            if line in row.lines:
                yield (line, record.code.get(line, ""), mode, *_costs(row, row.lines[line]))
    for mode, row in modes.items():
        yield (ELSEWHERE, "", mode, text.seconds(row.elsewhere), _share(row, row.elsewhere), "", "", "")


def _costs(row: SourceLinesRow, line: LineCost) -> tuple[str, ...]:
    saved = f"{line.saved} × {text.size(line.saved_bytes / line.saved)}" if line.saved else "0"
    return text.seconds(line.seconds), _share(row, line.seconds), f"{line.kernels:,}", text.size(line.made), saved


def _share(row: SourceLinesRow, seconds: float) -> str:
    return f"{seconds / row.step:.0%}" if row.step else ""
