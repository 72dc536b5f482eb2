"""The figure of the ledger: live bytes over one step by class in both engines, and the causes of unequal peaks."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from compare.instruments.watch import MODES
from compare.instruments.watch.ledger import attribute_causes
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary
from compare.records.cells import Ledger, LedgerRow
from compare.records.record import records_of
from compare.words import text

_TITLE = "Memory, byte by byte, over one step"
_CAPTION = (
    "The bytes of NumPy data that are live after each kernel of one warm training step, stacked by their class. The "
    "dotted line marks the start of backward. A triangle marks the moment of the most bytes, with the line of source "
    "whose kernel ran then. The first two moments of the static engine are the trace and the "
    "compilation; its slack is the part of the arena that holds nothing live. The dashed line is the peak that "
    "tracemalloc counts. The picture shows the cells that hold most. The table attributes the difference of the peaks: "
    "each row switches one thing. Only the first and the last row of a cell are measured; the rows between are counts, "
    "equal on every machine."
)
_MOST = 4


def draw(summary: Summary) -> Drawing:
    """Draw a row of two panels for each cell, on one scale."""
    lines = records_of(summary.records, Ledger)
    cells = [line for line in lines if any(mode.status == "ok" for mode in line.modes.values())]
    if not cells:
        return Drawing("ledger", _TITLE, "This run kept no ledger.")
    shown = sorted(cells, key=lambda line: -max(row.peak for row in line.modes.values()))[:_MOST]
    grid = style.grid([(line.cell, mode) for line in shown for mode in MODES], len(MODES), 2.3)
    for line in shown:
        _row_of_panels(line, [grid.axes[line.cell, mode] for mode in MODES])
    names = [name for line in shown for mode in line.modes.values() for name in _classes(mode)]
    style.class_legend(grid.figure, style.ordered_classes(names))
    grid.figure.supxlabel("kernels of one step, in the order they run", fontsize=9.5)
    notes = [f"{line.cell.title}, {mode}: {note}." for line in cells for mode, row in line.modes.items()
             for note in row.notes]  # fmt: skip
    return Drawing("ledger", _TITLE, " ".join([_CAPTION, *notes]), _alt(cells), grid.figure, _table(cells))


def _row_of_panels(line: Ledger, both: Sequence[Axes]) -> None:
    rows = {mode: row for mode in MODES if (row := line.modes.get(mode)) and row.status == "ok"}
    most = max(max(row.peak, row.counted_peak) for row in rows.values())
    scale, unit = text.byte_unit(most)
    for mode, axes in zip(MODES, both, strict=True):
        axes.set_title(style.clean(f"{line.cell.title}: {mode} ({unit})", 60))
        axes.set_ylim(0, 1.12 * most / scale)
        if mode in rows:
            _area(axes, rows[mode], scale)


def _area(axes: Axes, row: LedgerRow, scale: float) -> None:
    moments, names = row.moments, style.ordered_classes(_classes(row))
    heights = [[moment.classes.get(name, 0) / scale for moment in moments] for name in names]
    bottom = [0.0] * len(moments)
    for name, each in zip(names, heights, strict=True):
        top = [low + height for low, height in zip(bottom, each, strict=True)]
        area = axes.fill_between(range(len(moments)), bottom, top, step="mid", **style.class_patch(name))
        style.add_tooltip(area, f"{name}: at most {text.size(max(moment.classes.get(name, 0) for moment in moments))}")
        bottom = top
    axes.axhline(row.counted_peak / scale, color=style.INK, linewidth=0.9, linestyle="--")
    begins = next((i for i, moment in enumerate(moments) if moment.phase == "backward"), None)
    if begins is not None:
        axes.axvline(begins - 0.5, color=style.INK, linewidth=0.9, linestyle=":")
    axes.set_xlim(-0.5, len(moments) - 0.5)
    _peak_mark(axes, row, scale)


def _peak_mark(axes: Axes, row: LedgerRow, scale: float) -> None:
    """Mark the moment of the most bytes with its source line, on the side with more room."""
    at = max(range(len(row.moments)), key=lambda i: row.moments[i].total)
    peak = row.moments[at]
    (mark,) = axes.plot(at, peak.total / scale, marker="v", color=style.INK, markersize=6, zorder=5)
    classes = ", ".join(f"{name} {text.size(size)}" for name, size in peak.classes.items() if size)
    style.add_tooltip(mark, f"{_where(row)}: {text.size(peak.total)}, {classes}")
    right = at > len(row.moments) / 2
    beside: dict[str, Any] = {"textcoords": "offset points", "ha": "right" if right else "left", "va": "bottom"}
    axes.annotate(style.clean(_where(row)), (at, peak.total / scale), (-6 if right else 6, 3), fontsize=8, **beside)


def _where(row: LedgerRow) -> str:
    """Return where the peak is, as `peak at mine.py:7, backward`, or `peak where the step returns`."""
    peak = max(row.moments, key=lambda moment: moment.total)
    if not peak.line:
        return "peak where the step returns" if peak is row.moments[-1] else f"peak in {peak.phase}"
    return f"peak at {peak.line}, {peak.phase}"


def _classes(row: LedgerRow) -> list[str]:
    return [name for moment in row.moments for name, size in moment.classes.items() if size]


def _alt(lines: Sequence[Ledger]) -> str:
    parts = (
        f"{line.cell.title} {mode} {text.size(row.peak)} ({_where(row)})"
        for line in lines
        for mode, row in line.modes.items()
        if row.status == "ok"
    )
    return "Live bytes over a step, stacked by class. Peaks: " + "; ".join(parts) + "."


def _table(lines: Sequence[Ledger]) -> Table:
    headers = ("workload", "size", "what", "bytes", "change")
    return Table(headers, tuple(row for line in lines for row in _rows(line)), "lllrr")


def _rows(line: Ledger) -> list[tuple[str, ...]]:
    head = line.cell
    rows: dict[str, LedgerRow] = {mode: row for mode, row in line.modes.items() if row.status == "ok"}
    sizes = ((mode, *size) for mode, row in rows.items() for size in _sizes(row))
    cells: list[tuple[str, ...]] = [(*head, f"{mode}: {name}", f"{size:,}", "") for mode, name, size in sizes]
    if not all(mode in rows for mode in MODES):
        return cells
    first, last = (rows[mode] for mode in MODES)
    held = first.peak
    for cause, change in attribute_causes(held, last.counts, last.peak):
        held += change
        cells.append((*head, f"then {cause}", f"{held:,}", f"{change:+,}"))
    return cells


def _sizes(row: LedgerRow) -> list[tuple[str, int]]:
    objects = [(f"{name} (Python objects)", size) for name, size in row.objects.items()]
    return [
        ("peak of the ledger", row.peak),
        ("peak by tracemalloc", row.counted_peak),
        ("growth of the process", row.resident_growth),
        ("parameters, given", row.parameters),
        *objects,
    ]
