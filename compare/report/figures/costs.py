"""The figures of what a step costs in time: once warm, in all over many runs, and at each first call.

`draw_steady` shows static modes as ratios to dynamic, or every sample of a user's function. `draw_break_even` shows
total time against the number of runs, for each mode. `draw_first_calls` shows each call of the first epoch against the
length of its input. Of a user's function `draw_modes` shows the first pass of each mode against its warm call, and
`draw_threads` a warm call against the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, cells, steady
from compare.claims.regimes import BreakEven, Course, break_even
from compare.claims.threads import at_threads, threads_asked
from compare.claims.verdict import verdict
from compare.records.cells import Call, Time
from compare.records.record import Cell, Records, Run, records_of
from compare.report.blocks import Table
from compare.report.figures import Drawing, alt_text, style
from compare.report.figures.style import grid
from compare.report.summary import Ratio, Summary, largest, size_order
from compare.stats import geometric_mean

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


def draw_steady(summary: Summary) -> Drawing:
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
    # Every other workload is shaded, so that its sizes and modes read as one group.
    workloads = list(dict.fromkeys(each.cell.workload for each in rows))
    for place, each in enumerate(rows):
        if workloads.index(each.cell.workload) % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color=style.BAND, linewidth=0, zorder=0)
    for row, ratio in enumerate(rows):
        _whisker(axes, row, ratio)
    ends = [end for ratio in rows for end in style.ends(ratio.interval)]
    low, high = min(0.9, *ends) / 1.15, max(1.1, *ends) * 1.15
    style.ratio_axis(axes, low, high)
    style.tie_zone(axes)
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
    table = Table.of("lllrrrrl", [_row(summary, ratio) for ratio in rows])
    parts = (f"{r.cell.workload} {r.cell.size} {r.mode} {text.ratio(r.interval.estimate)} ({r.words})" for r in rows)
    alt = alt_text("Steady-state time relative to dynamic, the workload that static speeds up most first:", parts)
    return Drawing("steady", _TITLE, _CAPTION, alt, figure, table)


def _sort_ratios(ratios: Sequence[Ratio]) -> list[Ratio]:
    best: dict[str, float] = {}
    for ratio in ratios:
        best[ratio.cell.workload] = min(best.get(ratio.cell.workload, math.inf), ratio.interval.estimate)
    return sorted(ratios, key=lambda r: (best[r.cell.workload], size_order(r.cell), r.interval.estimate, r.mode))


def _whisker(axes: Axes, row: int, ratio: Ratio) -> None:
    words = (*style.ratio_cells(ratio.interval), ratio.words)
    said = f"{ratio.cell.title}, {ratio.mode}: {' '.join(words[:2])}, {ratio.words}"
    look = (style.colour(ratio.mode), style.marker(ratio.mode), said)
    style.whisker(axes, row, ratio.interval, *look, marker="|", markersize=11)
    for offset, word in zip(_COLUMNS, words[: style.columns(3)], strict=False):
        style.beside(axes, row, word, offset, 8.5)


def _name(cell: Cell, sizes: set[str]) -> str:
    return cell.workload if len(sizes) == 1 else f"{cell.workload} {cell.size}"


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
    "left is faster, and the scale is logarithmic. All modes of a process take turns, block by block; on several "
    "threads each has processes of its own. An interval counts processes: blocks of one process resemble each other "
    "more than two processes do."
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
        # Draw the blocks as lines in one path, which is cheap for many of them, and the mean over them.
        across = [at for seconds in row.blocks for at in (seconds, seconds, float("nan"))]
        up = [at for _ in row.blocks for at in (place - _THICK, place + _THICK, float("nan"))]
        axes.plot(across, up, color=style.colour(row.mode), linewidth=0.7, alpha=0.6)
        look: dict[str, Any] = {"marker": style.marker(row.mode), "markersize": 5, "markeredgecolor": "white"}
        (dot,) = axes.plot(row.mean, place, color=style.INK, **look)
        style.add_tooltip(dot, _spread(row))
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


# The modes of a user's function ---------------------------------------------------------------------------------------


_MODES, _THREADS = "First pass and warm call of each mode", "A warm call by the number of threads"
_MODES_CAPTION = (
    "Each mark is a mode: further left its warm calls are faster, further down its first pass over the inputs from "
    "nothing is. No mode is better in both than one on the dashed line. A bar is the 95% interval of the ratio to the "
    "mode that compiles nothing."
)
_THREADS_CAPTION = (
    "Each line is a mode, and each mark its warm call on so many threads, by the clock that the notes name. A bar is "
    "the 95% interval of the ratio to the mode that compiles nothing on as many threads."
)
_FRONT: dict[str, Any] = {"color": style.FAINT, "linestyle": (0, (4, 3)), "linewidth": 1.2, "zorder": 1}


class _Cost(NamedTuple):
    """The seconds of a warm call of a mode, the ends of its interval, and those of its first pass or 0."""

    call: float
    ends: Sequence[float]
    first: float

    @property
    def words(self) -> str:
        return f"a call {text.seconds(self.call)}" + (f", first pass {text.seconds(self.first)}" if self.first else "")


def _mode_costs(records: Records) -> dict[str, _Cost]:
    """Return the costs of each mode of a user's function that was timed; an interval is that of its ratio to the base.

    A run of the suite has none.
    """
    if not any(run.is_own for run in records_of(records, Run)):
        return {}
    judged = verdict(records)
    calls, base = judged.steady.values, judged.steady.values.get(judged.steady.base)
    ends = {mode: [base * end for end in ratio.bounds() or ()] for mode, ratio in judged.of_base.items() if base}
    return {
        mode: _Cost(calls[mode], ends.get(mode) or [calls[mode]] * 2, judged.first.values.get(mode, 0.0))
        for mode in style.ordered_modes(calls)
    }


def draw_modes(summary: Summary) -> Drawing | None:
    """Draw the first pass of each mode of a user's function against its warm call; None for fewer than three modes."""
    costs = {mode: cost for mode, cost in _mode_costs(summary.records).items() if cost.first}
    if len(costs) < 3:
        return None
    figure = style.figure(4.2, wide=7.5)
    axes = figure.add_subplot()
    for mode, cost in costs.items():
        axes.plot(cost.ends, [cost.first] * 2, color=style.colour(mode), linewidth=1.5, zorder=2)
        _mark(axes, (cost.call, cost.first), mode, cost.words, label=style.clean(mode))
    axes.step(*zip(*_front(costs.values()), strict=True), where="post", label="no mode is better in both", **_FRONT)
    axes.set_ylim(-0.04 * max(cost.first for cost in costs.values()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text.seconds(value)))
    axes.xaxis.set_major_locator(MaxNLocator(5 if style.columns(2) > 1 else 3))
    style.seconds_axis(axes)
    axes.set_xlabel("time of a warm call")
    axes.set_ylabel("time of the first pass over the inputs")
    figure.legend(loc="outside upper center", ncols=style.key_columns(4))
    alt = alt_text("The first pass of each mode against its warm call:", (f"{m} {c.words}" for m, c in costs.items()))
    rows = [
        {"mode": mode, "a call": text.seconds(cost.call), "first pass": text.seconds(cost.first)}
        for mode, cost in costs.items()
    ]
    return Drawing("modes", _MODES, _MODES_CAPTION, alt, figure, Table.of("lrr", rows))


