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
    found = parted(summary.records)
    if not found:
        return Drawing("parts", _TITLE, "No step of this run was taken apart.")
    figure = style.figure(1.1 + 0.34 * len(found))
    axes = figure.subplots()
    for row, one in enumerate(found):
        _bar(axes, row, one)
    drawing.rows(axes, [f"{p.cell.workload}, {p.cell.size}: {p.engine}" for p in found])
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.axvline(1, color=style.FAINT, linewidth=0.8)
    handles = [_patch(part) for part in _LOOKS]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=style.key_columns(len(handles)), fontsize=8, handlelength=1.4
    )
    notes = " ".join(f"{one.note}." for one in found if one.note)
    return Drawing("parts", _TITLE, f"{_CAPTION} {notes}".strip(), _alt(found), figure, _table(found, summary.records))


def _bar(axes: Axes, row: int, one: Parted) -> None:
    right = 0.0
    for part, share in drawn(one).items():
        fill, hatch = _LOOKS[part]
        axes.barh(row, share, left=right, height=0.7, color=fill, hatch=hatch, edgecolor="white")
        right += share
    axes.text(right + 0.01, row, text.seconds(one.seconds), va="center", fontsize=8)


def drawn(one: Parted) -> dict[str, float]:
    """The parts above zero as shares of their sum: that of a step whose parts are all above zero is 1 already."""
    above = {part: share.estimate for part, share in one.shares.items() if share.estimate > 0}
    return {part: share / sum(above.values()) for part, share in above.items()}


def _patch(part: str) -> Patch:
    fill, hatch = _LOOKS[part]
    return Patch(facecolor=fill, hatch=hatch, edgecolor="white", label=part)


def _alt(found: Sequence[Parted]) -> str:
    parts = (
        f"{p.cell.workload} {p.engine}: kernels {p.shares['kernel'].estimate:.0%}, "
        f"unexplained {p.shares[UNEXPLAINED].estimate:.0%}"
        for p in found
    )
    return "Shares of a step by part. " + "; ".join(parts) + "."


def _table(found: Sequence[Parted], records: Records) -> Table:
    headers = ("workload", "size", "engine", "part", "share of a step", "95% interval", "seconds")
    rows = [
        (*one.cell, one.engine, part, f"{share.estimate:.1%}", spread(share),
         text.seconds(share.estimate * one.seconds))
        for one in found
        for part, share in one.shares.items()
    ]  # fmt: skip
    rows += [
        (*one.cell, "compiling once", stage, "", "", text.seconds(seconds))
        for one in found
        if one.engine == "static"
        for stage, seconds in stages(records, one.cell).items()
    ]
    rows += [(*one.cell, one.engine, "check", one.note or _fine(), "", "") for one in found]
    return Table(headers, tuple(rows), "llllrrr")


def _fine() -> str:
    return f"sums to the step within {LARGEST_UNEXPLAINED:.0%}"
