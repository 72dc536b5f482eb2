"""What the figures of several instruments draw and write alike."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from compare.claims.base import SMALLEST_EFFECT
from compare.page.plots import style
from compare.stats import Interval
from compare.words import text


def rows(axes: Axes, labels: Sequence[str], **look: Any) -> None:
    """A row for each label, the first on top."""
    room = {} if style.columns(2) > 1 else {"fontsize": 7.5}
    axes.set_yticks(range(len(labels)), [style.clean(label, 38 if room else 60) for label in labels], **(look | room))
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def tie_zone(axes: Axes) -> None:
    """A line at 1 on an axis of ratios, and a strip as wide as what counts as a tie."""
    axes.axvspan(1 / (1 + SMALLEST_EFFECT), 1 + SMALLEST_EFFECT, color=style.FAINT, alpha=0.3, linewidth=0)
    axes.axvline(1, color=style.INK, linewidth=1.2)


def ratio_cells(ratio: Interval | None) -> tuple[str, str]:
    """A ratio and its interval, as two cells of a table."""
    return (text.ratio(ratio.estimate), text.interval(ratio.low, ratio.high)) if ratio else ("", "")
