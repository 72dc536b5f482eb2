"""Time part by part: the shares of a step in both engines, stacked."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from compare.instruments.parts.programs import UNEXPLAINED
from compare.page.blocks import Table
from compare.page.figures import drawing
from compare.page.figures.shares import LARGEST_UNEXPLAINED, Parted, parted, spread, stages
from compare.page.plots import Drawing, style
from compare.page.summary import Summary
from compare.records.record import Records
from compare.words import text

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
    """One bar for each engine and cell."""
    steps = parted(summary.records)
    if not steps:
        return Drawing("parts", _TITLE, "No step of this run was taken apart.")
    figure = style.figure(1.1 + 0.34 * len(steps))
    axes = figure.subplots()
    for row, step in enumerate(steps):
        _bar(axes, row, step)
    drawing.rows(axes, [f"{step.cell.workload}, {step.cell.size}: {step.engine}" for step in steps])
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.axvline(1, color=style.FAINT, linewidth=0.8)
    handles = [_patch(part) for part in _LOOKS]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=style.key_columns(len(handles)), fontsize=8, handlelength=1.4
    )
    notes = " ".join(f"{step.note}." for step in steps if step.note)
    return Drawing("parts", _TITLE, f"{_CAPTION} {notes}".strip(), _alt(steps), figure, _table(steps, summary.records))


def _bar(axes: Axes, row: int, step: Parted) -> None:
    right = 0.0
    for part, share in drawn(step).items():
        fill, hatch = _LOOKS[part]
        (bar,) = axes.barh(row, share, left=right, height=0.7, color=fill, hatch=hatch, edgecolor="white")
        style.said(bar, f"{step.engine}, {part}: {share:.1%} of {text.seconds(step.seconds)}")
        right += share
    axes.text(right + 0.01, row, text.seconds(step.seconds), va="center", fontsize=8)


def drawn(step: Parted) -> dict[str, float]:
    """The parts above zero as shares of their sum: that of a step whose parts are all above zero is 1 already."""
    above = {part: share.estimate for part, share in step.shares.items() if share.estimate > 0}
    return {part: share / sum(above.values()) for part, share in above.items()}


def _patch(part: str) -> Patch:
    fill, hatch = _LOOKS[part]
    return Patch(facecolor=fill, hatch=hatch, edgecolor="white", label=part)


def _alt(steps: Sequence[Parted]) -> str:
    parts = (
        f"{step.cell.workload} {step.engine}: kernels {step.shares['kernel'].estimate:.0%}, "
        f"unexplained {step.shares[UNEXPLAINED].estimate:.0%}"
        for step in steps
    )
    return "Shares of a step by part. " + "; ".join(parts) + "."


def _table(steps: Sequence[Parted], records: Records) -> Table:
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
    rows += [(*step.cell, step.engine, "check", step.note or _fine(), "", "") for step in steps]
    return Table(headers, tuple(rows), "llllrrr")


def _fine() -> str:
    return f"sums to the step within {LARGEST_UNEXPLAINED:.0%}"
