"""The common look of all figures: Okabe-Ito colours with a second cue (marker or hatch), and reproducible files.

`render` writes a figure; `compact` reduces an SVG of matplotlib to a third of its bytes by leaving out invisible parts.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from PIL import Image

from compare import engines, text
from compare.claims.base import SMALLEST_EFFECT
from compare.stats import Interval

WIDTH, NARROW = 10.0, 4.4  # inches: on a screen or a sheet of paper, and on a phone
DPI = 150
INK, FAINT, BAND = "#222222", "#8a8a8a", "#f3f3f3"
TINT, EDGE = "#e3eef8", "#5a5a5a"  # the colours of boxes and arrows in drawings of graphs
ON_DARK, ON_PALE = "#fffffe", "#1a1a1a"  # text colours on a filled cell, which has the same colour in every theme
ONE_SIZE = "Of a workload measured at several sizes the largest is drawn; the numbers below hold every size."

_SAID = "said: "
_SAYING = re.compile(rf'<g id="{_SAID}([^"]*)">')

_width: ContextVar[float] = ContextVar("width", default=WIDTH)
_own_looks: ContextVar[Mapping[str, tuple[str, str]] | None] = ContextVar("own looks", default=None)

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.autolayout": False,  # `render` lays a figure out, once
    "figure.constrained_layout.use": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 9.5,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": DPI,
    "svg.fonttype": "none",
    "svg.hashsalt": "graphduel",
    "text.color": INK,
    "text.parse_math": False,  # names from the results may have dollar signs
}

# Okabe and Ito's palette, told apart by readers with any colour vision: the mode that compiles nothing comes first.
_LOOKS = (
    ("#d55e00", "o"),
    ("#0072b2", "s"),
    ("#cc79a7", "v"),
    ("#009e73", "D"),
    ("#56b4e9", "^"),
    ("#e69f00", "P"),
    ("#000000", "h"),
)
_OTHER_MODE = ("#777777", "X")
_POWERS = range(-10, 7)
_STEPS = (range(10, 100), (10, 12, 15, 20, 30, 40, 50, 60, 70, 80), (10, 15, 20, 30, 50, 70), (10, 20, 50), (10,))
_NEAR = 3.0
"""The ratio of an axis' ends up to which its ticks are equally far apart."""

_CLASSES = {
    "parameters": ("#bbbbbb", ""),
    "gradients": ("#e69f00", "////"),
    "saved": ("#0072b2", ""),
    "activations": ("#f0e442", ""),
    "workspace": ("#56b4e9", ".."),
    "structure": ("#d55e00", "xxxx"),
    "plan": ("#009e73", "\\\\\\\\"),
    "caches": ("#cc79a7", "----"),
    "slack": ("#eeeeee", "////"),
    "untold": ("#000000", ""),
}
_OTHER_CLASS = ("#f0e442", "++++")


def _modes() -> dict[str, int]:
    return _modes_of(tuple(engines.names()))


@cache
def _modes_of(names: tuple[str, ...]) -> dict[str, int]:
    """Return the place of each mode in its engine's list of modes, by mode name and by mode name."""
    adapters = [engines.find_engine(name) for name in names]
    named = [pair for engine in adapters for names in ([mode.name for mode in engine.modes], engine.mode_names)
             for pair in enumerate(names)]  # fmt: skip
    return {name: place for place, name in reversed(named)}


def _look(mode: str) -> tuple[str, str]:
    if mode in (own := _own_looks.get() or {}):
        return own[mode]
    place = _modes().get(mode, len(_LOOKS))
    return _LOOKS[place] if place < len(_LOOKS) else _OTHER_MODE


@contextmanager
def of_modes(modes: Iterable[str]) -> Iterator[None]:
    """Give modes of a user's own the looks that other modes of the run leave, inside the block."""
    every = list(dict.fromkeys(modes))
    taken = {_look(mode) for mode in every if mode in _modes()}
    left = [look for look in _LOOKS[1:] if look not in taken]
    before = _own_looks.set(dict(zip([mode for mode in every if mode not in _modes()], left, strict=False)))
    try:
        yield
    finally:
        _own_looks.reset(before)


def colour(mode: str) -> str:
    """Return the colour of a mode, the same in every figure."""
    return _look(mode)[0]


def marker(mode: str) -> str:
    """Return the marker of a mode, the same in every figure."""
    return _look(mode)[1]


def add_tooltip(artist: Artist, words: str) -> None:
    """Give a mark of a figure a tooltip with these words, in the page and in the file."""
    artist.set_gid(f"{_SAID}{clean(words, 200)}")


def ends(interval: Interval) -> list[float]:
    """Return the ends of an estimate's whiskers; both are the estimate if it has no interval."""
    return interval.bounds() or [interval.estimate] * 2


def ordered_modes(modes: Iterable[str]) -> list[str]:
    """Sort modes: the mode that compiles nothing, then others in their engine's order, then the rest by name."""
    return _order_names(modes, sorted(_modes(), key=_modes().__getitem__))