def _mark(axes: Axes, at: tuple[float, float], mode: str, words: str, label: str | None = None) -> None:
    (mark,) = axes.plot(*at, style.marker(mode), color=style.colour(mode), markersize=8, zorder=3, label=label)
    style.add_tooltip(mark, f"{mode}: {words}")


def _front(costs: Iterable[_Cost]) -> list[tuple[float, float]]:
    """Return the costs beside which none is less in both, as points, the fastest call first."""
    front: list[tuple[float, float]] = []
    for cost in sorted(costs, key=lambda cost: (cost.call, cost.first)):
        if not front or cost.first < front[-1][1]:
            front.append((cost.call, cost.first))
    return front


def draw_threads(summary: Summary) -> Drawing | None:
    """Draw the warm call of each mode of a user's function on each number of threads; None for one number alone."""
    numbers = threads_asked(summary.every)
    if len(numbers) < 2:
        return None
    by_number = {number: _mode_costs(at_threads(summary.every, number)) for number in sorted(numbers)}
    modes = style.ordered_modes(mode for costs in by_number.values() for mode in costs)
    if not modes:
        return None
    figure = style.figure(3.8, wide=7.5)
    axes = figure.add_subplot()
    for nudge, mode in enumerate(modes):
        points = [(place, costs[mode]) for place, costs in enumerate(by_number.values()) if mode in costs]
        at = [place + 0.03 * (nudge - (len(modes) - 1) / 2) for place, _ in points]
        axes.plot(at, [cost.call for _, cost in points], color=style.colour(mode), linewidth=1.2)
        for x, (place, cost) in zip(at, points, strict=True):
            axes.plot([x, x], cost.ends, color=style.colour(mode), linewidth=1.5)
            _mark(axes, (x, cost.call), mode, cost.words, style.clean(mode) if place == points[0][0] else None)
    axes.set_xticks(range(len(by_number)), [f"{number}" for number in by_number])
    axes.set_xlim(-0.4, len(by_number) - 0.6)
    axes.set_ylim(0)
    style.seconds_axis(axes)
    axes.set_xlabel("threads")
    axes.set_ylabel("time of a warm call")
    figure.legend(loc="outside upper center", ncols=style.key_columns(4))
    told = [(number, mode, cost) for number, costs in by_number.items() for mode, cost in costs.items()]
    alt = alt_text(
        "A warm call of each mode on each number of threads:",
        (f"{mode} on {text.count_noun(number, 'thread')} {text.seconds(cost.call)}" for number, mode, cost in told),
    )
    rows = [{"threads": str(number), "mode": mode, "a call": text.seconds(cost.call)} for number, mode, cost in told]
    return Drawing("threads", _THREADS, _THREADS_CAPTION, alt, figure, Table.of("rlr", rows))


