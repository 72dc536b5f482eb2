"""The figure of steady-state time: static modes as ratios to dynamic; for a user's function, every sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, cells, steady
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Ratio, Summary, size_order
from compare.records.cells import Time
from compare.records.record import Cell, Run, records_of
from compare.stats import geometric_mean
from compare.words import text

_TITLE = "Steady-state time, relative to dynamic"
_CAPTION = (
    "Each dot is the time of one call once a mode is warm, divided by dynamic's time for the same call on "
    "the same data; the whiskers are its 95% interval. Left of the line at 1× the static mode is faster, "
    f"right of it slower. The grey strip is the tie zone, {SMALLEST_EFFECT:.0%} either way: whiskers "
    "inside it are a tie, whiskers across its edge, and no whiskers, mean that this run cannot tell. The scale is "
    "logarithmic, so 0.5× and 2× are equally far from a tie. Building and first calls are not in it: see "
    "the next figure."
)
_COLUMNS = (8, 54, 146)  # the starts of ratio, interval and words, in points right of the axes


def draw(summary: Summary) -> Drawing:
    """Draw the ratio of each static mode as dot and whisker, workloads sorted by their best static mode.

    For a user's function, draw every sample instead: the first table of its page has the ratios. A run of the suite has
    too many cells for samples.
    """
    if any(run.is_own for run in records_of(summary.records, Run)):
        return _draw_samples(summary)
    rows = _sort_ratios(summary.ratios)
    if not rows:
        return Drawing("steady", _TITLE, "No cell holds steady-state times of both dynamic and a static mode.")
    figure = style.figure(1.1 + 0.29 * len(rows))
    axes = figure.add_subplot()
    _bands(axes, rows)
    for row, ratio in enumerate(rows):
        _whisker(axes, row, ratio)
    _scale(axes, rows)
    _labels(axes, rows)
    table = Table.of("lllrrrrl", [_row(summary, ratio) for ratio in rows])
    return Drawing("steady", _TITLE, _CAPTION, _alt(rows), figure, table)


def _sort_ratios(ratios: Sequence[Ratio]) -> list[Ratio]:
    best: dict[str, float] = {}
    for ratio in ratios:
        best[ratio.cell.workload] = min(best.get(ratio.cell.workload, math.inf), ratio.interval.estimate)
    return sorted(ratios, key=lambda r: (best[r.cell.workload], size_order(r.cell), r.interval.estimate, r.mode))


def _bands(axes: Axes, rows: Sequence[Ratio]) -> None:
    """Shade every other workload, so that its sizes and modes read as one group."""
    workloads = list(dict.fromkeys(ratio.cell.workload for ratio in rows))
    for row, ratio in enumerate(rows):
        if workloads.index(ratio.cell.workload) % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color=style.BAND, linewidth=0, zorder=0)


def _whisker(axes: Axes, row: int, ratio: Ratio) -> None:
    colour, interval = style.colour(ratio.mode), ratio.interval
    axes.plot(style.ends(interval), [row, row], color=colour, marker="|", markersize=11, solid_capstyle="butt")
    (dot,) = axes.plot(interval.estimate, row, color=colour, marker=style.marker(ratio.mode), markersize=5.5)
    style.add_tooltip(dot, f"{ratio.cell.title}, {ratio.mode}: {' '.join(style.ratio_cells(interval))}, {ratio.words}")
    words = (*style.ratio_cells(interval), ratio.words)[: style.columns(3)]
    for offset, word in zip(_COLUMNS, words, strict=False):
        style.beside(axes, row, word, offset, 8.5)


def _scale(axes: Axes, rows: Sequence[Ratio]) -> None:
    ends = [end for ratio in rows for end in style.ends(ratio.interval)]
    low, high = min(0.9, *ends) / 1.15, max(1.1, *ends) * 1.15
    style.ratio_axis(axes, low, high)
    style.tie_zone(axes)


def _labels(axes: Axes, rows: Sequence[Ratio]) -> None:
    sizes = {ratio.cell.size for ratio in rows}
    style.rows(axes, [f"{_name(ratio.cell, sizes)}  {ratio.mode}" for ratio in rows])
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
    parts = (f"{r.cell.workload} {r.cell.size} {r.mode} {text.ratio(r.interval.estimate)} ({r.words})" for r in rows)
    return (
        "Steady-state time relative to dynamic, the workload that static speeds up most first: "
        + "; ".join(parts)
        + "."
    )


def _row(summary: Summary, of: Ratio) -> dict[str, str]:
    ratio, interval = style.ratio_cells(of.interval)
    return {
        **of.cell._asdict(),
        "mode": of.mode,
        of.base: text.seconds(summary.courses[of.cell, of.base].steady),
        "static": text.seconds(summary.courses[of.cell, of.mode].steady),
        "ratio": ratio,
        "95% interval": interval,
        "static is": of.words,
    }


_SAMPLES = "Every sample, process by process"
_SAMPLES_CAPTION = (
    "A thin line is the time of a call in one block of calls, once warm; a dot is the mean of its process. Further "
    "left is faster, and the scale is logarithmic. All modes of a process take turns, block by block, and an "
    "interval counts processes: blocks of one process resemble each other more than two processes do."
)
_THICK = 0.34
"""Half the height of a sample's line; a row has height 1."""


