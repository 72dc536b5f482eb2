"""Steady-state time of every static arm as a ratio to dynamic."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from compare.claims.base import SMALLEST_EFFECT
from compare.page.blocks import Table
from compare.page.plots import Drawing, panels, style
from compare.page.summary import Ratio, Summary, size_order
from compare.records.record import Cell, Run, of
from compare.words import text

_TITLE = "Steady-state time, relative to dynamic"
_CAPTION = (
    "Each dot is the time of one call once an arm is warm, divided by dynamic's time for the same call on "
    "the same data; the whiskers are its 95% interval. Left of the line at 1× the static arm is faster, "
    f"right of it slower. The grey strip is the tie zone, {SMALLEST_EFFECT:.0%} either way: whiskers "
    "inside it are a tie, whiskers across its edge, and no whiskers, mean that this run cannot tell. The scale is "
    "logarithmic, so 0.5× and 2× are equally far from a tie. Building and first calls are not in it: see "
    "the next figure."
)
_COLUMNS = (8, 54, 146)  # where ratio, interval and words start, in points right of the axes


def draw(summary: Summary) -> Drawing | None:
    """Dot and whisker, one row an arm, workloads sorted by their best static arm; None for a function of the user's.

    The first table of its page has these ratios, and the figure of its samples shows more.
    """
    if any(run.is_own for run in of(summary.records, Run)):
        return None
    rows = _sorted(summary.ratios)
    if not rows:
        return Drawing("steady", _TITLE, "No cell holds steady-state times of both dynamic and a static arm.")
    figure = style.figure(1.1 + 0.29 * len(rows))
    axes = figure.add_subplot()
    _bands(axes, rows)
    for row, ratio in enumerate(rows):
        _whisker(axes, row, ratio)
    _scale(axes, rows)
    _labels(axes, rows)
    table = Table.of("lllrrrrl", [_row(summary, ratio) for ratio in rows])
    return Drawing("steady", _TITLE, _CAPTION, _alt(rows), figure, table)


def _sorted(ratios: Sequence[Ratio]) -> list[Ratio]:
    best: dict[str, float] = {}
    for ratio in ratios:
        best[ratio.cell.workload] = min(best.get(ratio.cell.workload, math.inf), ratio.interval.estimate)
    return sorted(ratios, key=lambda r: (best[r.cell.workload], size_order(r.cell), r.interval.estimate, r.arm))


def _bands(axes: Axes, rows: Sequence[Ratio]) -> None:
    """Shade every other workload, so that its sizes and arms read as one group."""
    workloads = list(dict.fromkeys(ratio.cell.workload for ratio in rows))
    for row, ratio in enumerate(rows):
        if workloads.index(ratio.cell.workload) % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color=style.BAND, linewidth=0, zorder=0)


def _whisker(axes: Axes, row: int, ratio: Ratio) -> None:
    colour, interval = style.colour(ratio.arm), ratio.interval
    axes.plot(style.ends(interval), [row, row], color=colour, marker="|", markersize=11, solid_capstyle="butt")
    (dot,) = axes.plot(interval.estimate, row, color=colour, marker=style.marker(ratio.arm), markersize=5.5)
    style.said(dot, f"{ratio.cell.title}, {ratio.arm}: {' '.join(panels.ratio_cells(interval))}, {ratio.words}")
    words = (*panels.ratio_cells(interval), ratio.words)[: style.columns(3)]
    for offset, word in zip(_COLUMNS, words, strict=False):
        panels.beside(axes, row, word, offset, 8.5)


def _scale(axes: Axes, rows: Sequence[Ratio]) -> None:
    ends = [end for ratio in rows for end in style.ends(ratio.interval)]
    low, high = min(0.9, *ends) / 1.15, max(1.1, *ends) * 1.15
    style.ratio_axis(axes, low, high)
    panels.tie_zone(axes)


def _labels(axes: Axes, rows: Sequence[Ratio]) -> None:
    sizes = {ratio.cell.size for ratio in rows}
    panels.rows(axes, [f"{_name(ratio.cell, sizes)}  {ratio.arm}" for ratio in rows])
    axes.set_xlabel(
        "seconds a call ÷ dynamic's seconds a call (ratio, log scale; 95% interval)"
        if style.columns(2) > 1
        else "static ÷ dynamic (log scale)"
    )
    above: dict[str, Any] = {
        "xycoords": axes.get_xaxis_transform(),
        "textcoords": "offset points",
        "va": "bottom",
        "color": style.INK,
    }
    axes.annotate("◀ faster than dynamic", (1, 1), (-8, 4), ha="right", **above)
    axes.annotate("slower ▶", (1, 1), (8, 4), ha="left", **above)


def _name(cell: Cell, sizes: set[str]) -> str:
    return cell.workload if len(sizes) == 1 else f"{cell.workload} {cell.size}"


def _alt(rows: Sequence[Ratio]) -> str:
    parts = (f"{r.cell.workload} {r.cell.size} {r.arm} {text.ratio(r.interval.estimate)} ({r.words})" for r in rows)
    return (
        "Steady-state time relative to dynamic, the workload that static speeds up most first: "
        + "; ".join(parts)
        + "."
    )


def _row(summary: Summary, of: Ratio) -> dict[str, str]:
    ratio, interval = panels.ratio_cells(of.interval)
    return {
        **of.cell._asdict(),
        "arm": of.arm,
        of.base: text.seconds(summary.courses[of.cell, of.base].steady),
        "static": text.seconds(summary.courses[of.cell, of.arm].steady),
        "ratio": ratio,
        "95% interval": interval,
        "static is": of.words,
    }
