"""The ladder as waterfalls: the seconds of a step on each rung, from the tape to the fastest static program.

First the waterfalls are computed from records (`waterfalls`), then they are drawn (`draw`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, steady
from compare.instruments.ladder import LADDER, NATIVE, RUNGS, TAPE, THREADS
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary
from compare.records.cells import Ladder, Threads
from compare.records.record import Cell, Records, group_by, records_of
from compare.stats import Interval, geometric_mean
from compare.words import text


class Landing(NamedTuple):
    """A rung of a cell: its seconds, its ratio to the rung below (`step`), and its ratio to the tape (`total`).

    `base` is the rung below. `peak` is the most bytes of NumPy data in a step. The intervals are not widened: one in
    twenty may miss. The rung of threads has the seconds of native code times the wall ratio of threads to native code,
    and no ratio to the tape.
    """

    rung: str
    base: str | None
    seconds: float
    step: Interval | None
    total: Interval | None
    peak: int


class Waterfall(NamedTuple):
    """The rungs of one cell, the reasons for missing rungs, and whether the engines' graphs are the same.

    `unequal` holds, by rung, the surplus of calls of each kernel compared with the tape.
    """

    cell: Cell
    landings: tuple[Landing, ...]
    missing: Mapping[str, str]
    same_graph: bool | None
    unequal: Mapping[str, Mapping[str, int]]

    @property
    def fastest(self) -> Landing:
        """The fastest static rung that runs NumPy's kernels; the tape if there is none."""
        static = [landing for landing in self.landings if landing.rung not in (TAPE, "pool", NATIVE, THREADS)]
        return min(static or self.landings[:1], key=lambda landing: landing.seconds)


def waterfalls(records: Records) -> list[Waterfall]:
    """Return the waterfall of each cell whose tape was timed, in the order of the `Ladder` records."""
    groups = group_by(records_of(records, Ladder), lambda record: record.cell)
    on_cores = group_by(records_of(records, Threads), lambda record: record.cell)
    cells = ((_timed_rungs(group), group, on_cores.get(cell, [])) for cell, group in groups.items())
    return [_waterfall(timed, group, threads) for timed, group, threads in cells if timed.of(TAPE)]


def _timed_rungs(group: Sequence[Ladder | Threads]) -> Evidence:
    """Return the timed rungs of a cell as evidence, in which a rung is a mode."""
    rungs = ({name: row for name, row in r.rungs.items() if row.status == "ok" and row.blocks} for r in group)
    return Evidence(*group[0].cell, tuple(rungs))


def _waterfall(timed: Evidence, group: Sequence[Ladder], on_cores: Sequence[Threads]) -> Waterfall:
    landings = [_landing(name, timed, group) for name in RUNGS if timed.of(name)]
    landings += _thread_landings(landings, on_cores)
    together: list[Ladder | Threads] = [*group, *on_cores]
    rows = [(name, row) for record in together for name, row in record.rungs.items()]
    missing = {name: f"{row.status}: {row.reason}" for name, row in rows if row.status != "ok"}
    unequal = {name: counts for record in group for name, counts in record.unequal.items()}
    same = [record.same_graph for record in group]
    return Waterfall(timed.cell, tuple(landings), missing, None if None in same else all(same), unequal)


def _landing(name: str, timed: Evidence, group: Sequence[Ladder]) -> Landing:
    base = RUNGS[name].base
    seconds = geometric_mean(block for row in timed.of(name) for block in row.blocks)
    step = timed.ratio(name, base, steady) if base else None
    total = timed.ratio(name, TAPE, steady) if base else None
    peak = max(r.rungs[name].peak for r in group if name in r.rungs)
    return Landing(name, base, seconds, step, total, peak)


def _thread_landings(landings: Sequence[Landing], on_cores: Sequence[Threads]) -> Iterator[Landing]:
    """Yield the rung of threads, which stands on native code, if both were timed."""
    step = _timed_rungs(on_cores).ratio(THREADS, NATIVE, steady) if on_cores else None
    for native in landings:
        if native.rung == NATIVE and step is not None:
            peak = max(record.rungs[THREADS].peak for record in on_cores)
            yield Landing(THREADS, NATIVE, native.seconds * step.estimate, step, None, peak)


_TITLE = "The ladder: where the difference comes from"
_CAPTION = (
    "The seconds of one training step on each rung, from the tape down. The pool and replay (the same kernels in a "
    "fixed graph) are each compared with the plain tape. Each rung below adds one optimisation to the rung before it. "
    "The rung native runs machine code instead of NumPy's kernels, so its saving does not come from the graph alone. "
    "The last rung, threads, lets all cores share that code, where there are several: it is timed beside native on the "
    "wall, and drawn as that ratio. A bar shows what a rung saves (green) or costs (orange). It is grey if the 95% "
    f"interval shows no difference of {SMALLEST_EFFECT:.0%}. The number is the ratio to the other rung. The seconds "
    "are those of the thread. Both engines run one function on one example of the median length. Each panel has its "
    "own scale."
)
_BETTER, _WORSE, _SAME = "#009e73", "#d55e00", "#999999"


