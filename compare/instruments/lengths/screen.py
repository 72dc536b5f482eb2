"""What `graphduel shapes` shows, in 80 columns: the trace, what is counted on all of it, and what was timed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, median

import numpy as np

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c4_shapes.length_table import CONTESTS, PHASES, best
from compare.claims.evidence import Evidence, first_run, steady
from compare.instruments.lengths.layouts import KEPT, MOST_SIZES, Layout, combined
from compare.instruments.lengths.sampling import Sample
from compare.instruments.lengths.schema import StrategyArm
from compare.instruments.lengths.strategies import STRATEGIES, Strategy
from compare.instruments.lengths.table import ordered, percentile
from compare.instruments.lengths.trace import Trace
from compare.report import text
from compare.stats import Interval

WIDTH = 79
UNCLEAR = "too close to call"
COUNTED = ("strategy", "compiles", f"{KEPT} kept", "hits", "padding", "useful")
TIMED = ("strategy", "p50", "p99", "an example", "epoch 1", "plans")
CONTEST = ("contest", "static / dynamic", "verdict")

Rows = list[tuple[str, ...]]


def described(name: str, trace: Trace) -> Iterator[str]:
    """A line for each axis: how many lengths, their spread, and how many differ."""
    for axis, column in zip(trace.axes, trace.columns, strict=True):
        spread = f"{min(column):,} to {max(column):,}, median {median(column):,g}"
        yield f"{name}, {axis}: {len(column):,} lengths, {spread}; {len(set(column)):,} different"


def useful(trace: Trace) -> int:
    """The elements of all inputs, of an array that has all axes."""
    return sum(map(math.prod, zip(*trace.columns, strict=True)))


def layouts(trace: Trace, batch: int) -> dict[str, Layout | None]:
    """What each strategy makes of the whole trace; None where that is not counted: too many different lengths."""
    return {name: _layout(strategy, trace, batch) for name, strategy in STRATEGIES.items()}


def _layout(strategy: Strategy, trace: Trace, batch: int) -> Layout | None:
    if strategy.padding == "optimal buckets" and max(len(set(column)) for column in trace.columns) > MOST_SIZES:
        return None
    parts = [strategy.layout(column, batch) for column in trace.columns]
    return parts[0] if len(parts) == 1 else combined(parts, trace.columns, strategy.padding != "none")


def counted(laid: Mapping[str, Layout | None], useful: int) -> Rows:
    """A row for each strategy: graphs compiled with all kept and with few, calls that found theirs, and padding."""
    return [_counts(name, one, useful) for name, one in laid.items() if one is not None]


def _counts(name: str, laid: Layout, useful: int) -> tuple[str, ...]:
    share = useful / sum(laid.sizes)
    compiled = (
        ("", "", "") if not laid.shapes else (f"{laid.compiles:,}", f"{laid.compiles_of(KEPT):,}", _share(laid.hits))
    )
    return name, *compiled, _share(1 - share), _share(share)


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def chosen(sample: Sample, trace: Trace, seed: int) -> Iterator[str]:
    """How the lengths were chosen that are timed, and how far they are like the whole."""
    different = f"{sample.sizes} different lengths from {min(sample.lengths):,} to {max(sample.lengths):,}"
    yield f"Timed: {len(sample.lengths):,} of {sample.total:,}, {different}, in an order by seed {seed}."
    means = f"The mean is {mean(sample.lengths):,.1f}, of the whole {mean(trace.lengths):,.1f}"
    again = 1 - len(set(trace.lengths)) / len(trace.lengths)
    share = f"{_share(sample.hits)} come again, of the whole {_share(again)}"
    yield f"Each stands for an equal part of the whole, by quantiles. {means}; {share}."
    if sample.cap is not None:
        left = f"{sample.left_out:,} above {sample.cap:,} ({_share(sample.left_out / sample.total)})"
        yield f"Not timed: {left}, for which the workers' time is too short; --full gives more."


def timed(cell: Evidence, laid: Mapping[str, Layout | None]) -> Rows:
    """A row for each strategy that was right: seconds once warm, and the bytes of its plans on the whole trace."""
    return [_times(cell, name, laid.get(name)) for name in ordered([cell])]


def _times(cell: Evidence, name: str, laid: Layout | None) -> tuple[str, ...]:
    measured = cell.of(name)
    examples = [call.examples for call in measured[0].stream]
    waits = [median(percentile(m.latency, examples, share) for m in measured) for share in (0.5, 0.99)]
    return (
        name,
        *map(text.seconds, waits),
        text.seconds(cell.mean(name, steady) or 0.0),
        text.seconds(cell.mean(name, first_run) or 0.0),
        _plans(measured[0], laid),
    )


def _plans(measured: StrategyArm, laid: Layout | None) -> str:
    """The bytes of the plans that the whole trace needs.

    Those that were not made lie on a line between others, or grow with the size beyond the largest.
    """
    known = measured.plans
    if not known or laid is None:
        return ""
    sizes, held = zip(*known, strict=True)
    if sizes == (0,):  # one plan, of the sizes that it met
        return ">" + text.size(held[0])
    wanted = np.array(list(set(laid.shapes)), np.int64)
    found = np.interp(wanted, sizes, held) * np.maximum(1, wanted / sizes[-1])
    return ("" if set(laid.shapes) <= set(sizes) else "~") + text.size(float(found.sum()))


def fastest(cell: Evidence) -> str:
    """The fastest strategy of each engine once warm, and what it takes."""
    best_of = {engine: best(cell, engine, lambda _: True, steady) for engine in ("static", "dynamic")}
    means = {name: cell.mean(name, steady) or 0.0 for name in best_of.values() if name}
    told = [f"{name}, {text.seconds(means[name])} an example" for name in sorted(means, key=means.__getitem__)]
    return f"Fastest once warm: {'; then '.join(told)}."


def contests(cell: Evidence, comparisons: int) -> Rows:
    """The best strategy of each engine against the other's, in each way and phase, with what follows."""
    rows: Rows = []
    for how, counts in CONTESTS:
        for phase, read in PHASES:
            top, bottom = (best(cell, engine, counts, read) for engine in ("static", "dynamic"))
            if top and bottom:
                found = cell.ratio(top, bottom, read, comparisons)
                pair = f"{phase}, {how}: {top} / {bottom}"
                rows.append((pair, _ratio(found), _verdict(found)))
    return rows


def _ratio(found: Interval | None) -> str:
    return f"{found.estimate:.3g} ({found.low:.3g} to {found.high:.3g})" if found else "not known"


def _verdict(found: Interval | None) -> str:
    side = found.side(SMALLEST_EFFECT) if found else "unclear"
    return {
        "above": "dynamic is faster",
        "below": "static is faster",
        "tie": "a tie, within 5%",
        "unclear": UNCLEAR,
    }[side]


def answered(errors: Sequence[str], total: int) -> str:
    """How many workers answered, and why others did not."""
    reasons = "; ".join(dict.fromkeys(errors))
    return f"{total - len(errors)} of {total} workers answered; the others: {reasons}" if errors else ""