def ordered_classes(names: Iterable[str]) -> list[str]:
    """Sort the classes of memory in the order of every stack: classes of both engines first."""
    return _order_names(names, _CLASSES)


def _order_names(names: Iterable[str], order: Iterable[str]) -> list[str]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))


def class_patch(name: str) -> dict[str, Any]:
    """Return the matplotlib fill of one class of memory."""
    fill, hatch = _CLASSES.get(name, _OTHER_CLASS)
    return {"facecolor": fill, "hatch": hatch, "edgecolor": "white", "linewidth": 0.6}


def class_legend(figure: Figure, names: Iterable[str]) -> None:
    """Add the legend of memory classes above the panels."""
    patches = [Patch(label=clean(name), **class_patch(name)) for name in names]
    figure.legend(handles=patches, loc="outside upper center", ncols=key_columns(len(patches)), handlelength=1.6)


@contextmanager
def narrow() -> Iterator[None]:
    """Make figures as narrow as a phone inside the block: panels side by side go below each other."""
    before = _width.set(NARROW)
    try:
        yield
    finally:
        _width.reset(before)


def width() -> float:
    """Return the width of a figure in inches."""
    return _width.get()


def columns(most: int) -> int:
    """Return how many panels or legend entries stand side by side: `most`, or 1 in a narrow figure."""
    return most if width() == WIDTH else 1


def key_columns(entries: int) -> int:
    """Return how many legend entries with short names stand side by side."""
    return max(1, entries if width() == WIDTH else min(entries, 3))


def figure(height: float, wide: float = WIDTH) -> Figure:
    """Make an empty figure, in inches, which shares no state with other figures."""
    return Figure(figsize=(min(wide, width()), height), layout="constrained")


def seconds_axis(axes: Axes) -> None:
    """Label the y axis of `axes` with durations."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text.seconds(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def ratio_axis(axes: Axes, low: float, high: float, label: float = 0.09) -> None:
    """Make the x axis a log scale of ratios; the arguments are as for `log_axis`."""
    log_axis(axes, low, high, label, lambda value: f"{value:g}×")


def log_axis(axes: Axes, low: float, high: float, label: float, written: Callable[[float], str]) -> None:
    """Make the x axis a log scale; `label` is the share of the axis that one label takes, with room around it."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(_ticks(low, high, label if width() == WIDTH else 2.5 * label))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    axes.xaxis.set_minor_locator(NullLocator())


def _ticks(low: float, high: float, label: float) -> list[float]:
    """Return round numbers between the limits, the finest set whose labels do not touch."""
    rounded = [[step * 10.0**power / 10 for power in _POWERS for step in steps] for steps in _STEPS]
    steps = [step * 10.0 ** (math.floor(math.log10(high - low)) - 1) for step in (1, 2, 5, 10, 20, 50)]
    even = [[step * place for place in range(math.ceil(low / step), int(high / step) + 1)] for step in steps]
    for numbers in (*(even if high / low < _NEAR else ()), *rounded):
        fitting = [tick for tick in numbers if low <= tick <= high]
        gaps = (math.log(b / a) for a, b in itertools.pairwise(fitting))
        if len(fitting) > 1 and min(gaps) >= label * math.log(high / low):
            return fitting
    return [10.0**power for power in _POWERS if low <= 10.0**power <= high]


def clean(label: str, limit: int = 40) -> str:
    """Return a name from the results as one short line of ASCII characters, which every font has."""
    line = "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in label)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def render(drawing: Figure, kind: str) -> bytes:
    """Return the bytes of a figure as `png` or `svg`, equal for equal data: without a date or random ids.

    A PNG is reduced to 256 colours, and an SVG by `compact`, to make the files small.
    """
    # By the text sizes of SVG, once for every format; otherwise savefig would lay out for each, and draw the figure
    # twice.
    if (engine := drawing.get_layout_engine()) is not None:
        FigureCanvasSVG(drawing)
        engine.execute(drawing)
        drawing.set_layout_engine(None)
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": "graphduel"} if kind == "svg" else {"Software": "graphduel"}
    loose: dict[str, Any] = {} if kind == "svg" else {"pil_kwargs": {"compress_level": 0}}  # read once, below
    drawing.savefig(buffer, format=kind, metadata=metadata, facecolor="white", **loose)
    if kind == "svg":
        return compact(_SAYING.sub(r"<g><title>\1</title>", buffer.getvalue().decode())).encode()
    small = io.BytesIO()
    Image.open(buffer).convert("RGB").quantize(256).save(small, "PNG", optimize=True, dpi=(DPI, DPI))
    return small.getvalue()