# Break-even -----------------------------------------------------------------------------------------------------------


_PAYS = "Break-even: after how many runs has the build paid for itself?"
_PAYS_CAPTION = (
    "Time spent in all (build, first call and every call after it) against the number of runs, both "
    "scales logarithmic. A line that starts higher has a build or a slow first call to pay for; the ring "
    "is where a static mode has become cheaper in all, and the bar through it the range that follows from "
    "the interval of the steady ratio alone. “Never” means that its steady calls are no faster, so more "
    "runs only cost more; “cannot tell”, that the steady times tie within the interval. Where inputs vary "
    f"in size, the first epoch is the calls as they were timed. {style.ONE_SIZE}"
)
_LONGEST = 1e7


def draw_break_even(summary: Summary) -> Drawing:
    """Draw a panel for each workload, with the break-even of each static mode in its title."""
    courses = summary.courses
    points = {
        (r.cell, r.mode): break_even(courses[r.cell, r.mode], courses[r.cell, r.base], r.interval)
        for r in summary.ratios
    }
    cells = largest(cell for cell, _ in points)
    if not cells:
        return Drawing("break-even", _PAYS, "No cell holds times of both dynamic and a static mode.")
    panels = grid(cells, across=3, height=2.65)
    for cell, axes in panels.axes.items():
        _spent_panel(axes, cell, summary, {mode: point for (of, mode), point in points.items() if of == cell})
    panels.label("runs (log scale)", "time spent in all (log scale)")
    panels.mode_legend(mode for of, mode in summary.courses if of in cells)
    shown = ((cell.workload, mode, point) for (cell, mode), point in points.items() if cell in cells)
    parts = (f"{workload} {mode} {_pays_words(point)}" for workload, mode, point in shown)
    compared = {ratio.cell for ratio in summary.ratios}
    modes = [(cell, mode) for cell, mode in summary.courses if cell in compared]
    alt, table = (
        alt_text("Time spent in all against the number of runs. Break-even:", parts),
        Table.of("lllrrrll", [_spent_row(key, summary.courses[key], points.get(key)) for key in modes]),
    )
    return Drawing("break-even", _PAYS, _PAYS_CAPTION, alt, panels.figure, table)


