"""From blocks to the table: medians, ratios with intervals, geometric means, and the bars."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import click
import numpy as np

from benchmarks import trained
from benchmarks.modes import PEERS
from compare.stats import LEVEL, RESAMPLES, Interval, geometric_mean

Blocks = Mapping[str, Sequence[float]]
Measured = Mapping[str, Blocks]
TAIL = (1 - LEVEL) / 2


class Ratio(NamedTuple):
    """A column of ratios: the time of one mode by that of another, or of the fastest peer of the row.

    The bars are of the worst row and of the geometric mean, over the rows that are pieces of programs. `narrow` has
    both for when no mode may use more than AVX2, and `trained` for the rows that people train.
    """

    mode: str
    by: str
    bar: float | None = None
    mean_bar: float | None = None
    narrow: tuple[float | None, float] | None = None
    trained: tuple[float, float] | None = None

    @property
    def label(self) -> str:
        """As the head of a column."""
        return f"{self.mode} / {self.by}"


class Table(NamedTuple):
    """Cells of text; the first column names the row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


FASTEST = "fastest peer"
RATIOS = (
    Ratio("static", "hand-written", bar=1.1),
    Ratio("static", FASTEST, mean_bar=0.77, narrow=(None, 0.85)),
    Ratio("static", "torch.compile", mean_bar=0.5),
    Ratio("static", "torch"),
    Ratio("static-native", FASTEST, bar=0.8, mean_bar=0.27, narrow=(0.8, 0.32), trained=(1.0, 0.7)),
    Ratio("static-native", "static"),
    Ratio("dynamic", "hand-written"),
    Ratio("dynamic", "plain"),
    Ratio("dynamic", "torch", bar=0.9, mean_bar=0.5, narrow=(0.95, 0.65), trained=(0.95, 0.65)),
    Ratio("dynamic", "torch-fused"),
    Ratio("dynamic-pool", "dynamic"),
    Ratio("dynamic-pool", "torch", bar=1.1, mean_bar=0.55),
)
ROW_BARS = {
    ("tiny MLP", "dynamic / plain"): 1.7,
    ("chain 1e5", "dynamic-pool / dynamic"): 0.6,
    ("tiny MLP", "static-native / static"): 0.3,
}
"""Bars of one row alone."""


def summarised(measured: Measured, processor: str = "this") -> Iterator[Table]:
    """The times; then, where two modes that are compared were measured, the ratios and which bars are met.

    On the processor "avx2" bars are those of it.
    """
    modes = list(dict.fromkeys(mode for blocks in measured.values() for mode in blocks))
    yield Table(["µs a step", *modes], [[n, *(_time(b.get(mode)) for mode in modes)] for n, b in measured.items()])
    ratios = {ratio: by_row for ratio in RATIOS if (by_row := ratios_of(measured, ratio))}
    if ratios:
        rows = [[name, *(_interval(by_row.get(name)) for by_row in ratios.values())] for name in measured]
        for label, names in _groups(measured).items():
            means = (_mean(_among(by_row, names)) for by_row in ratios.values())
            rows.append([f"geometric mean of {label}", *("" if mean is None else f"{mean:.3g}" for mean in means)])
        yield Table(["ratio", *(ratio.label for ratio in ratios)], rows)
        yield Table(["bar", "limit", "seen", ""], list(_bars(ratios, processor)))


def markdown(table: Table) -> str:
    """The table in Markdown, its figures to the right."""
    lines = [table.columns, [":--", *["--:"] * (len(table.columns) - 1)], *table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def placed(page: str, start: str, end: str, text: str) -> str:
    """The page with this between two lines of it, in place of what stands there.

    Raises click.UsageError for a page without these lines.
    """
    before, _, rest = page.partition(start)
    _, marker, after = rest.partition(end)
    if not marker:
        raise click.UsageError(f"the page needs the lines {start} and {end}, for the tables to go between")
    return f"{before}{start}\n\n{text}\n{end}{after}"


def ratios_of(measured: Measured, ratio: Ratio) -> dict[str, Interval]:
    """The ratio in each row that has both modes."""
    intervals = {}
    for name, blocks in measured.items():
        by = fastest(blocks) if ratio.by == FASTEST else ratio.by
        if by in blocks and ratio.mode in blocks:
            intervals[name] = paired(blocks[ratio.mode], blocks[by])
    return intervals


def fastest(blocks: Blocks) -> str:
    """The peer with the smallest median; no mode's name where there is no peer."""
    peers = [mode for mode in PEERS if mode in blocks]
    return min(peers, key=lambda mode: median(blocks[mode]), default="")


def paired(numerator: Sequence[float], denominator: Sequence[float]) -> Interval:
    """The median of the ratios of paired blocks, with its bootstrap interval."""
    ratios = np.asarray(numerator) / np.asarray(denominator)
    draws = np.random.default_rng(0).integers(len(ratios), size=(RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(ratios[draws], axis=1), [TAIL, 1 - TAIL])
    return Interval(float(np.median(ratios)), float(low), float(high))


def _groups(measured: Measured) -> dict[str, list[str]]:
    """The rows that were measured: pieces of programs, and what people train."""
    pieces = [name for name in measured if name not in trained.ROWS]
    others = [name for name in measured if name in trained.ROWS]
    return {f"{len(names)} {kind}": names for kind, names in (("pieces", pieces), ("programs", others)) if names}


def _among(by_row: Mapping[str, Interval], names: Collection[str]) -> dict[str, Interval]:
    return {name: ratio for name, ratio in by_row.items() if name in names}


def _bars(ratios: Mapping[Ratio, Mapping[str, Interval]], processor: str) -> Iterator[list[str]]:
    for ratio, by_row in ratios.items():
        pieces = {name: interval for name, interval in by_row.items() if name not in trained.ROWS}
        worst, mean = (processor == "avx2" and ratio.narrow) or (ratio.bar, ratio.mean_bar)
        yield from _limits(ratio.label, pieces, "piece", worst, mean)
        if ratio.trained:
            yield from _limits(ratio.label, _among(by_row, trained.ROWS), "program", *ratio.trained)
        for (row, label), limit in ROW_BARS.items():
            if label == ratio.label and row in by_row:
                yield _bar(f"{label}, {row}", limit, by_row[row].estimate)


def _limits(
    label: str, by_row: Mapping[str, Interval], kind: str, worst: float | None, mean: float | None
) -> Iterator[list[str]]:
    if worst and by_row:
        name = max(by_row, key=lambda name: by_row[name].estimate)
        yield _bar(f"{label}, worst {kind} ({name})", worst, by_row[name].estimate)
    if mean and by_row:
        ratios = [ratio.estimate for ratio in by_row.values()]
        yield _bar(f"{label}, geometric mean of {len(by_row)} {kind}s", mean, geometric_mean(ratios))


def _bar(label: str, limit: float, seen: float) -> list[str]:
    return [label, f"{limit:g}", f"{seen:.3g}", "met" if seen <= limit else "missed"]


def _mean(by_row: Mapping[str, Interval]) -> float | None:
    return geometric_mean(ratio.estimate for ratio in by_row.values()) if by_row else None


def _time(blocks: Sequence[float] | None) -> str:
    if not blocks:
        return ""
    us = median(blocks) * 1e6
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def _interval(ratio: Interval | None) -> str:
    return f"{ratio.estimate:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]" if ratio else ""