_TAG = re.compile(r"<[^>]+>")  # text never matches: matplotlib escapes it
_PATH = re.compile(r' d="([^"]*)"')
_PLACE = re.compile(r' (x|y)="(-?\d+\.\d+)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_LETTER = re.compile(r"\s*([A-Za-z])\s*")
_AGAIN = re.compile(r"(L[^A-Z]*)\1+")  # points that were less than a tenth apart
_NO_TURN = re.compile(r' transform="rotate\(-0 [^"]*"')
_BETWEEN = re.compile(r">\n\s*<")
_NAME = re.compile(r' id="([^"]*)"')
_USED = re.compile(r'(?:url\(|href=")#([^")]*)')
_STYLE = re.compile(r' style="([^"]*)"')


def compact(svg: str) -> str:
    """Return the same picture without line breaks and unused ids, and with lengths to a tenth of a point.

    Curves keep a hundredth of a point: they are the small shapes of markers.
    """
    used = set(_USED.findall(svg))

    def tag(match: re.Match[str]) -> str:
        bare = _NAME.sub(lambda name: name[0] if name[1] in used else "", _NO_TURN.sub("", match[0]))
        return _PATH.sub(_path, _PLACE.sub(lambda place: f' {place[1]}="{_round_text(place[2], 1)}"', bare))

    return _BETWEEN.sub("><", _TAG.sub(tag, svg))


def _path(match: re.Match[str]) -> str:
    digits = 2 if "C" in match[1] else 1
    rounded = _NUMBER.sub(lambda number: _round_text(number[0], digits), match[1])
    short = _AGAIN.sub(r"\1", _LETTER.sub(lambda letter: letter[1], rounded.strip()))
    return f' d="{short}"'


def _round_text(number: str, digits: int) -> str:
    return f"{round(float(number), digits):g}" if abs(float(number)) < 1e5 else number


def with_classes(svg: str, prefix: str) -> str:
    """Replace repeated style attributes of an SVG by CSS classes, whose names begin with the prefix."""
    head, opening, body = svg.partition(">")
    counts = Counter(style for tag in _TAG.findall(body) for style in _STYLE.findall(tag))
    repeated = [style for style, times in counts.items() if times > 1]
    classes = {style: f"{prefix}{number}" for number, style in enumerate(repeated)}
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())

    def tag(match: re.Match[str]) -> str:
        return _STYLE.sub(lambda style: f' class="{classes[style[1]]}"' if style[1] in classes else style[0], match[0])

    return f"{head}{opening}<style>{rules}</style>{_TAG.sub(tag, body)}"


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Panels(Generic[Key]):
    """A figure and the axes of each of its panels, by key."""

    figure: Figure
    axes: dict[Key, Axes]

    def label(self, x: str, y: str) -> None:
        """Name the axes once for all panels."""
        self.figure.supxlabel(x, fontsize=9.5)
        self.figure.supylabel(y, fontsize=9.5)

    def mode_legend(self, modes: Iterable[str]) -> None:
        """Add the legend of the modes above the panels."""
        lines = [Line2D([], [], color=colour(a), lw=2.5, label=clean(a)) for a in ordered_modes(modes)]
        self.figure.legend(handles=lines, loc="outside upper center", ncols=key_columns(len(lines)))


def grid(keys: Sequence[Key], across: int, height: float, head: float = 0.8, least: float = 5.0) -> Panels[Key]:
    """Make panels in rows, each `height` inches high, below `head` inches, in a figure at least `least` inches wide."""
    abreast = min(columns(across), len(keys))
    rows = math.ceil(len(keys) / abreast)
    whole = figure(head + height * rows, wide=max(least, WIDTH * abreast / across))
    return Panels(whole, {key: whole.add_subplot(rows, abreast, at + 1) for at, key in enumerate(keys)})


def rows(axes: Axes, labels: Sequence[str], **look: Any) -> None:
    """Set the y axis to a row for each label, the first on top."""
    room = {} if columns(2) > 1 else {"fontsize": 7.5}
    axes.set_yticks(range(len(labels)), [clean(label, 38 if room else 60) for label in labels], **(look | room))
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def beside(axes: Axes, row: int, words: str, offset: float, size: float) -> None:
    """Write words right of the axes beside a row, `offset` points away, in the font size `size`."""
    look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    axes.annotate(words, (1, row), (offset, 0), fontsize=size, annotation_clip=False, **look)


def whisker(axes: Axes, row: int, interval: Interval, colour: str, shape: str, words: str, **look: Any) -> None:
    """Draw an estimate as a dot on its interval in a row, with words as its tooltip; `look` is that of the interval."""
    axes.plot(ends(interval), [row, row], color=colour, solid_capstyle="butt", **look)
    (dot,) = axes.plot(interval.estimate, row, color=colour, marker=shape, markersize=5.5)
    add_tooltip(dot, words)


def tie_zone(axes: Axes) -> None:
    """Draw a line at 1 on an axis of ratios, and a strip over the ratios that count as a tie."""
    axes.axvspan(1 / (1 + SMALLEST_EFFECT), 1 + SMALLEST_EFFECT, color=FAINT, alpha=0.3, linewidth=0)
    axes.axvline(1, color=INK, linewidth=1.2)


def ratio_cells(ratio: Interval | None) -> tuple[str, str]:
    """Return a ratio and its interval as two cells of a table; both empty without a ratio."""
    return (text.ratio(ratio.estimate), text.interval(ratio.low, ratio.high)) if ratio else ("", "")
