"""The figure beside the answer: the share of time that compiling saves against runs, by size and number of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter
from numpy.typing import NDArray

from compare.claims.crossover import CostPlace
from compare.page.blocks import Table
from compare.page.figures import Drawing, style
from compare.page.summary import Summary
from compare.words import text

_TITLE = "When does compiling pay?"
_SHAPES: tuple[tuple[int, Any], ...] = ((1, "-"), (10, (0, (5, 2))), (100, (0, (1, 1.5))))
_SIZES = (("#0072b2", "o"), ("#009e73", "s"), ("#d55e00", "D"))
_DEEPEST = 64
_LONGEST = 6
_LOWEST = -1.0
_NEVER = "never"


def draw(summary: Summary) -> Drawing:
    """Draw a panel for each kind of op, for chains of the largest depth up to `_DEEPEST`."""
    depths = {place.at.depth for place in summary.places if place.at.depth <= _DEEPEST}
    shown = [place for place in summary.places if depths and place.at.depth == max(depths)]
    if not shown:
        return Drawing("decision", _TITLE, "this run has no crossover map; a run of the whole suite measures one")
    kinds = list(dict.fromkeys(place.at.ops for place in shown))
    sizes = _some(sorted({place.at.elements for place in shown}))
    grid = style.grid(kinds, len(kinds), 2.8, head=1.2)
    for ops, axes in grid.axes.items():
        _panel(axes, {p.at.elements: p for p in shown if p.at.ops == ops and p.at.elements in sizes}, sizes)
        axes.set_title(f"{max(depths)} {style.clean(ops)} ops in a row")
    grid.label("runs of the step (log scale)", "time saved, as a share of dynamic's")
    grid.figure.legend(handles=_key(sizes), loc="outside upper center", ncols=style.columns(3), fontsize=8.5)
    table = Table.of("lrrrr", [_row(p, shapes) for p in shown for shapes, _ in _SHAPES])
    return Drawing("decision", _TITLE, _caption(max(depths)), _alt(shown), grid.figure, table)


def _caption(depth: int) -> str:
    return (
        f"The time that static saves in all, as a share of dynamic's, for a training step of {depth} ops: above 0 "
        "compile, below 0 stay dynamic. Every shape of the inputs costs one compilation, so more shapes move the "
        "line to the right. Lines that would be below -100% start where they reach it."
    )


def _some(sizes: Sequence[int]) -> list[int]:
    """Return the smallest, the middle and the largest size."""
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})


def _panel(axes: Axes, places: dict[int, CostPlace], sizes: Sequence[int]) -> None:
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


def _row(place: CostPlace, shapes: int) -> dict[str, str]:
    return {
        "ops": place.at.ops,
        "floats an op": f"{place.at.elements:,}",
        "shapes": str(shapes),
        "pays after runs": pays(place, shapes),
        "static ÷ dynamic once compiled": text.ratio(place.steady.estimate),
    }


def _alt(shown: Sequence[CostPlace]) -> str:
    parts = (f"{p.at.ops}, {p.at.elements:,} floats: {_pay_off_text(p, 1)} for one shape" for p in shown)
    return (
        "The time that static saves as a share of the time of dynamic, against the runs of a step. "
        + "; ".join(parts)
        + "."
    )
