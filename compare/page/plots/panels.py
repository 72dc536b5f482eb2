"""What figures draw alike: panels with shared outer labels, rows, and the strip in which ratios tie."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compare.claims.base import SMALLEST_EFFECT
from compare.page.plots import style
from compare.stats import Interval
from compare.words import text

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Panels(Generic[Key]):
    """A figure and the axes of each of its panels."""

    figure: Figure
    axes: dict[Key, Axes]

    def label(self, x: str, y: str) -> None:
        """Name the axes once for all panels."""
        self.figure.supxlabel(x, fontsize=9.5)
        self.figure.supylabel(y, fontsize=9.5)

    def arm_legend(self, arms: Iterable[str]) -> None:
        """The key of the arms, above the panels."""
        lines = [Line2D([], [], color=style.colour(a), lw=2.5, label=style.clean(a)) for a in style.ordered_arms(arms)]
        self.figure.legend(handles=lines, loc="outside upper center", ncols=style.key_columns(len(lines)))


def grid(keys: Sequence[Key], columns: int, height: float, head: float = 0.8, least: float = 5.0) -> Panels[Key]:
    """Panels row by row, each `height` inches high, below a `head` of so many; none is alone in less than `least`."""
    across = min(style.columns(columns), len(keys))
    rows = math.ceil(len(keys) / across)
    figure = style.figure(head + height * rows, wide=max(least, style.WIDTH * across / columns))
    return Panels(figure, {key: figure.add_subplot(rows, across, at + 1) for at, key in enumerate(keys)})


def rows(axes: Axes, labels: Sequence[str], **look: Any) -> None:
    """A row for each label, the first on top."""
    room = {} if style.columns(2) > 1 else {"fontsize": 7.5}
    axes.set_yticks(range(len(labels)), [style.clean(label, 38 if room else 60) for label in labels], **(look | room))
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def beside(axes: Axes, row: int, words: str, offset: float, size: float) -> None:
    """Words on the right of the axes beside a row, so many points away."""
    look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    axes.annotate(words, (1, row), (offset, 0), fontsize=size, annotation_clip=False, **look)


def tie_zone(axes: Axes) -> None:
    """A line at 1 on an axis of ratios, and a strip as wide as what counts as a tie."""
    axes.axvspan(1 / (1 + SMALLEST_EFFECT), 1 + SMALLEST_EFFECT, color=style.FAINT, alpha=0.3, linewidth=0)
    axes.axvline(1, color=style.INK, linewidth=1.2)


def ratio_cells(ratio: Interval | None) -> tuple[str, str]:
    """A ratio and its interval, as two cells of a table."""
    return (text.ratio(ratio.estimate), text.interval(ratio.low, ratio.high)) if ratio else ("", "")
