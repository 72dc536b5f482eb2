"""The figure of parts: the shares of a step's time by part in both engines, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from compare.instruments.parts import ENGINES, UNEXPLAINED
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary
from compare.records.cells import Parts
from compare.records.record import Cell, Records, group_by, records_of
from compare.stats import Interval, geometric_mean, sum_interval
from compare.words import text

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


def draw(summary: Summary) -> Drawing:
    """Draw a stacked bar for each engine and cell."""
    steps = step_parts(summary.records)
    if not steps:
        return Drawing("parts", _TITLE, "No step of this run was taken apart.")
    figure = style.figure(1.1 + 0.34 * len(steps))
    axes = figure.subplots()
    for row, step in enumerate(steps):
        _bar(axes, row, step)
    style.rows(axes, [f"{step.cell.workload}, {step.cell.size}: {step.engine}" for step in steps])
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.axvline(1, color=style.FAINT, linewidth=0.8)
    handles = [_patch(part) for part in _LOOKS]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=style.key_columns(len(handles)), fontsize=8, handlelength=1.4
    )
    notes = " ".join(f"{step.note}." for step in steps if step.note)
    return Drawing("parts", _TITLE, f"{_CAPTION} {notes}".strip(), _alt(steps), figure, _table(steps, summary.records))


def _bar(axes: Axes, row: int, step: StepParts) -> None:
    right = 0.0
    for part, share in positive_shares(step).items():
        fill, hatch = _LOOKS[part]
        (bar,) = axes.barh(row, share, left=right, height=0.7, color=fill, hatch=hatch, edgecolor="white")
        style.add_tooltip(bar, f"{step.engine}, {part}: {share:.1%} of {text.seconds(step.seconds)}")
        right += share
    axes.text(right + 0.01, row, text.seconds(step.seconds), va="center", fontsize=8)


def positive_shares(step: StepParts) -> dict[str, float]:
    """Return the parts above zero as shares of their sum."""
    above = {part: share.estimate for part, share in step.shares.items() if share.estimate > 0}
    return {part: share / sum(above.values()) for part, share in above.items()}


def _patch(part: str) -> Patch:
    fill, hatch = _LOOKS[part]
    return Patch(facecolor=fill, hatch=hatch, edgecolor="white", label=part)


def _alt(steps: Sequence[StepParts]) -> str:
    parts = (
        f"{step.cell.workload} {step.engine}: kernels {step.shares['kernel'].estimate:.0%}, "
        f"unexplained {step.shares[UNEXPLAINED].estimate:.0%}"
        for step in steps
    )
    return "Shares of a step by part. " + "; ".join(parts) + "."


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
