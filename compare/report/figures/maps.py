"""The figures of the crossover map: chains of equal ops over tensor size and depth.

`draw_decision` stands beside the answer: the share of time that compiling saves against runs, by size and number of
shapes. `draw_crossover` is the map itself: heat maps of static ÷ dynamic, in time and in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter
from numpy.typing import NDArray

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.regimes import CostPlace, MapPlace, Point
from compare.report.blocks import Table
from compare.report.figures import Drawing, alt_text, style
from compare.report.summary import Summary

_WHEN = "When does compiling pay?"
_SHAPES: tuple[tuple[int, Any], ...] = ((1, "-"), (10, (0, (5, 2))), (100, (0, (1, 1.5))))
_SIZES = (("#0072b2", "o"), ("#009e73", "s"), ("#d55e00", "D"))
_DEEPEST = 64
_LONGEST = 6
_LOWEST = -1.0
_NEVER = "never"


def draw_decision(summary: Summary) -> Drawing:
    """Draw a panel for each kind of op, for chains of the largest depth up to `_DEEPEST`."""
    depths = {place.at.depth for place in summary.places if place.at.depth <= _DEEPEST}
    shown = [place for place in summary.places if depths and place.at.depth == max(depths)]
    if not shown:
        return Drawing("decision", _WHEN, "this run has no crossover map; a run of the whole suite measures one")
    kinds = list(dict.fromkeys(place.at.ops for place in shown))
    sizes = _some(sorted({place.at.elements for place in shown}))
    grid = style.grid(kinds, len(kinds), 2.8, head=1.2)
    for ops, axes in grid.axes.items():
        _saving_panel(axes, {p.at.elements: p for p in shown if p.at.ops == ops and p.at.elements in sizes}, sizes)
        axes.set_title(f"{max(depths)} {style.clean(ops)} ops in a row")
    grid.label("runs of the step (log scale)", "time saved, as a share of dynamic's")
    grid.figure.legend(handles=_key(sizes), loc="outside upper center", ncols=style.columns(3), fontsize=8.5)
    table = Table.of(
        "lrrrr",
        [
            {
                "ops": p.at.ops,
                "floats an op": f"{p.at.elements:,}",
                "shapes": str(shapes),
                "pays after runs": pays(p, shapes),
                "static ÷ dynamic once compiled": text.ratio(p.steady.estimate),
            }
            for p in shown
            for shapes, _ in _SHAPES
        ],
    )
    caption = (
        f"The time that static saves in all, as a share of dynamic's, for a training step of {max(depths)} ops: above "
        "0 compile, below 0 stay dynamic. Every shape of the inputs costs one compilation, so more shapes move the "
        "line to the right. Lines that would be below -100% start where they reach it."
    )
    parts = (f"{p.at.ops}, {p.at.elements:,} floats: {_pay_off_text(p, 1)} for one shape" for p in shown)
    alt = alt_text("The time that static saves as a share of the time of dynamic, against the runs of a step.", parts)
    return Drawing("decision", _WHEN, caption, alt, grid.figure, table)


def _some(sizes: Sequence[int]) -> list[int]:
    """Return the smallest, the middle and the largest size."""
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})


def _saving_panel(axes: Axes, places: dict[int, CostPlace], sizes: Sequence[int]) -> None:
    runs = np.geomspace(1, 10**_LONGEST, 200)
    for size, place in places.items():
        colour, marker = _SIZES[sizes.index(size)]
        for shapes, dashes in _SHAPES:
            share = time_saved(place, runs, shapes)
            seen = (share >= _LOWEST) & (runs >= shapes)
            (line,) = axes.plot(runs[seen], share[seen], color=colour, linestyle=dashes, linewidth=1.7)
            style.add_tooltip(
                line, f"{size:,} floats an op, {text.count_noun(shapes, 'shape')}: {_pay_off_text(place, shapes)}"
            )
        axes.plot(runs[-1], time_saved(place, runs, 1)[-1], color=colour, marker=marker, markersize=6, clip_on=False)
    axes.axhline(0, color=style.INK, linewidth=1.2)
    axes.set_xscale("log")
    axes.set_xlim(1, 10 ** (_LONGEST + 0.2))
    axes.set_ylim(_LOWEST, 1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xticks([10.0**power for power in range(0, _LONGEST + 1, 2)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.annotate("compile", (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=8.5)
    axes.annotate("stay dynamic", (0.98, 0.03), xycoords="axes fraction", ha="right", va="bottom", fontsize=8.5)


def time_saved(place: CostPlace, runs: NDArray[np.float64], shapes: int) -> NDArray[np.float64]:
    """Return the time that static saves after `runs` runs, as a share of dynamic's, with one compilation per shape."""
    static, dynamic = place.static, place.dynamic
    spent = shapes * (static.build + static.head[0] - static.steady) + runs * static.steady
    return np.asarray(1 - spent / (dynamic.head[0] - dynamic.steady + runs * dynamic.steady))


