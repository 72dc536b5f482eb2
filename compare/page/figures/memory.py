"""The figure of memory: the bytes of one warm training step by class, for each mode."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary, largest
from compare.records.cells import Memory, MemoryRow
from compare.records.record import Cell, records_of
from compare.words import text

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


def draw(summary: Summary) -> Drawing:
    """Draw a panel for each workload, with a bar for each mode."""
    shown = {place: held for place, held in summary.memory.items() if sum(held.classes.values())}
    cells = largest(cell for cell, _ in shown)
    table = _table(summary.memory)
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
    return "Memory held for one step, stacked by class. Totals: " + "; ".join(parts) + "."


def _table(measured: Mapping[tuple[Cell, str], MemoryRow]) -> Table | None:
    classes = style.ordered_classes(name for held in measured.values() for name in held.classes)
    rows = ({**cell._asdict(), "mode": mode, **_row(held, classes)} for (cell, mode), held in measured.items())
    return Table.of("lll" + "r" * (len(classes) + 4), rows)


def _row(held: MemoryRow, classes: Sequence[str]) -> dict[str, str]:
    parts = {name: held.classes.get(name, 0) for name in classes}
    totals = {"all classes": sum(parts.values()), "measured peak": held.peak, "resident growth": held.resident_growth}
    sizes = {name: text.size(value) for name, value in (parts | totals).items()}
    return {**sizes, "nodes": f"{held.nodes:,}"}
