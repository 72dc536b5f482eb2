"""Every sample of a function of the user's, process by process: what the intervals are made of."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from compare.claims.evidence import Evidence, cells, steady
from compare.page.blocks import Table
from compare.page.plots import Drawing, panels, style
from compare.page.summary import Summary
from compare.records.cells import Time
from compare.records.record import Run, of
from compare.stats import geometric_mean
from compare.words import text

_TITLE = "Every sample, process by process"
_CAPTION = (
    "A thin line is the time of a call in one block of calls, once warm; a dot is the mean of its process. Further "
    "left is faster, and the scale is logarithmic. All modes of a process take turns, block by block, and an "
    "interval counts processes: blocks of one process resemble each other more than two processes do."
)
_THICK = 0.34
"""Half the height of a line, of a row that is 1 high."""


class _Samples(NamedTuple):
    """The blocks of one mode in one process, in seconds a call."""

    process: int
    mode: str
    blocks: tuple[float, ...]

    @property
    def mean(self) -> float:
        return geometric_mean(self.blocks)


def draw(summary: Summary) -> Drawing | None:
    """A row for each process and mode; None for a run of the suite, which has too many cells for that."""
    if not any(run.is_own for run in of(summary.records, Run)):
        return None
    rows = [row for cell in cells(summary.records, Time) for row in _rows(cell)]
    if not rows:
        return Drawing("samples", _TITLE, "No mode was timed once warm.")
    figure = style.figure(0.9 + 0.24 * len(rows))
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        _ticks(axes, place, row)
    panels.rows(axes, [f"process {row.process}, {row.mode}" for row in rows])
    every = [seconds for row in rows for seconds in row.blocks]
    style.log_axis(axes, 0.95 * min(every), 1.05 * max(every), 0.13, text.seconds)
    axes.set_xlabel("time of a call (log scale)")
    alt = f"The time of a call in every block. {'; '.join(map(_words, rows))}."
    return Drawing("samples", _TITLE, _CAPTION, alt, figure, Table.of("rlrrrrr", map(_quantiles, rows)))


def _rows(cell: Evidence) -> Iterator[_Samples]:
    for number, process in enumerate(cell.processes, 1):
        for mode in style.ordered_arms(process):
            if blocks := tuple(steady(process[mode])):
                yield _Samples(number, mode, blocks)


def _ticks(axes: Axes, place: int, row: _Samples) -> None:
    """The blocks as one path, a line each, so that many cost little; over them the mean."""
    across = [at for seconds in row.blocks for at in (seconds, seconds, float("nan"))]
    up = [at for _ in row.blocks for at in (place - _THICK, place + _THICK, float("nan"))]
    axes.plot(across, up, color=style.colour(row.mode), linewidth=0.7, alpha=0.6)
    look: dict[str, Any] = {
        "color": style.INK,
        "marker": style.marker(row.mode),
        "markersize": 5,
        "markeredgecolor": "white",
    }
    (dot,) = axes.plot(row.mean, place, **look)
    style.said(dot, _words(row))


def _words(row: _Samples) -> str:
    low, high = min(row.blocks), max(row.blocks)
    return (
        f"process {row.process}, {row.mode}: {text.seconds(row.mean)} "
        f"({text.seconds(low)} to {text.seconds(high)} in {text.counted(len(row.blocks), 'block')})"
    )


def _quantiles(row: _Samples) -> dict[str, str]:
    ranked = sorted(row.blocks)
    shares = {"fastest": 0.0, "median": 0.5, "slowest": 1.0}
    at = {name: ranked[int(share * (len(ranked) - 1))] for name, share in shares.items()}
    seconds = {"mean": row.mean, **at}
    head = {"process": str(row.process), "mode": row.mode, "blocks": f"{len(ranked):,}"}
    return {**head, **{name: text.seconds(value) for name, value in seconds.items()}}