def _pays_words(point: BreakEven) -> str:
    """Return a break-even in words, as `after 212 runs` or `never`."""
    if point.runs is None or point.verdict != "after":
        return point.verdict
    return f"after {text.number(np.ceil(point.runs))} runs"


def _spent_panel(axes: Axes, cell: Cell, summary: Summary, points: dict[str, BreakEven]) -> None:
    # The x axis spans ten times the last break-even, and at least 1,000 runs.
    crossings = [point.runs for point in points.values() if point.runs is not None]
    runs = np.unique(np.round(np.geomspace(1, min(_LONGEST, max([1e3, *(10 * runs for runs in crossings)])), 160)))
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
    # Above the panel stands the workload, and below that a line with the break-even of each static mode.
    lines = [f"{style.clean(mode)}: {_pays_words(points[mode])}" for mode in style.ordered_modes(points)]
    axes.set_title(style.clean(f"{cell.workload}, {cell.size}"), pad=6 + 11.5 * len(lines))
    above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "linespacing": 1.3}
    axes.annotate("\n".join(lines), (0, 1), (0, 4), va="bottom", fontsize=8, **above)


def _ring(axes: Axes, course: Course, point: BreakEven, last: float) -> None:
    if point.runs is None or point.runs > last:
        return
    runs = np.array([np.ceil(point.runs)])
    spent = course.total(runs)
    ring: dict[str, Any] = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.4}
    (mark,) = axes.plot(runs, spent, color=style.INK, zorder=4, **ring)
    style.add_tooltip(mark, f"pays {_pays_words(point)}")
    if point.low is not None and point.high is not None:
        ends = [point.low, min(point.high, last)]
        axes.plot(ends, [*spent, *spent], color=style.INK, linewidth=1.2, zorder=4)


def _spent_row(key: tuple[Cell, str], course: Course, point: BreakEven | None) -> dict[str, str]:
    return {
        **key[0]._asdict(),
        "mode": key[1],
        "build": text.seconds(course.build),
        "first call": text.seconds(course.head[0]),
        "steady call": text.seconds(course.steady),
        "break-even": _pays_words(point) if point else "(reference)",
        "range": _pays_range(point),
    }


def _pays_range(point: BreakEven | None) -> str:
    if point is None or point.low is None or point.high is None:
        return ""
    return text.interval(np.ceil(point.low), np.ceil(point.high))


# First calls ----------------------------------------------------------------------------------------------------------


_DASHES = (0, (4, 3))
_NEW: dict[str, Any] = {"marker": "D", "s": 18, "color": style.INK, "linewidths": 0, "zorder": 3}
_FIRST = "Latency by input length, first epoch"
_FIRST_CAPTION = (
    "Every call of the first epoch in one worker process, against the useful length of its input. Times are "
    "on a log scale. A filled diamond is the first call with a shape or structure that is new to this mode: a "
    "static mode may compile there, a dynamic mode never does. A hollow diamond is such a call where no earlier "
    "process has left compiled code. The dashed line is a typical call once the mode is warm. The height of "
    "the diamonds above the circles is the cost of the slowest calls, their number that of the epoch. "
    f"{style.ONE_SIZE}"
)