class _Samples(NamedTuple):
    """The blocks of one mode in one process, in seconds a call."""

    process: int
    mode: str
    blocks: tuple[float, ...]

    @property
    def mean(self) -> float:
        return geometric_mean(self.blocks)


def _draw_samples(summary: Summary) -> Drawing:
    """Draw a row of samples for each process and mode."""
    rows = [row for cell in cells(summary.records, Time) for row in _samples_of(cell)]
    if not rows:
        return Drawing("samples", _SAMPLES, "No mode was timed once warm.")
    figure = style.figure(0.9 + 0.24 * len(rows))
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        _ticks(axes, place, row)
    style.rows(axes, [f"process {row.process}, {row.mode}" for row in rows])
    every = [seconds for row in rows for seconds in row.blocks]
    style.log_axis(axes, 0.95 * min(every), 1.05 * max(every), 0.13, text.seconds)
    axes.set_xlabel("time of a call (log scale)")
    alt = f"The time of a call in every block. {'; '.join(map(_spread, rows))}."
    return Drawing("samples", _SAMPLES, _SAMPLES_CAPTION, alt, figure, Table.of("rlrrrrr", map(_quantiles, rows)))


def _samples_of(cell: Evidence) -> Iterator[_Samples]:
    for number, process in enumerate(cell.processes, 1):
        for mode in style.ordered_modes(process):
            if blocks := tuple(steady(process[mode])):
                yield _Samples(number, mode, blocks)


def _ticks(axes: Axes, place: int, row: _Samples) -> None:
    """Draw the blocks as lines in one path, which is cheap for many of them, and the mean over them."""
    across = [at for seconds in row.blocks for at in (seconds, seconds, float("nan"))]
    up = [at for _ in row.blocks for at in (place - _THICK, place + _THICK, float("nan"))]
    axes.plot(across, up, color=style.colour(row.mode), linewidth=0.7, alpha=0.6)
    look: dict[str, Any] = {"marker": style.marker(row.mode), "markersize": 5, "markeredgecolor": "white"}
    (dot,) = axes.plot(row.mean, place, color=style.INK, **look)
    style.add_tooltip(dot, _spread(row))


def _spread(row: _Samples) -> str:
    low, high = min(row.blocks), max(row.blocks)
    return (
        f"process {row.process}, {row.mode}: {text.seconds(row.mean)} "
        f"({text.seconds(low)} to {text.seconds(high)} in {text.count_noun(len(row.blocks), 'block')})"
    )


def _quantiles(row: _Samples) -> dict[str, str]:
    ranked = sorted(row.blocks)
    shares = {"fastest": 0.0, "median": 0.5, "slowest": 1.0}
    at = {name: ranked[int(share * (len(ranked) - 1))] for name, share in shares.items()}
    seconds = {"mean": row.mean, **at}
    head = {"process": str(row.process), "mode": row.mode, "blocks": f"{len(ranked):,}"}
    return {**head, **{name: text.seconds(value) for name, value in seconds.items()}}
