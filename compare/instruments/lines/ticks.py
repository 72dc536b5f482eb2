"""A clock that a watcher stops while it writes down what it has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import NamedTuple

from compare.engines.step import LineOp
from compare.records.breakdowns import LineCost, SourceLinesArm

PASSES = 15
WARM_PASSES = 2
SECONDS = 1.0
"""A step is watched so often, and less often where that takes longer, but once."""

Spans = list[tuple[str, float]]
"""Stretches of a step, each with the line that it is of; "" where it is of none."""


class Counted(NamedTuple):
    """The lines of a step without their times, in the order they run."""

    lines: dict[str, LineCost]

    def at(self, line: str) -> LineCost:
        """The costs of a line, to be added to."""
        return self.lines.setdefault(line, LineCost())

    def add(self, op: LineOp) -> None:
        """Count an op."""
        cost = self.at(op.line)
        cost.kernels += 1
        cost.made += op.made
        cost.saved += op.saved
        cost.saved_bytes += op.saved_bytes


def read(ops: Callable[[], Sequence[LineOp]], step: Callable[[], object]) -> SourceLinesArm:
    """The row of an arm whose engine tells the line of each op: `ops` runs a step that it watches."""
    counted = Counted({})
    for op in ops():
        counted.add(op)
    return timed(counted, step, lambda: [(op.line, op.seconds) for op in ops()])


def timed(counted: Counted, step: Callable[[], object], watch: Callable[[], Spans]) -> SourceLinesArm:
    """The row of an arm: each line has the median of its seconds over watched steps.

    What the watched steps take more than `step` does, which nobody watches, is taken from all lines alike.
    """
    for _ in range(WARM_PASSES):
        step()
    seconds: list[float] = []
    passes: list[dict[str, float]] = []
    began = perf_counter()
    while not passes or (len(passes) < PASSES and perf_counter() - began < SECONDS):
        start = perf_counter()
        step()
        seconds.append(perf_counter() - start)
        passes.append(_by_line(watch()))
    whole = median(seconds)
    medians = {line: median([each.get(line, 0.0) for each in passes]) for line in passes[0]}
    scale = min(1.0, whole / (sum(medians.values()) or 1.0))
    medians.pop("", None)
    counted.lines.pop("", None)
    for line, each in medians.items():
        counted.at(line).seconds = each * scale
    rest = whole - sum(line.seconds for line in counted.lines.values())
    return SourceLinesArm("ok", None, step=whole, elsewhere=max(0.0, round(rest, 12)), lines=counted.lines)


def _by_line(spans: Spans) -> dict[str, float]:
    sums: dict[str, float] = {}
    for line, seconds in spans:
        sums[line] = sums.get(line, 0.0) + seconds
    return sums