def _key(sizes: Sequence[int]) -> list[Line2D]:
    of_sizes = [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=f"{size:,} floats an op")
        for size, (colour, marker) in zip(sizes, _SIZES, strict=False)
    ]
    of_shapes = [
        Line2D([], [], color=style.FAINT, linestyle=dashes, label=f"{text.count_noun(shapes, 'shape')} of inputs")
        for shapes, dashes in _SHAPES
    ]
    if style.columns(2) == 1:
        return [*of_sizes, *of_shapes]
    return [line for pair in zip(of_sizes, of_shapes, strict=False) for line in pair]


def pays(place: CostPlace, shapes: int) -> str:
    """Return after how many runs the compilations of `shapes` shapes are paid for; `never` if static is no faster."""
    gain = place.dynamic.steady - place.static.steady
    late = shapes * (place.static.build + place.static.head[0] - place.static.steady)
    late -= place.dynamic.head[0] - place.dynamic.steady
    return f"{max(1, int(np.ceil(late / gain))):,}" if gain > 0 else _NEVER


def _pay_off_text(place: CostPlace, shapes: int) -> str:
    """Return the break-even in words, as `pays after 355 runs` or `never pays`."""
    after = pays(place, shapes)
    return "never pays" if after == _NEVER else f"pays after {after} runs"


# The map --------------------------------------------------------------------------------------------------------------


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


def draw_crossover(summary: Summary) -> Drawing:
    """Draw a column of maps for each kind of op, with time above and bytes below."""
    rows = [(name, points) for name, points in (("time", summary.times), ("bytes", summary.sizes)) if points]
    if not rows:
        return Drawing("crossover", _TITLE, "This run has no crossover map; a run of the whole suite measures one.")
    kinds = list(dict.fromkeys(point.place.ops for _, points in rows for point in points))
    depths = {point.place.depth for _, points in rows for point in points}
    grid = style.grid([(name, ops) for name, _ in rows for ops in kinds], len(kinds), 0.9 + 0.46 * len(depths), 1.2)
    for (name, ops), axes in grid.axes.items():
        axes.set_title(f"{name}, {style.clean(ops)}: static ÷ dynamic")
        _map_panel(axes, [point for point in dict(rows)[name] if point.place.ops == ops])
    grid.label("floats in the tensor", "ops in a row")
    bar = grid.figure.colorbar(
        ScalarMappable(Normalize(-_REACH, _REACH), _COLOURS), ax=list(grid.axes.values()), shrink=0.8, pad=0.02
    )
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda power, _: text.ratio(2.0**power)))
    bar.ax.set_title("static ÷\ndynamic", fontsize=8.5, fontweight="normal", loc="left")
    bar.outline.set_visible(False)
    parts = [
        f"{name}, {p.place.ops}, depth {p.place.depth}, {p.place.elements:,} floats: {text.ratio(p.ratio)}"
        for name, points in rows
        for p in (min(points, key=_RATIO), max(points, key=_RATIO))
    ]
    alt = alt_text("Cost of static divided by that of dynamic; the extremes are", parts)
    held = {point.place: point for point in summary.sizes}
    timed = {point.place: point for point in summary.times}
    places = sorted({*held, *timed})
    table = Table.of("lrrrrrr", [_map_row(place, timed.get(place), held.get(place)) for place in places])
    return Drawing("crossover", _TITLE, _CAPTION, alt, grid.figure, table)


def _map_panel(axes: Axes, points: Sequence[Point]) -> None:
    sizes = sorted({point.place.elements for point in points})
    depths = sorted({point.place.depth for point in points})
    at = {(sizes.index(p.place.elements), depths.index(p.place.depth)): p for p in points}
    for (column, row), point in at.items():
        shade = math.log2(point.ratio)
        colour = _COLOURS((max(-_REACH, min(_REACH, shade)) + _REACH) / (2 * _REACH))
        axes.fill(
            [column - 0.5, column + 0.5, column + 0.5, column - 0.5], [row - 0.5] * 2 + [row + 0.5] * 2, color=colour
        )
        words = "\n".join(filter(None, (text.ratio(point.ratio), _second(point))))
        ink = style.ON_DARK if abs(shade) > _DARK else style.ON_PALE
        axes.text(column, row, words, ha="center", va="center", fontsize=7.5, color=ink)
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


def _map_row(place: MapPlace, timed: Point | None, held: Point | None) -> dict[str, str]:
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
