"""The figure of strategies for inputs of varying length: time per example under each, ÷ plain dynamic."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from compare.claims.evidence import Evidence, steady
from compare.page.figures import Drawing, style
from compare.page.lengths import computed_per_element, order_strategies, table
from compare.page.summary import Summary
from compare.records.cells import StrategyRow
from compare.records.record import DYNAMIC
from compare.stats import Interval
from compare.words import text

_TITLE = "Strategies for inputs of varying length"
_CAPTION = (
    "Each dot is the time of a training step for one example under a strategy, once warm, ÷ the time of dynamic with "
    "one example at a time. The whiskers are its 95% interval. Left of 1× is faster. A circle is one example at a "
    "time, a square a batch. The words on the right give the graphs compiled in the first epoch, and the elements "
    "computed for each element of the input, which padding raises. A strategy is missing if a model does not allow it; "
    "the verdict on C4 says why. In the numbers below, hits are the calls of the first epoch that found their graph, "
    "and useful is the share of the computed elements that belong to the input. A percentile is the time that an "
    "example waits for its call once warm: in a batch all examples wait for the whole batch. Held are the bytes of all "
    "compiled graphs with their arenas."
)
_COLOURS = {"dynamic": "#d55e00", "static": "#0072b2"}


def draw(summary: Summary) -> Drawing:
    """Draw a panel for each model and distribution of lengths."""
    tables = [cell for cell in summary.strategies if cell.of(DYNAMIC)]
    if not tables:
        return Drawing("strategies", _TITLE, "This run did not measure the strategies; a run of the whole suite does.")
    grid = style.grid([cell.name for cell in tables], 2, 2.9, head=0.7, least=6.5)
    names = order_strategies(tables)
    for cell in tables:
        _panel(grid.axes[cell.name], cell, names)
    words = (
        "time an example ÷ dynamic, one example at a time (log scale; 95% interval)"
        if style.columns(2) > 1
        else "time ÷ dynamic, one by one (log scale)"
    )
    grid.figure.supxlabel(words, fontsize=9.5)
    return Drawing("strategies", _TITLE, _CAPTION, _alt(tables), grid.figure, table(tables))


def _panel(axes: Axes, cell: Evidence, names: Sequence[str]) -> None:
    axes.set_title(style.clean(cell.name, 60))
    ratios = {name: cell.ratio(name, DYNAMIC, steady) for name in names}
    compared = {name: interval for name, interval in ratios.items() if interval is not None}
    for name, interval in compared.items():
        _dot(axes, names.index(name), name, interval, cell.of(name))
    style.rows(axes, names, fontsize=8)
    shown = [interval.estimate for interval in compared.values()]  # whiskers may reach beyond the panel
    style.ratio_axis(axes, min(0.5, *shown) / 1.6, max(2.0, *shown) * 1.6, label=0.13)
    style.tie_zone(axes)


def _dot(axes: Axes, row: int, name: str, interval: Interval, measured: Sequence[StrategyRow]) -> None:
    colour = _COLOURS.get(name.partition(",")[0], style.FAINT)
    marker = "o" if measured[0].batching == "one by one" else "s"
    axes.plot(style.ends(interval), [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
    (dot,) = axes.plot(interval.estimate, row, color=colour, marker=marker, markersize=5.5)
    style.add_tooltip(dot, f"{name}: {' '.join(style.ratio_cells(interval))}")
    style.beside(axes, row, f"{measured[0].compiles} · {computed_per_element(measured):.2f}", 4, 7.5)


def _alt(tables: Sequence[Evidence]) -> str:
    parts = []
    for cell in tables:
        seconds, fastest = min((mean, name) for name, mean in cell.means(steady).items())
        parts.append(f"{cell.name}: fastest is {fastest}, {text.seconds(seconds)} an example")
    return "Time of a training step under each strategy. " + "; ".join(parts) + "."
