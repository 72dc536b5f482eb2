"""Small multiples: one panel a cell, with shared outer labels and one key for the arms."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compare.page.plots import style
from compare.records.record import Cell


@dataclass(frozen=True)
class Panels:
    """A figure and the axes of each of its cells."""

    figure: Figure
    axes: dict[Cell, Axes]

    def label(self, x: str, y: str) -> None:
        """Name the axes once for all panels."""
        self.figure.supxlabel(x, fontsize=9.5)
        self.figure.supylabel(y, fontsize=9.5)

    def arm_legend(self, arms: Iterable[str]) -> None:
        """The key of the arms, above the panels."""
        lines = [Line2D([], [], color=style.colour(a), lw=2.5, label=style.clean(a)) for a in style.ordered_arms(arms)]
        self.figure.legend(handles=lines, loc="outside upper center", ncols=style.key_columns(len(lines)))


def grid(cells: Sequence[Cell], columns: int, height: float) -> Panels:
    """Panels for `cells`, row by row, each `height` inches high."""
    columns = min(style.columns(columns), len(cells))
    rows = math.ceil(len(cells) / columns)
    figure = style.figure(0.8 + height * rows, wide=max(5.0, style.WIDTH * columns / 3))
    return Panels(figure, {cell: figure.add_subplot(rows, columns, at + 1) for at, cell in enumerate(cells)})
