"""The crossover figure: heat maps of static ÷ dynamic over tensor size and depth, in time and in bytes."""

import math
from collections.abc import Sequence
from itertools import product
from operator import attrgetter
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.crossover import MapPlace, Point
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary
from compare.words import text

_TITLE = "Crossover: tensor size and depth"
_CAPTION = (
    "A training step of a chain of equal ops, so many in a row (up) over so many floats (right). The number is "
    "static's cost divided by dynamic's: orange below 1×, where static costs less, purple above, where dynamic does; "
    "the scale is logarithmic and pale is a tie. In the maps of time a heavy line runs where static is no longer shown "
    f"to be faster by {SMALLEST_EFFECT:.0%}, and the second line of a cell says after how many runs static has earned "
    "back its build: 'tie' and 'unclear' where its 95% interval says so, "
    "'never' where it is slower. Bytes are exact counts: what is held for one step, structure and plan included."
)
_RATIO = attrgetter("ratio")
_COLOURS = colormaps["PuOr"]  # distinct to readers with any colour vision; the middle is white
_REACH = 3.0  # the power of two at which the colour scale ends
_DARK = 1.7  # the power of two beyond which a cell is so dark that its text is white
_WORDS = {"tie": "tie", "unclear": "unclear", "above": "never"}


def draw(summary: Summary) -> Drawing:
    """Draw a column of maps for each kind of op, with time above and bytes below."""
    rows = [(name, points) for name, points in (("time", summary.times), ("bytes", summary.sizes)) if points]
    if not rows:
        return Drawing("crossover", _TITLE, "This run has no crossover map; a run of the whole suite measures one.")
    kinds = list(dict.fromkeys(point.place.ops for _, points in rows for point in points))
    depths = {point.place.depth for _, points in rows for point in points}
    grid = style.grid([(name, ops) for name, _ in rows for ops in kinds], len(kinds), 0.9 + 0.46 * len(depths), 1.2)
    for (name, ops), axes in grid.axes.items():
        axes.set_title(f"{name}, {style.clean(ops)}: static ÷ dynamic")
        _panel(axes, [point for point in dict(rows)[name] if point.place.ops == ops])
    grid.label("floats in the tensor", "ops in a row")
    _scale(grid.figure, list(grid.axes.values()))
    return Drawing("crossover", _TITLE, _CAPTION, _alt(rows), grid.figure, _table(summary))


def _panel(axes: Axes, points: Sequence[Point]) -> None:
    sizes = sorted({point.place.elements for point in points})
    depths = sorted({point.place.depth for point in points})
    at = {(sizes.index(p.place.elements), depths.index(p.place.depth)): p for p in points}
    for (column, row), point in at.items():
        _cell(axes, column, row, point)
    sides = {place: point.interval.side(SMALLEST_EFFECT) if point.interval else "" for place, point in at.items()}
    _border(axes, {place: side == "below" for place, side in sides.items()})
    axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axes.set_yticks(range(len(depths)), [f"{depth:,}" for depth in depths])
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_ylim(-0.5, len(depths) - 0.5)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _cell(axes: Axes, column: int, row: int, point: Point) -> None:
    shade = math.log2(point.ratio)
    colour = _COLOURS((max(-_REACH, min(_REACH, shade)) + _REACH) / (2 * _REACH))
    axes.fill([column - 0.5, column + 0.5, column + 0.5, column - 0.5], [row - 0.5] * 2 + [row + 0.5] * 2, color=colour)
    words = "\n".join(filter(None, (text.ratio(point.ratio), _second(point))))
    ink = style.ON_DARK if abs(shade) > _DARK else style.ON_PALE
    axes.text(column, row, words, ha="center", va="center", fontsize=7.5, color=ink)


def _second(point: Point) -> str:
    if point.interval is None:
        return ""
    side = point.interval.side(SMALLEST_EFFECT)
    return _WORDS.get(side) or ("" if point.pays_after is None else text.count_noun(point.pays_after, "run"))


def _border(axes: Axes, leads: dict[tuple[int, int], bool]) -> None:
    """Draw a line between neighbouring cells if static leads in one and not in the other."""
    look: dict[str, Any] = {"color": style.INK, "linewidth": 2.2, "solid_capstyle": "round"}
    for (column, row), across in product(leads, (True, False)):
        other = (column + across, row + (not across))
        if other in leads and leads[other] is not leads[column, row]:
            if across:
                axes.plot([column + 0.5] * 2, [row - 0.5, row + 0.5], **look)
            else:
                axes.plot([column - 0.5, column + 0.5], [row + 0.5] * 2, **look)


def _scale(figure: Figure, axes: Sequence[Axes]) -> None:
    bar = figure.colorbar(ScalarMappable(Normalize(-_REACH, _REACH), _COLOURS), ax=axes, shrink=0.8, pad=0.02)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda power, _: text.ratio(2.0**power)))
    bar.ax.set_title("static ÷\ndynamic", fontsize=8.5, fontweight="normal", loc="left")
    bar.outline.set_visible(False)


def _alt(rows: Sequence[tuple[str, Sequence[Point]]]) -> str:
    parts = [
        f"{name}, {p.place.ops}, depth {p.place.depth}, {p.place.elements:,} floats: {text.ratio(p.ratio)}"
        for name, points in rows
        for p in (min(points, key=_RATIO), max(points, key=_RATIO))
    ]
    return "Cost of static divided by that of dynamic; the extremes are " + "; ".join(parts) + "."


def _table(summary: Summary) -> Table | None:
    held = {point.place: point for point in summary.sizes}
    timed = {point.place: point for point in summary.times}
    places = sorted({*held, *timed})
    return Table.of("lrrrrrr", [_row(place, timed.get(place), held.get(place)) for place in places])


def _row(place: MapPlace, timed: Point | None, held: Point | None) -> dict[str, str]:
    ratio, interval = style.ratio_cells(timed.interval if timed else None)
    return {
        "ops": place.ops,
        "depth": f"{place.depth:,}",
        "floats": f"{place.elements:,}",
        "time, static ÷ dynamic": ratio,
        "95% interval": interval,
        "pays after runs": _second(timed) if timed else "",
        "bytes, static ÷ dynamic": text.ratio(held.ratio) if held else "",
    }
