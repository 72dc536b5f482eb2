"""The figures of memory: the bytes of one warm training step by class.

`draw_memory` shows what each mode holds. `draw_ledger` shows live bytes over the step in both engines, and the causes
of unequal peaks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compare import text
from compare.instruments.ledger import MODES, attribute_causes
from compare.records.cells import Ledger, LedgerRow, Memory, MemoryRow
from compare.records.record import Cell, records_of
from compare.report.blocks import Table
from compare.report.figures import Drawing, alt_text, style
from compare.report.summary import Summary, largest

_TITLE = "Memory of one step, by class"
_CAPTION = (
    "The bytes that each mode holds for one warm step, stacked by what they are for: parameters and "
    "gradients, which both engines need; values saved for the backward pass and workspace; and what a "
    "mode adds, the recorded structure or the compiled plan, and the caches kept for each shape. Compare "
    "lengths within a panel only: every panel has its own scale and unit. The table below adds the peak "
    f"that was measured over the step and the growth of the resident set. {style.ONE_SIZE}"
)

_COUNTED = {
    "NumPy": "Counted are the bytes of NumPy's buffers, as NumPy tells tracemalloc; structure is bytes of Python "
    "objects, and resident growth is what the system gave the process.",
    "malloc": "Counted are the bytes that malloc gave: the peak is how far they rise in a step.",
    "allocator": "Counted are the bytes that the GPU's allocator gave: the peak is how far they rise in a step from "
    "what was in use before it.",
}
"""A sentence on the counted bytes, by `Memory.counted`."""


def draw_memory(summary: Summary) -> Drawing:
    """Draw a panel for each workload, with a bar for each mode."""
    shown = {place: held for place, held in summary.memory.items() if sum(held.classes.values())}
    cells = largest(cell for cell, _ in shown)
    classes = style.ordered_classes(name for held in summary.memory.values() for name in held.classes)
    rows = ({**cell._asdict(), "mode": mode, **_row(held, classes)} for (cell, mode), held in summary.memory.items())
    table = Table.of("lll" + "r" * (len(classes) + 4), rows)
    words = dict.fromkeys(_COUNTED[record.counted] for record in records_of(summary.records, Memory))
    counted = " ".join(words)
    if not cells:
        said = counted or "No memory of this run can be shown."
        return Drawing("memory", _TITLE, said, table=table)
    modes = {cell: style.ordered_modes(mode for place, mode in shown if place == cell) for cell in cells}
    bars = {cell: {mode: shown[cell, mode] for mode in modes[cell]} for cell in cells}
    return Drawing("memory", _TITLE, f"{_CAPTION} {counted}", _alt(bars), _figure(bars), table)


Bars = Mapping[str, MemoryRow]
"""The memory row of each mode of a cell."""


def _figure(bars: Mapping[Cell, Bars]) -> Figure:
    """Draw panels with heights by their number of bars, so that all bars are equally thick."""
    heights = [len(by_mode) + 0.6 for by_mode in bars.values()]
    classes = style.ordered_classes(
        name for by_mode in bars.values() for held in by_mode.values() for name in held.classes
    )
    figure = style.figure(0.8 + sum(0.45 + 0.27 * height for height in heights))
    stacked = figure.subplots(len(bars), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (cell, by_mode) in zip(stacked[:, 0], bars.items(), strict=True):
        _panel(axes, cell, by_mode, classes)
    style.class_legend(figure, classes)
    return figure


def _panel(axes: Axes, cell: Cell, bars: Bars, classes: Sequence[str]) -> None:
    totals = [sum(held.classes.values()) for held in bars.values()]
    scale, unit = text.byte_unit(max(totals))
    for row, (mode, held) in enumerate(bars.items()):
        _stack(axes, row, mode, [(name, held.classes.get(name, 0)) for name in classes], scale)
        label = f" {text.size(totals[row])}"
        axes.annotate(label, (totals[row] / scale, row), va="center", fontsize=8.5, annotation_clip=False)
    style.rows(axes, list(bars))
    axes.set_xlim(0, 1.12 * max(totals) / scale)
    axes.set_title(style.clean(f"{cell.workload}, {cell.size} ({unit})"))


def _stack(axes: Axes, row: int, mode: str, parts: Sequence[tuple[str, int]], scale: float) -> None:
    left = 0
    for name, size in parts:
        (bar,) = axes.barh(row, size / scale, left=left / scale, height=0.72, **style.class_patch(name))
        style.add_tooltip(bar, f"{mode}, {name}: {text.size(size)}")
        left += size


def _alt(bars: Mapping[Cell, Bars]) -> str:
    shown = ((cell, mode, held) for cell, by_mode in bars.items() for mode, held in by_mode.items())
    parts = (f"{cell.workload} {mode} {text.size(sum(held.classes.values()))}" for cell, mode, held in shown)
    return alt_text("Memory held for one step, stacked by class. Totals:", parts)


def _row(held: MemoryRow, classes: Sequence[str]) -> dict[str, str]:
    parts = {name: held.classes.get(name, 0) for name in classes}
    totals = {"all classes": sum(parts.values()), "measured peak": held.peak, "resident growth": held.resident_growth}
    sizes = {name: text.size(value) for name, value in (parts | totals).items()}
    return {**sizes, "nodes": f"{held.nodes:,}"}


# The ledger: byte by byte, over one step ------------------------------------------------------------------------------


_LEDGER = "Memory, byte by byte, over one step"
_LEDGER_CAPTION = (
    "The bytes of NumPy data that are live after each kernel of one warm training step, stacked by their class. The "
    "dotted line marks the start of backward. A triangle marks the moment of the most bytes, with the line of source "
    "whose kernel ran then. The first two moments of the static engine are the trace and the "
    "compilation; its slack is the part of the arena that holds nothing live. The dashed line is the peak that "
    "tracemalloc counts. The picture shows the cells that hold most. The table attributes the difference of the peaks: "
    "each row switches one thing. Only the first and the last row of a cell are measured; the rows between are counts, "
    "equal on every machine."
)
_MOST = 4


def draw_ledger(summary: Summary) -> Drawing:
    """Draw a row of two panels for each cell, on one scale."""
    lines = records_of(summary.records, Ledger)
    cells = [line for line in lines if any(mode.status == "ok" for mode in line.modes.values())]
    if not cells:
        return Drawing("ledger", _LEDGER, "This run kept no ledger.")
    shown = sorted(cells, key=lambda line: -max(row.peak for row in line.modes.values()))[:_MOST]
    grid = style.grid([(line.cell, mode) for line in shown for mode in MODES], len(MODES), 2.3)
    for line in shown:
        _row_of_panels(line, [grid.axes[line.cell, mode] for mode in MODES])
    names = [name for line in shown for mode in line.modes.values() for name in _classes(mode)]
    style.class_legend(grid.figure, style.ordered_classes(names))
    grid.figure.supxlabel("kernels of one step, in the order they run", fontsize=9.5)
    notes = [f"{line.cell.title}, {mode}: {note}." for line in cells for mode, row in line.modes.items()
             for note in row.notes]  # fmt: skip
    parts = (
        f"{line.cell.title} {mode} {text.size(row.peak)} ({_where(row)})"
        for line in cells
        for mode, row in line.modes.items()
        if row.status == "ok"
    )
    alt = alt_text("Live bytes over a step, stacked by class. Peaks:", parts)
    headers = ("workload", "size", "what", "bytes", "change")
    table = Table(headers, tuple(row for line in cells for row in _ledger_rows(line)), "lllrr")
    return Drawing("ledger", _LEDGER, " ".join([_LEDGER_CAPTION, *notes]), alt, grid.figure, table)


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


def _ledger_rows(line: Ledger) -> list[tuple[str, ...]]:
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
