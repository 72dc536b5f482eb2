"""What `graphduel shapes` shows: the trace, what is counted on all of it, and what was timed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import mean, median

import numpy as np

from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c4_shapes.length_table import CONTESTS, PHASES, best
from compare.claims.evidence import Evidence, steady
from compare.instruments.lengths.layouts import KEPT, MOST_SIZES, CallLayout, combined
from compare.instruments.lengths.sampling import TraceSample
from compare.instruments.lengths.strategies import STRATEGIES, Strategy
from compare.instruments.lengths.trace import LengthTrace
from compare.page.lengths_table import rows
from compare.records.sweeps import StrategyArm
from compare.stats import Interval
from compare.words import text

UNCLEAR = "too close to call"
COUNTED = ("strategy", "compiles", f"{KEPT} kept", "hits", "padding", "useful")
TIMED = ("strategy", "p50", "p99", "an example", "epoch 1", "plans")
CONTEST = ("contest", "static ÷ dynamic", "verdict")

Rows = list[tuple[str, ...]]


def described(name: str, trace: LengthTrace) -> str:
    """A line for each axis: how many lengths, their spread, and how many differ."""
    return "\n".join(
        f"{name}, {axis}: {len(column):,} lengths, {min(column):,} to {max(column):,}, median {median(column):,g}; "
        f"{len(set(column)):,} different"
        for axis, column in zip(trace.axes, trace.columns, strict=True)
    )


def useful(trace: LengthTrace) -> int:
    """The elements of all inputs, of an array that has all axes."""
    return sum(map(math.prod, zip(*trace.columns, strict=True)))


def layouts(trace: LengthTrace, batch: int) -> dict[str, CallLayout | None]:
    """What each strategy makes of the whole trace; None where that is not counted: too many different lengths."""
    return {name: _layout(strategy, trace, batch) for name, strategy in STRATEGIES.items()}


def _layout(strategy: Strategy, trace: LengthTrace, batch: int) -> CallLayout | None:
    if strategy.padding == "optimal buckets" and max(len(set(column)) for column in trace.columns) > MOST_SIZES:
        return None
    parts = [strategy.layout(column, batch) for column in trace.columns]
    return parts[0] if len(parts) == 1 else combined(parts, trace.columns, strategy.padding != "none")


def counted(laid: Mapping[str, CallLayout | None], useful: int) -> Rows:
    """A row for each strategy: graphs compiled with all kept and with few, calls that found theirs, and padding."""
    return [_counts(name, layout, useful) for name, layout in laid.items() if layout is not None]


def _counts(name: str, laid: CallLayout, useful: int) -> tuple[str, ...]:
    share = useful / sum(laid.sizes)
    compiled = (
        ("", "", "") if not laid.shapes else (f"{laid.compiles:,}", f"{laid.compiles_of(KEPT):,}", _share(laid.hits))
    )
    return name, *compiled, _share(1 - share), _share(share)


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def chosen(sample: TraceSample, trace: LengthTrace, seed: int) -> str:
    """How the lengths were chosen that are timed, and how far they are like the whole."""
    again = 1 - len(set(trace.lengths)) / len(trace.lengths)
    said = (
        f"Timed: {len(sample.lengths):,} of {sample.total:,}, {sample.sizes} different lengths from "
        f"{min(sample.lengths):,} to {max(sample.lengths):,}, in an order by seed {seed}.\n"
        "Each stands for an equal part of the whole, by quantiles. "
        f"The mean is {mean(sample.lengths):,.1f}, of the whole {mean(trace.lengths):,.1f}; "
        f"{_share(sample.hits)} come again, of the whole {_share(again)}."
    )
    if sample.cap is None:
        return said
    left = f"{sample.left_out:,} above {sample.cap:,} ({_share(sample.left_out / sample.total)})"
    return f"{said}\nNot timed: {left}, for which the workers' time is too short; --full gives more."


def timed(cell: Evidence, laid: Mapping[str, CallLayout | None]) -> Rows:
    """A row for each strategy that was right: seconds once warm, and the bytes of its plans on the whole trace."""
    return [
        (
            *(row[name] for name in ("strategy", "p50", "p99", "an example", "first epoch")),
            _plans(cell.of(row["strategy"])[0], laid.get(row["strategy"])),
        )
        for row in rows(cell)
    ]


def _plans(measured: StrategyArm, laid: CallLayout | None) -> str:
    """The bytes of the plans that the whole trace needs.

    Those that were not made lie on a line between others, or grow with the size beyond the largest.
    """
    plans = measured.plans
    if not plans or laid is None:
        return ""
    sizes, held = zip(*plans, strict=True)
    if sizes == (0,):  # one plan, of all its sizes
        return ">" + text.size(held[0])
    wanted = np.array(list(set(laid.shapes)), np.int64)
    sized = np.interp(wanted, sizes, held) * np.maximum(1, wanted / sizes[-1])
    return ("" if set(laid.shapes) <= set(sizes) else "~") + text.size(float(sized.sum()))


def fastest(cell: Evidence) -> str:
    """The fastest strategy of each engine once warm, and what it takes."""
    best_of = {engine: best(cell, engine, lambda _: True, steady) for engine in ("static", "dynamic")}
    means = {name: cell.mean(name, steady) or 0.0 for name in best_of.values() if name}
    parts = [f"{name}, {text.seconds(means[name])} an example" for name in sorted(means, key=means.__getitem__)]
    return f"Fastest once warm: {'; then '.join(parts)}."


def contests(cell: Evidence, comparisons: int) -> Rows:
    """The best strategy of each engine against the other's, in each way and phase, with what follows."""
    fought: Rows = []
    for (how, counts), (phase, read) in product(CONTESTS, PHASES):
        top, bottom = (best(cell, engine, counts, read) for engine in ("static", "dynamic"))
        if top and bottom:
            ratio = cell.ratio(top, bottom, read, comparisons)
            fought.append((f"{phase}, {how}: {top} ÷ {bottom}", _ratio(ratio), _verdict(ratio)))
    return fought


def _ratio(ratio: Interval | None) -> str:
    return f"{ratio.estimate:.3g} ({ratio.low:.3g} to {ratio.high:.3g})" if ratio else "not known"


def _verdict(ratio: Interval | None) -> str:
    side = ratio.side(SMALLEST_EFFECT) if ratio else "unclear"
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
