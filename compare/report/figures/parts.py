"""The figures of where a step's time goes: part by part, rung by rung, and line by line.

`draw_parts` stacks the shares of a step in both engines. `draw_ladder` draws the seconds on each rung, from the tape
to the fastest static program, as waterfalls. `draw_lines` has the cost of each source line in each engine, the dearest
first. Each first computes its values from records (`step_parts`, `waterfalls`, `rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, PercentFormatter

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, steady
from compare.instruments.ladder import LADDER, NATIVE, RUNGS, TAPE, THREADS
from compare.instruments.parts import ENGINES, UNEXPLAINED
from compare.records.cells import Ladder, LineCost, Parts, SourceLines, SourceLinesRow, Threads, rank_lines
from compare.records.record import Cell, Records, group_by, records_of
from compare.report.blocks import Table
from compare.report.figures import Drawing, alt_text, style
from compare.report.summary import Summary
from compare.stats import Interval, geometric_mean, sum_interval

LARGEST_UNEXPLAINED = 0.05
"""The largest unexplained share of a step with which its parts still count as adding up."""
_FINE = f"sums to the step within {LARGEST_UNEXPLAINED:.0%}"


class StepParts(NamedTuple):
    """The step of one engine in one cell: its seconds, and the share of each part with its interval."""

    cell: Cell
    engine: str
    seconds: float
    shares: Mapping[str, Interval]

    @property
    def adds_up(self) -> bool:
        """Whether the parts sum to the time of the step within 5%."""
        return abs(self.shares[UNEXPLAINED].estimate) <= LARGEST_UNEXPLAINED

    @property
    def note(self) -> str | None:
        """A sentence on the unexplained share if the parts do not add up; None if they do."""
        if self.adds_up:
            return None
        share = self.shares[UNEXPLAINED]
        return (
            f"{self.cell.title}, {self.engine}: {share.estimate:.1%} of a step is unexplained "
            f"{spread(share)}, more than {LARGEST_UNEXPLAINED:.0%}"
        )


def spread(share: Interval) -> str:
    """Return the interval of a share, as `[1.2%, 3.4%]` or `(no interval)`."""
    return f"[{share.low:.1%}, {share.high:.1%}]" if share.bounded else "(no interval)"


def step_parts(records: Records) -> list[StepParts]:
    """Return the parts of both engines for each cell, in order; records with other programs are left out."""
    groups = group_by(
        (record for record in records_of(records, Parts) if _has_programs(record)), lambda record: record.cell
    )
    return [_parts_of_engine(cell, engine, group) for cell, group in groups.items() for engine in ENGINES]


def stages(records: Records, cell: Cell) -> dict[str, float]:
    """Return the median seconds of each stage of compilation in a cell, and the unexplained rest."""
    once = [stages for r in records_of(records, Parts) if r.cell == cell for stages in r.once]
    seconds = {name: median(o[name] for o in once) for name in ("tracing", "passes", "planning")}
    return {**seconds, UNEXPLAINED: median(o["whole"] for o in once) - sum(seconds.values())}


def _has_programs(record: Parts) -> bool:
    return all(
        record.engines.get(engine, {}).keys() >= {"step", *chain.from_iterable(parts.values())}
        for engine, parts in ENGINES.items()
    )


def _parts_of_engine(cell: Cell, engine: str, group: Sequence[Parts]) -> StepParts:
    blocks = [record.engines[engine] for record in group]
    steps = [of["step"] for of in blocks]
    shares = {
        part: sum_interval([(weight, [of[name] for of in blocks]) for name, weight in weights.items()], steps)
        for part, weights in ENGINES[engine].items()
    }
    return StepParts(cell, engine, geometric_mean(s for step in steps for s in step), shares)


_TITLE = "Time part by part"
_CAPTION = (
    "The parts of the seconds of one warm training step, as shares. Each part is the difference of two programs that "
    "differ in this part alone, so nothing disturbs the measured code. The clock is that of the thread. No difference "
    "explains the rest, which is a part of its own. If the parts sum to more than the step, or a difference is below "
    "zero, the bar shows the parts above zero in proportion; the table below has the measured shares. The static "
    "engine runs as a jitted function, so the lookup in its cache is included. Its backward pass is in its graph, and "
    "so in its kernels. The numbers below have the intervals, and the stages of one compilation."
)
_LOOKS = {
    "kernel": ("#0072b2", ""),
    "allocation": ("#56b4e9", ".."),
    "dispatch": ("#e69f00", "////"),
    "recording": ("#d55e00", ""),
    "backward": ("#cc79a7", "\\\\\\\\"),
    "containers": ("#f0e442", ""),
    "in place": ("#f0e442", "////"),
    "guard": ("#009e73", ""),
    "cache lookup": ("#009e73", "xxxx"),
    UNEXPLAINED: ("#999999", "----"),
}


def draw_parts(summary: Summary) -> Drawing:
    """Draw a stacked bar for each engine and cell."""
    steps = step_parts(summary.records)
    if not steps:
        return Drawing("parts", _TITLE, "No step of this run was taken apart.")
    figure = style.figure(1.1 + 0.34 * len(steps))
    axes = figure.subplots()
    for row, step in enumerate(steps):
        right = 0.0
        for each, share in positive_shares(step).items():
            fill, hatch = _LOOKS[each]
            (bar,) = axes.barh(row, share, left=right, height=0.7, color=fill, hatch=hatch, edgecolor="white")
            style.add_tooltip(bar, f"{step.engine}, {each}: {share:.1%} of {text.seconds(step.seconds)}")
            right += share
        axes.text(right + 0.01, row, text.seconds(step.seconds), va="center", fontsize=8)
    style.rows(axes, [f"{step.cell.workload}, {step.cell.size}: {step.engine}" for step in steps])
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.axvline(1, color=style.FAINT, linewidth=0.8)
    handles = [_patch(part) for part in _LOOKS]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=style.key_columns(len(handles)), fontsize=8, handlelength=1.4
    )
    notes = " ".join(f"{step.note}." for step in steps if step.note)
    parts = (
        f"{step.cell.workload} {step.engine}: kernels {step.shares['kernel'].estimate:.0%}, "
        f"unexplained {step.shares[UNEXPLAINED].estimate:.0%}"
        for step in steps
    )
    alt = alt_text("Shares of a step by part.", parts)
    return Drawing("parts", _TITLE, f"{_CAPTION} {notes}".strip(), alt, figure, _table(steps, summary.records))


def positive_shares(step: StepParts) -> dict[str, float]:
    """Return the parts above zero as shares of their sum."""
    above = {part: share.estimate for part, share in step.shares.items() if share.estimate > 0}
    return {part: share / sum(above.values()) for part, share in above.items()}


def _patch(part: str) -> Patch:
    fill, hatch = _LOOKS[part]
    return Patch(facecolor=fill, hatch=hatch, edgecolor="white", label=part)


def _table(steps: Sequence[StepParts], records: Records) -> Table:
    headers = ("workload", "size", "engine", "part", "share of a step", "95% interval", "seconds")
    rows = [
        (*step.cell, step.engine, part, f"{share.estimate:.1%}", spread(share),
         text.seconds(share.estimate * step.seconds))
        for step in steps
        for part, share in step.shares.items()
    ]  # fmt: skip
    rows += [
        (*step.cell, "compiling once", stage, "", "", text.seconds(seconds))
        for step in steps
        if step.engine == "static"
        for stage, seconds in stages(records, step.cell).items()
    ]
    rows += [(*step.cell, step.engine, "check", step.note or _FINE, "", "") for step in steps]
    return Table(headers, tuple(rows), "llllrrr")


# The ladder, as waterfalls --------------------------------------------------------------------------------------------


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


_LADDER = "The ladder: where the difference comes from"
_LADDER_CAPTION = (
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


def draw_ladder(summary: Summary) -> Drawing:
    """Draw a panel for each cell, with a row for each rung."""
    falls = waterfalls(summary.records)
    if not falls:
        return Drawing("ladder", _LADDER, "This run climbed no ladder.")
    of = {fall.cell: fall for fall in falls}
    grid = style.grid(list(of), 3, 2.7)
    for cell, axes in grid.axes.items():
        _panel(axes, of[cell].landings)
        axes.set_title(style.clean(f"{cell.workload}, {cell.size}"))
    grid.label("seconds a step", "")
    parts = (
        f"{fall.cell.title}: {fall.fastest.rung} takes {text.ratio(fall.fastest.total.estimate)} the time of the tape"
        for fall in falls
        if fall.fastest.total
    )
    alt = alt_text("Seconds of a step rung by rung. The fastest static rung with NumPy's kernels:", parts)
    headers = ("workload", "size", "rung", "adds", "seconds", "to its base", "interval", "to the tape",
               "interval", "peak", "kernels as on the tape", "same graph")  # fmt: skip
    rows = [_row(fall, landing) for fall in falls for landing in fall.landings]
    rows += [(*fall.cell, name, why, *[""] * 8) for fall in falls for name, why in fall.missing.items()]
    table = Table(headers, tuple(rows), "llllrrrrrrll")
    return Drawing("ladder", _LADDER, _LADDER_CAPTION, alt, grid.figure, table)


def _panel(axes: Axes, landings: Sequence[Landing]) -> None:
    seconds = {landing.rung: landing.seconds for landing in landings}
    most = max(seconds.values())
    for row, landing in enumerate(landings):
        base = seconds.get(landing.base or "", 0.0)
        low, high = sorted((base, landing.seconds))
        (bar,) = axes.barh(row, high - low, left=low, height=0.62, color=_colour(landing))
        style.add_tooltip(bar, f"{landing.rung}: {text.seconds(landing.seconds)}")
        axes.plot([landing.seconds] * 2, [row - 0.4, row + 0.4], color=style.INK, linewidth=1.8)
        words = text.ratio(landing.step.estimate) if landing.step else text.seconds(landing.seconds)
        axes.text(high + 0.02 * most, row, words, va="center", fontsize=7.5)
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


# Source lines ---------------------------------------------------------------------------------------------------------


_LINES = "Line by line"
_LINES_CAPTION = (
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


def draw_lines(summary: Summary) -> Drawing:
    """Draw the lines of the first cell, with the table of the lines of every cell."""
    costs = [row for record in records_of(summary.records, SourceLines) for row in line_rows(record)]
    if not costs:
        return Drawing("lines", _LINES, "This run did not read its steps line by line.")
    shown = records_of(summary.records, SourceLines)[0]
    table = Table(HEADERS, tuple(costs), "lllrrrrr")
    parts = [
        f"{mode} {name} {text.seconds(row.lines[name].seconds)}"
        for mode, row in shown.modes.items()
        for name in rank_lines([row])[:MOST]
    ]
    alt = alt_text("Time of each line of source.", parts)
    return Drawing("lines", _LINES, _LINES_CAPTION, alt, _bars(shown), table)


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


def line_rows(record: SourceLines) -> Iterator[tuple[str, ...]]:
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
