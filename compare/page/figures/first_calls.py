"""The figure of first calls: the time of each call of the first epoch against the length of its input."""

from itertools import zip_longest
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary, largest
from compare.records.cells import Call
from compare.records.record import Cell
from compare.words import text

_DASHES = (0, (4, 3))
_NEW: dict[str, Any] = {"marker": "D", "s": 18, "color": style.INK, "linewidths": 0, "zorder": 3}
_TITLE = "Latency by input length, first epoch"
_CAPTION = (
    "Every call of the first epoch in one worker process, against the useful length of its input. Times are "
    "on a log scale. A filled diamond is the first call with a shape or structure that is new to this mode: a "
    "static mode may compile there, a dynamic mode never does. A hollow diamond is such a call where no earlier "
    "process has left compiled code. The dashed line is a typical call once the mode is warm. The height of "
    "the diamonds above the circles is the cost of the slowest calls, their number that of the epoch. "
    f"{style.ONE_SIZE}"
)


def draw(summary: Summary) -> Drawing:
    """Draw a row for each workload and a column for each mode, on shared scales."""
    lengths = ((cell, {call.length for call in calls}) for (cell, _), calls in summary.streams.items())
    cells = largest(cell for cell, different in lengths if len(different) > 1)
    if not cells:
        return Drawing("latency", _TITLE, "No workload of this run has inputs that vary in length.")
    modes = style.ordered_modes(mode for cell, mode in summary.streams if cell in cells)
    columns = len(modes) if style.columns(2) > 1 else min(2, len(modes))
    high = len(cells) * ceil(len(modes) / columns)
    figure = style.figure(0.9 + 2.5 * high, wide=max(7.0, 2.5 * len(modes)))
    panels = figure.subplots(high, columns, sharex="row", sharey="row", squeeze=False)
    for row, cell in zip(panels.reshape(len(cells), -1), cells, strict=True):
        _row(list(row), cell, modes, summary)
    figure.supxlabel("useful length of the input (elements)", fontsize=9.5)
    figure.supylabel("time of one call (log scale)", fontsize=9.5)
    figure.legend(handles=_key(summary), loc="outside upper center", ncols=style.columns(4 if columns > 2 else 2))
    return Drawing("latency", _TITLE, _CAPTION, _alt(summary), figure, _table(summary))


def _row(row: list[Axes], cell: Cell, modes: list[str], summary: Summary) -> None:
    for axes, mode in zip_longest(row, modes):
        if mode is None:
            axes.set_axis_off()
            continue
        axes.set_title(f"{style.clean(cell.workload, 22)}\n{style.clean(mode, 22)}")
        if calls := summary.streams.get((cell, mode)):
            cold = [call for call in summary.cold.get((cell, mode), ()) if call.new]
            _panel(axes, calls, cold, summary.courses[cell, mode].steady, style.colour(mode))
        else:
            axes.set_axis_off()
            axes.text(0, 1, "does not apply", va="top", transform=axes.transAxes)


def _panel(axes: Axes, calls: list[Call], cold: list[Call], steady: float, colour: str) -> None:
    seen, new = ([call for call in calls if call.new is which] for which in (False, True))
    for shown, look in ((seen, _hollow("o", colour)), (new, _NEW), (cold, _hollow("D", style.INK))):
        points = [(call.length, call.seconds) for call in shown if call.seconds > 0]
        if points:
            axes.scatter(*zip(*points, strict=True), **look)
    axes.axhline(steady, color=style.INK, linestyle=_DASHES, linewidth=1)
    axes.set_yscale("log")
    style.seconds_axis(axes)


def _hollow(marker: str, colour: str) -> dict[str, Any]:
    return {"marker": marker, "s": 16, "facecolors": "none", "edgecolors": colour, "linewidths": 0.9}


def _key(summary: Summary) -> list[Line2D]:
    point: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    cold = Line2D([], [], marker="D", color=style.INK, fillstyle="none", label="the same, no code on the disk", **point)
    return [
        *([cold] if summary.cold else []),
        Line2D([], [], marker="D", color=style.INK, label="first call with this shape", **point),
        Line2D([], [], marker="o", color=style.FAINT, fillstyle="none", label="shape seen before", **point),
        Line2D([], [], color=style.INK, linestyle=_DASHES, linewidth=1, label="typical call once warm"),
    ]


def _alt(summary: Summary) -> str:
    parts = (
        f"{cell.workload} {mode}: {sum(call.new for call in calls)} of {len(calls)} calls met a new shape"
        for (cell, mode), calls in summary.streams.items()
    )
    return "Call times by input length in the first epoch. " + "; ".join(parts) + "."


def _table(summary: Summary) -> Table | None:
    named = [(cell, mode, calls) for (cell, mode), calls in summary.streams.items()]
    named += [(cell, f"{mode}, no code on the disk", calls) for (cell, mode), calls in summary.cold.items()]
    return Table.of("lllrrrrrr", [_counts(*epoch) for epoch in named])


def _counts(cell: Cell, mode: str, calls: list[Call]) -> dict[str, str]:
    times = sorted(call.seconds for call in calls)
    counts = {"calls": str(len(calls)), "new shapes": str(sum(call.new for call in calls))}
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "slowest": 1.0}
    ranks = {name: times[min(len(times) - 1, int(share * len(times)))] for name, share in shares.items()}
    return {**cell._asdict(), "mode": mode, **counts, **{name: text.seconds(rank) for name, rank in ranks.items()}}