def draw(summary: Summary) -> Drawing:
    """Draw a panel for each cell, with a row for each rung."""
    falls = waterfalls(summary.records)
    if not falls:
        return Drawing("ladder", _TITLE, "This run climbed no ladder.")
    of = {fall.cell: fall for fall in falls}
    grid = style.grid(list(of), 3, 2.7)
    for cell, axes in grid.axes.items():
        _panel(axes, of[cell].landings)
        axes.set_title(style.clean(f"{cell.workload}, {cell.size}"))
    grid.label("seconds a step", "")
    return Drawing("ladder", _TITLE, _CAPTION, _alt(falls), grid.figure, _table(falls))


def _panel(axes: Axes, landings: Sequence[Landing]) -> None:
    seconds = {landing.rung: landing.seconds for landing in landings}
    most = max(seconds.values())
    for row, landing in enumerate(landings):
        base = seconds.get(landing.base or "", 0.0)
        low, high = sorted((base, landing.seconds))
        (bar,) = axes.barh(row, high - low, left=low, height=0.62, color=_colour(landing))
        style.add_tooltip(bar, f"{landing.rung}: {text.seconds(landing.seconds)}")
        axes.plot([landing.seconds] * 2, [row - 0.4, row + 0.4], color=style.INK, linewidth=1.8)
        axes.text(high + 0.02 * most, row, _words(landing), va="center", fontsize=7.5)
        if landing.base in seconds:
            above = list(seconds).index(str(landing.base))
            axes.plot([base] * 2, [above + 0.4, row - 0.31], color=style.FAINT, linewidth=0.7)
    style.rows(axes, [_name(landing) for landing in landings])
    axes.set_xlim(0, 1.3 * most)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text.seconds(value) if value else "0"))
    axes.locator_params(axis="x", nbins=4)


def _name(landing: Landing) -> str:
    return landing.rung if landing.base is None or landing.rung == "replay" else f"+{landing.rung}"


def _colour(landing: Landing) -> str:
    if landing.base is None:
        return style.colour("dynamic")
    side = landing.step.side(SMALLEST_EFFECT) if landing.step else "unclear"
    return {"below": _BETTER, "above": _WORSE}.get(side, _SAME)


def _words(landing: Landing) -> str:
    return text.ratio(landing.step.estimate) if landing.step else text.seconds(landing.seconds)


def _alt(falls: Sequence[Waterfall]) -> str:
    parts = (
        f"{fall.cell.title}: {fall.fastest.rung} takes {text.ratio(fall.fastest.total.estimate)} the time of the tape"
        for fall in falls
        if fall.fastest.total
    )
    return "Seconds of a step rung by rung. The fastest static rung with NumPy's kernels: " + "; ".join(parts) + "."


def _table(falls: Sequence[Waterfall]) -> Table:
    headers = ("workload", "size", "rung", "adds", "seconds", "to its base", "interval", "to the tape",
               "interval", "peak", "kernels as on the tape", "same graph")  # fmt: skip
    rows = [_row(fall, landing) for fall in falls for landing in fall.landings]
    rows += [(*fall.cell, name, why, *[""] * 8) for fall in falls for name, why in fall.missing.items()]
    return Table(headers, tuple(rows), "llllrrrrrrll")


def _row(fall: Waterfall, landing: Landing) -> tuple[str, ...]:
    ratios = (*style.ratio_cells(landing.step), *style.ratio_cells(landing.total))
    head = (*fall.cell, landing.rung, LADDER[landing.rung].adds, text.seconds(landing.seconds))
    return (*head, *ratios, text.size(landing.peak), *_graphs(fall, landing.rung))


def _graphs(fall: Waterfall, rung: str) -> tuple[str, str]:
    """Return whether a rung calls the tape's kernels as often, and whether replay's graph is the tape's, in words."""
    if rung not in ("pool", "replay"):
        return "", ""
    differs = ", ".join(f"{name} {count:+d}" for name, count in fall.unequal.get(rung, {}).items())
    same = {True: "yes", False: "no", None: "not compared: branches or loops"}[fall.same_graph]
    kernels = f"no: {differs}" if differs else "yes" if rung == "pool" or fall.same_graph is not None else "need not be"
    return kernels, same if rung == "replay" else ""
