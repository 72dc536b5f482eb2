"""Readings of a step: bytes of NumPy data by class after each kernel, and seconds and bytes by line.

The time in which a watcher records is not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import NamedTuple

from compare.engines.step import LineOp
from compare.instruments.time.rounds import CLOCK, Clock
from compare.records.cells import LineCost, Moment, Phase, SourceLinesRow

PHASES = ("trace", "compile", "forward", "backward")
MOMENTS = 240
"""The most moments that are recorded; more are thinned out."""


class Timeline(NamedTuple):
    """The moments of one step in order, the bytes of Python objects beside them, and the number of nodes."""

    moments: Sequence[Moment]
    objects: Mapping[str, int]
    nodes: int

    @property
    def peak(self) -> Moment:
        """Return the moment with the most bytes."""
        return max(self.moments, key=lambda moment: moment.total)


class Reading(NamedTuple):
    """The bytes that tracemalloc counts after a kernel, and the most since the last reading."""

    current: int
    peak: int

    def beyond(self, before: int) -> int:
        """Return the bytes that the kernel needed while it ran, above those before and after it."""
        return max(0, self.peak - max(before, self.current))


def moment(phase: Phase, told: Mapping[str, int], reading: Reading, before: int, line: str = "") -> Moment:
    """Return a moment of known bytes by class, with the kernel's own need, and `untold` for unknown bytes."""
    classes = dict(told)
    classes["workspace"] = classes.get("workspace", 0) + reading.beyond(before)
    untold = reading.current - sum(told.values())
    return Moment(phase, classes | ({"untold": untold} if untold > 0 else {}), str(line))


def thin_moments(moments: Sequence[Moment], most: int = MOMENTS) -> list[Moment]:
    """Return at most `most` moments: for each stretch of one phase the one with the most bytes, so no peak is lost."""
    stretch = -(-len(moments) // max(1, most - len(PHASES)))
    kept = []
    for phase in dict.fromkeys(m.phase for m in moments):
        of = [m for m in moments if m.phase == phase]
        kept += [max(of[i : i + stretch], key=lambda m: m.total) for i in range(0, len(of), stretch)]
    return kept


PASSES = 15
WARM_PASSES = 2
SECONDS = 1.0
"""The most passes in which a step is watched, the warm-up passes, and the seconds after which passes end."""

Spans = list[tuple[str, float]]
"""Stretches of a step in seconds, each with its line; "" for no line."""


Counted = defaultdict[str, LineCost]
"""The costs of a step's lines without times, in the order they run."""


def count_lines(ops: Iterable[LineOp]) -> Counted:
    """Return the costs of the lines of some ops."""
    lines = Counted(LineCost)
    for op in ops:
        cost = lines[op.line]
        cost.kernels += 1
        cost.made += op.made
        cost.saved += op.saved
        cost.saved_bytes += op.saved_bytes
    return lines


def read(
    ops: Callable[[], Sequence[LineOp]], step: Callable[[], object], clock: Clock, begin: Callable[[], None]
) -> SourceLinesRow:
    """Return the row of a mode whose engine tells the line of each op; `ops` runs and watches a step.

    `begin` is called before each step, outside the clock.
    """

    def watch() -> Sequence[LineOp]:
        begin()
        return ops()

    return time_lines(count_lines(watch()), step, lambda: [(op.line, op.seconds) for op in watch()], clock, begin)


def time_lines(
    lines: Counted,
    step: Callable[[], object],
    watch: Callable[[], Spans],
    clock: Clock = CLOCK,
    begin: Callable[[], None] = lambda: None,
) -> SourceLinesRow:
    """Return the row of a mode: each line has the median of its seconds over watched steps.

    The seconds that watched steps take beyond `step`, which is not watched, are taken off all lines in proportion. So
    are those of other programs, since the clock of `step` sets the scale.
    """
    for _ in range(WARM_PASSES):
        begin()
        step()
    seconds: list[float] = []
    passes: list[dict[str, float]] = []
    began = perf_counter()
    while not passes or (len(passes) < PASSES and perf_counter() - began < SECONDS):
        begin()
        start = clock()
        step()
        seconds.append((clock() - start) / 1e9)
        passes.append(_by_line(watch()))
    whole = median(seconds)
    medians = {line: median([each.get(line, 0.0) for each in passes]) for line in passes[0]}
    scale = min(1.0, whole / (sum(medians.values()) or 1.0))
    medians.pop("", None)
    lines.pop("", None)
    for line, each in medians.items():
        lines[line].seconds = each * scale
    rest = whole - sum(line.seconds for line in lines.values())
    return SourceLinesRow("ok", None, step=whole, elsewhere=max(0.0, round(rest, 12)), lines=lines)


def _by_line(spans: Spans) -> dict[str, float]:
    sums: dict[str, float] = {}
    for line, seconds in spans:
        sums[line] = sums.get(line, 0.0) + seconds
    return sums
