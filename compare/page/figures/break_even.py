"""The figure of break-even: total time against the number of runs, for each mode."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from compare.claims.crossover import BreakEven, Course, break_even
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.figures.style import grid
from compare.page.summary import Summary, largest
from compare.records.record import Cell
from compare.words import text

_TITLE = "Break-even: after how many runs has the build paid for itself?"
_CAPTION = (
    "Time spent in all (build, first call and every call after it) against the number of runs, both "
    "scales logarithmic. A line that starts higher has a build or a slow first call to pay for; the ring "
    "is where a static mode has become cheaper in all, and the bar through it the range that follows from "
    "the interval of the steady ratio alone. “Never” means that its steady calls are no faster, so more "
    "runs only cost more; “cannot tell”, that the steady times tie within the interval. Where inputs vary "
    f"in size, the first epoch is the calls as they were timed. {style.ONE_SIZE}"
)
_LONGEST = 1e7


def draw(summary: Summary) -> Drawing:
    """Draw a panel for each workload, with the break-even of each static mode in its title."""
    points = _points(summary)
    cells = largest(cell for cell, _ in points)
    if not cells:
        return Drawing("break-even", _TITLE, "No cell holds times of both dynamic and a static mode.")
    panels = grid(cells, across=3, height=2.65)
    for cell, axes in panels.axes.items():
        _panel(axes, cell, summary, {mode: point for (of, mode), point in points.items() if of == cell})
    panels.label("runs (log scale)", "time spent in all (log scale)")
    panels.mode_legend(mode for of, mode in summary.courses if of in cells)
    alt, table = _alt(points, cells), _table(summary, points)
    return Drawing("break-even", _TITLE, _CAPTION, alt, panels.figure, table)


def _words(point: BreakEven) -> str:
    """Return a break-even in words, as `after 212 runs` or `never`."""
    if point.runs is None or point.verdict != "after":
        return point.verdict
    return f"after {text.number(np.ceil(point.runs))} runs"


def _points(summary: Summary) -> dict[tuple[Cell, str], BreakEven]:
    of = summary.courses
    return {(r.cell, r.mode): break_even(of[r.cell, r.mode], of[r.cell, r.base], r.interval) for r in summary.ratios}


def _panel(axes: Axes, cell: Cell, summary: Summary, points: dict[str, BreakEven]) -> None:
    runs = np.unique(np.round(np.geomspace(1, _span(points), 160)))
    for mode in style.ordered_modes({mode for of, mode in summary.courses if of == cell}):
        course = summary.courses[cell, mode]
        axes.plot(runs, course.total(runs), color=style.colour(mode), linewidth=1.8, label=mode)
    for mode, point in points.items():
        _ring(axes, summary.courses[cell, mode], point, runs[-1])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(numticks=6))
    axes.yaxis.set_minor_locator(NullLocator())
    style.seconds_axis(axes)
    _write_heading(axes, cell, points)


def _write_heading(axes: Axes, cell: Cell, points: dict[str, BreakEven]) -> None:
    """Write the workload above the panel, and below it a line with the break-even of each static mode."""
    lines = [f"{style.clean(mode)}: {_words(points[mode])}" for mode in style.ordered_modes(points)]
    axes.set_title(style.clean(f"{cell.workload}, {cell.size}"), pad=6 + 11.5 * len(lines))
    above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "linespacing": 1.3}
    axes.annotate("\n".join(lines), (0, 1), (0, 4), va="bottom", fontsize=8, **above)


def _span(points: dict[str, BreakEven]) -> float:
    """Return the runs that the x axis spans: ten times the last break-even, and at least 1,000."""
    crossings = [point.runs for point in points.values() if point.runs is not None]
    return min(_LONGEST, max([1e3, *(10 * runs for runs in crossings)]))


def _ring(axes: Axes, course: Course, point: BreakEven, last: float) -> None:
    if point.runs is None or point.runs > last:
        return
    runs = np.array([np.ceil(point.runs)])
    spent = course.total(runs)
    ring: dict[str, Any] = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.4}
    (mark,) = axes.plot(runs, spent, color=style.INK, zorder=4, **ring)
    style.add_tooltip(mark, f"pays {_words(point)}")
    if point.low is not None and point.high is not None:
        ends = [point.low, min(point.high, last)]
        axes.plot(ends, [*spent, *spent], color=style.INK, linewidth=1.2, zorder=4)


def _alt(points: dict[tuple[Cell, str], BreakEven], cells: list[Cell]) -> str:
    shown = ((cell.workload, mode, point) for (cell, mode), point in points.items() if cell in cells)
    parts = (f"{workload} {mode} {_words(point)}" for workload, mode, point in shown)
    return "Time spent in all against the number of runs. Break-even: " + "; ".join(parts) + "."


def _table(summary: Summary, points: dict[tuple[Cell, str], BreakEven]) -> Table | None:
    compared = {ratio.cell for ratio in summary.ratios}
    modes = [(cell, mode) for cell, mode in summary.courses if cell in compared]
    return Table.of("lllrrrll", [_row(key, summary.courses[key], points.get(key)) for key in modes])


def _row(key: tuple[Cell, str], course: Course, point: BreakEven | None) -> dict[str, str]:
    return {
        **key[0]._asdict(),
        "mode": key[1],
        "build": text.seconds(course.build),
        "first call": text.seconds(course.head[0]),
        "steady call": text.seconds(course.steady),
        "break-even": _words(point) if point else "(reference)",
        "range": _range(point),
    }


def _range(point: BreakEven | None) -> str:
    if point is None or point.low is None or point.high is None:
        return ""
    return text.interval(np.ceil(point.low), np.ceil(point.high))
