"""Strategies for inputs of varying length: the figure and its table, and the text of `graphduel shapes`.

The figure (`draw_lengths`) has the time per example under each strategy, ÷ plain dynamic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import geometric_mean, mean, median

import numpy as np

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c4_shapes import CONTESTS, PHASES, best
from compare.claims.evidence import Evidence, first_run, steady
from compare.instruments.lengths import KEPT, MOST_SIZES, STRATEGIES, CallLayout, Strategy, combine_layouts
from compare.instruments.trace import LengthTrace, TraceSample
from compare.records.cells import StrategyRow
from compare.records.record import DYNAMIC
from compare.report.blocks import Table
from compare.report.figures import Drawing, alt_text, style
from compare.report.summary import Summary

_SHARES = (0.5, 0.95, 0.99)


def order_strategies(tables: Sequence[Evidence]) -> list[str]:
    """Return the strategies of all tables: dynamic first, and one example at a time before batches."""
    batched = {name: m.batching != "one by one" for cell in tables for p in cell.processes for name, m in p.items()}
    return sorted(batched, key=lambda name: (not name.startswith(DYNAMIC), batched[name], name))


def table(tables: Sequence[Evidence]) -> Table | None:
    """Return the table of all cells, with a row for each strategy; None without rows."""
    return Table.of("lllll" + "r" * 11, [row for cell in tables for row in rows(cell)])


def rows(cell: Evidence) -> Iterator[dict[str, str]]:
    """Yield a row for each strategy of a cell, as a mapping from header to text.

    `hits` is the share of first-epoch calls that found their graph. `computed` is elements computed per element of the
    input, and `useful` its inverse. Percentiles are of the time an example waits for its call once warm.
    """
    return (_row(cell, name, cell.of(name)) for name in order_strategies([cell]))


def computed_per_element(measured: Sequence[StrategyRow]) -> float:
    """Return elements computed per element of the input: more than 1 if a strategy pads."""
    return measured[0].computed / measured[0].useful


def percentile(latencies: Sequence[float], examples: Sequence[int], share: float) -> float:
    """Return the latency that a share of the examples does not exceed; all examples of a batch wait for its call."""
    ranked = sorted(zip(latencies, examples, strict=True))
    passed = 0
    for latency, count in ranked:
        passed += count
        if passed >= share * sum(examples):
            return latency
    return ranked[-1][0]


def _row(cell: Evidence, name: str, measured: Sequence[StrategyRow]) -> dict[str, str]:
    first = measured[0]
    calls = first.stream
    examples = [call.examples for call in calls]
    hits = sum(not call.compiled for call in calls) / len(calls)
    p50, p95, p99 = (geometric_mean(percentile(m.latency, examples, share) for m in measured) for share in _SHARES)
    return {
        "lengths": cell.name,
        "strategy": name,
        "compiled for": first.compilation,
        "padding": first.padding,
        "batching": first.batching,
        "compiles": f"{first.compiles:,}",
        "hits": text.quantity(hits, "share") if first.compiles else "",
        "computed": f"{computed_per_element(measured):.2f}",
        "useful": text.quantity(1 / computed_per_element(measured), "share"),
        "first call": text.seconds(geometric_mean(m.stream[0].seconds for m in measured)),
        "first epoch": text.seconds(cell.mean(name, first_run) or 0.0),
        "p50": text.seconds(p50),
        "p95": text.seconds(p95),
        "p99": text.seconds(p99),
        "an example": text.seconds(cell.mean(name, steady) or 0.0),
        "held": text.size(max(m.held for m in measured)),
    }


UNCLEAR = "too close to call"
COUNTED = ("strategy", "compiles", f"{KEPT} kept", "hits", "padding", "useful")
TIMED = ("strategy", "p50", "p99", "an example", "epoch 1", "plans")
CONTEST = ("contest", "static ÷ dynamic", "verdict")

Rows = list[tuple[str, ...]]


def describe_trace(name: str, trace: LengthTrace) -> str:
    """Return a line for each axis of a trace: the number of lengths, their range and median, and how many differ."""
    return "\n".join(
        f"{name}, {axis}: {len(column):,} lengths, {min(column):,} to {max(column):,}, median {median(column):,g}; "
        f"{len(set(column)):,} different"
        for axis, column in zip(trace.axes, trace.columns, strict=True)
    )


def useful(trace: LengthTrace) -> int:
    """Count the elements of all inputs: the product of the lengths of all axes, summed over inputs."""
    return sum(map(math.prod, zip(*trace.columns, strict=True)))


def layouts(trace: LengthTrace, batch: int) -> dict[str, CallLayout | None]:
    """Lay the whole trace out by each strategy; None for a strategy with too many different lengths to count."""
    return {name: _layout(strategy, trace, batch) for name, strategy in STRATEGIES.items()}


def _layout(strategy: Strategy, trace: LengthTrace, batch: int) -> CallLayout | None:
    if strategy.padding == "optimal buckets" and max(len(set(column)) for column in trace.columns) > MOST_SIZES:
        return None
    parts = [strategy.layout(column, batch) for column in trace.columns]
    return parts[0] if len(parts) == 1 else combine_layouts(parts, trace.columns, strategy.padding != "none")


def count_rows(laid: Mapping[str, CallLayout | None], useful: int) -> Rows:
    """Return a row for each strategy: compiles if all graphs or `KEPT` are kept, hits, padding and useful share."""
    return [_counts(name, layout, useful) for name, layout in laid.items() if layout is not None]


def _counts(name: str, laid: CallLayout, useful: int) -> tuple[str, ...]:
    share = useful / sum(laid.sizes)
    compiled = (
        ("", "", "") if not laid.shapes else (f"{laid.compiles:,}", f"{laid.compiles_of(KEPT):,}", _share(laid.hits))
    )
    return name, *compiled, _share(1 - share), _share(share)


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def sample_note(sample: TraceSample, trace: LengthTrace, seed: int) -> str:
    """Return sentences on the sample of lengths that is timed, and on how it compares with the whole trace."""
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


def time_rows(cell: Evidence, laid: Mapping[str, CallLayout | None]) -> Rows:
    """Return a row for each right strategy: its warm seconds, and the bytes of its plans for the whole trace."""
    return [
        (
            *(row[name] for name in ("strategy", "p50", "p99", "an example", "first epoch")),
            _plans(cell.of(row["strategy"])[0], laid.get(row["strategy"])),
        )
        for row in rows(cell)
    ]


def _plans(measured: StrategyRow, laid: CallLayout | None) -> str:
    """Return the bytes of the plans that the whole trace needs, as text.

    Plans of sizes that were not compiled are interpolated, and scaled by size beyond the largest; `~` marks this. `>`
    marks a lower bound, for a plan with a symbolic size.
    """
    plans = measured.plans
    if not plans or laid is None:
        return ""
    sizes, held = zip(*plans, strict=True)
    if sizes == (0,):  # one plan for all sizes
        return ">" + text.size(held[0])
    wanted = np.array(list(set(laid.shapes)), np.int64)
    sized = np.interp(wanted, sizes, held) * np.maximum(1, wanted / sizes[-1])
    return ("" if set(laid.shapes) <= set(sizes) else "~") + text.size(float(sized.sum()))


def fastest(cell: Evidence) -> str:
    """Return a sentence with the fastest strategy of each engine once warm, and its seconds per example."""
    best_of = {engine: best(cell, engine, lambda _: True, steady) for engine in ("static", "dynamic")}
    means = {name: cell.mean(name, steady) or 0.0 for name in best_of.values() if name}
    parts = [f"{name}, {text.seconds(means[name])} an example" for name in sorted(means, key=means.__getitem__)]
    return f"Fastest once warm: {'; then '.join(parts)}."


def contests(cell: Evidence, comparisons: int) -> Rows:
    """Compare the best strategies of the engines, for each way of batching and each phase; returns table rows."""
    fought: Rows = []
    for (how, counts), (phase, read) in product(CONTESTS, PHASES):
        top, bottom = (best(cell, engine, counts, read) for engine in ("static", "dynamic"))
        if top and bottom:
            ratio = cell.ratio(top, bottom, read, comparisons)
            words = f"{ratio.estimate:.3g} ({ratio.low:.3g} to {ratio.high:.3g})" if ratio else "not known"
            side = ratio.side(SMALLEST_EFFECT) if ratio else "unclear"
            verdict = {
                "above": "dynamic is faster",
                "below": "static is faster",
                "tie": "a tie, within 5%",
                "unclear": UNCLEAR,
            }[side]
            fought.append((f"{phase}, {how}: {top} ÷ {bottom}", words, verdict))
    return fought


def answer_note(errors: Sequence[str], total: int) -> str:
    """Return a sentence on how many workers answered, and why others did not; "" if all did."""
    reasons = "; ".join(dict.fromkeys(errors))
    return f"{total - len(errors)} of {total} workers answered; the others: {reasons}" if errors else ""


# The figure -----------------------------------------------------------------------------------------------------------


_TITLE = "Strategies for inputs of varying length"
_CAPTION = (
    "Each dot is the time of a training step for one example under a strategy, once warm, ÷ the time of dynamic with "
    "one example at a time. The whiskers are its 95% interval. Left of 1× is faster. A circle is one example at a "
    "time, a square a batch. The words on the right give the graphs compiled in the first epoch, and the elements "
    "computed for each element of the input, which padding raises. A strategy is missing if a model does not allow it; "
    "the verdict on C4 says why. In the numbers below, hits are the calls of the first epoch that found their graph, "
    "and useful is the share of the computed elements that belong to the input. A percentile is the time that an "
    "example waits for its call once warm: in a batch all examples wait for the whole batch. Held are the bytes of all "
    "compiled graphs with their arenas."
)
_COLOURS = {"dynamic": "#d55e00", "static": "#0072b2"}


def draw_lengths(summary: Summary) -> Drawing:
    """Draw a panel for each model and distribution of lengths."""
    tables = [cell for cell in summary.strategies if cell.of(DYNAMIC)]
    if not tables:
        return Drawing("strategies", _TITLE, "This run did not measure the strategies; a run of the whole suite does.")
    grid = style.grid([cell.name for cell in tables], 2, 2.9, head=0.7, least=6.5)
    names = order_strategies(tables)
    for cell in tables:
        axes = grid.axes[cell.name]
        axes.set_title(style.clean(cell.name, 60))
        ratios = {name: cell.ratio(name, DYNAMIC, steady) for name in names}
        compared = {name: interval for name, interval in ratios.items() if interval is not None}
        for name, interval in compared.items():
            row = names.index(name)
            measured = cell.of(name)
            colour = _COLOURS.get(name.partition(",")[0], style.FAINT)
            marker = "o" if measured[0].batching == "one by one" else "s"
            said = f"{name}: {' '.join(style.ratio_cells(interval))}"
            style.whisker(axes, row, interval, colour, marker, said, linewidth=1.6)
            style.beside(axes, row, f"{measured[0].compiles} · {computed_per_element(measured):.2f}", 4, 7.5)
        style.rows(axes, names, fontsize=8)
        shown = [interval.estimate for interval in compared.values()]  # whiskers may reach beyond the panel
        style.ratio_axis(axes, min(0.5, *shown) / 1.6, max(2.0, *shown) * 1.6, label=0.13)
        style.tie_zone(axes)
    words = (
        "time an example ÷ dynamic, one example at a time (log scale; 95% interval)"
        if style.columns(2) > 1
        else "time ÷ dynamic, one by one (log scale)"
    )
    grid.figure.supxlabel(words, fontsize=9.5)
    parts = []
    for each in tables:
        seconds, fastest = min((mean, name) for name, mean in each.means(steady).items())
        parts.append(f"{each.name}: fastest is {fastest}, {text.seconds(seconds)} an example")
    alt = alt_text("Time of a training step under each strategy.", parts)
    return Drawing("strategies", _TITLE, _CAPTION, alt, grid.figure, table(tables))