def draw_first_calls(summary: Summary) -> Drawing:
    """Draw a row for each workload and a column for each mode, on shared scales."""
    lengths = ((cell, {call.length for call in calls}) for (cell, _), calls in summary.streams.items())
    cells = largest(cell for cell, different in lengths if len(different) > 1)
    if not cells:
        return Drawing("latency", _FIRST, "No workload of this run has inputs that vary in length.")
    modes = style.ordered_modes(mode for cell, mode in summary.streams if cell in cells)
    columns = len(modes) if style.columns(2) > 1 else min(2, len(modes))
    high = len(cells) * ceil(len(modes) / columns)
    figure = style.figure(0.9 + 2.5 * high, wide=max(7.0, 2.5 * len(modes)))
    panels = figure.subplots(high, columns, sharex="row", sharey="row", squeeze=False)
    for row, cell in zip(panels.reshape(len(cells), -1), cells, strict=True):
        _epoch_panels(list(row), cell, modes, summary)
    figure.supxlabel("useful length of the input (elements)", fontsize=9.5)
    figure.supylabel("time of one call (log scale)", fontsize=9.5)
    point: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    cold = Line2D([], [], marker="D", color=style.INK, fillstyle="none", label="the same, no code on the disk", **point)
    key = [
        *([cold] if summary.cold else []),
        Line2D([], [], marker="D", color=style.INK, label="first call with this shape", **point),
        Line2D([], [], marker="o", color=style.FAINT, fillstyle="none", label="shape seen before", **point),
        Line2D([], [], color=style.INK, linestyle=_DASHES, linewidth=1, label="typical call once warm"),
    ]
    figure.legend(handles=key, loc="outside upper center", ncols=style.columns(4 if columns > 2 else 2))
    parts = (
        f"{cell.workload} {mode}: {sum(call.new for call in calls)} of {len(calls)} calls met a new shape"
        for (cell, mode), calls in summary.streams.items()
    )
    alt = alt_text("Call times by input length in the first epoch.", parts)
    named = [(cell, mode, calls) for (cell, mode), calls in summary.streams.items()]
    named += [(cell, f"{mode}, no code on the disk", calls) for (cell, mode), calls in summary.cold.items()]
    table = Table.of("lllrrrrrr", [_epoch_row(*epoch) for epoch in named])
    return Drawing("latency", _FIRST, _FIRST_CAPTION, alt, figure, table)


def _epoch_panels(row: list[Axes], cell: Cell, modes: list[str], summary: Summary) -> None:
    for axes, mode in zip_longest(row, modes):
        if mode is None:
            axes.set_axis_off()
            continue
        axes.set_title(f"{style.clean(cell.workload, 22)}\n{style.clean(mode, 22)}")
        if calls := summary.streams.get((cell, mode)):
            cold = [call for call in summary.cold.get((cell, mode), ()) if call.new]
            seen, new = ([call for call in calls if call.new is which] for which in (False, True))
            for shown, look in ((seen, _hollow("o", style.colour(mode))), (new, _NEW), (cold, _hollow("D", style.INK))):
                points = [(call.length, call.seconds) for call in shown if call.seconds > 0]
                if points:
                    axes.scatter(*zip(*points, strict=True), **look)
            axes.axhline(summary.courses[cell, mode].steady, color=style.INK, linestyle=_DASHES, linewidth=1)
            axes.set_yscale("log")
            style.seconds_axis(axes)
        else:
            axes.set_axis_off()
            axes.text(0, 1, "does not apply", va="top", transform=axes.transAxes)


def _hollow(marker: str, colour: str) -> dict[str, Any]:
    return {"marker": marker, "s": 16, "facecolors": "none", "edgecolors": colour, "linewidths": 0.9}


def _epoch_row(cell: Cell, mode: str, calls: list[Call]) -> dict[str, str]:
    times = sorted(call.seconds for call in calls)
    counts = {"calls": str(len(calls)), "new shapes": str(sum(call.new for call in calls))}
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "slowest": 1.0}
    ranks = {name: times[min(len(times) - 1, int(share * len(times)))] for name, share in shares.items()}
    return {**cell._asdict(), "mode": mode, **counts, **{name: text.seconds(rank) for name, rank in ranks.items()}}
