"""The three things people say about the two engines, as claims about one function: what a report of it judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compare.claims.base import SMALLEST_EFFECT, Claim, Effect, Finding, Regime, Side, Verdict, beyond, not_measured
from compare.claims.c5_memory.rule import held
from compare.claims.evidence import Evidence, Read, cells, first_run, left_out, steady
from compare.records.cells import Memory, Parity, Time
from compare.records.record import DYNAMIC, OfArms, Records, kind_of
from compare.stats import Interval
from compare.words import text

ZONE = f"{1 + SMALLEST_EFFECT:.2f}"


def _contest(kind: type[OfArms], read: Read, name: str, side: Side) -> Callable[[Records], Finding]:
    """The rule that static ÷ dynamic lies on that side of 1, static by the arm that costs least."""

    def find(records: Records) -> Finding:
        measured = sorted(cells(records, kind), key=lambda cell: cell.base != DYNAMIC)  # ours, beside a framework
        if not measured:
            return not_measured(kind_of(kind))
        cell, left = measured[0].start if read is first_run else measured[0], left_out(records, kind)
        best = cell.least(read)
        if best is None or not cell.of(cell.base):
            return Finding("inconclusive", ("only one engine was measured", *left))
        ratios = {arm: ratio_of(cell, arm, cell.base, read) for arm in cell.static_arms}
        costs, interval = f"{_cost(cell, best, read)}, {_cost(cell, cell.base, read)}", ratios[best]
        if interval is None:
            return Finding("inconclusive", ("too few numbers for an interval", costs, *left))
        regimes = tuple(_regime(arm, ratio, side) for arm, ratio in ratios.items())
        effect = Effect(f"{name}, static ÷ dynamic", interval.estimate, "ratio")
        return Finding(beyond(interval, side), (costs, *left), effect, _spread(interval), regimes, side)

    return find


def ratio_of(cell: Evidence, top: str, bottom: str, read: Read) -> Interval | None:
    """`top / bottom` with its interval, paired where a process has both; of counts, which are exact, the ratio."""
    if read is not held:
        return cell.ratio(top, bottom, read) or cell.unpaired(top, bottom, read)
    over, under = cell.mean(top, read), cell.mean(bottom, read)
    return Interval(over / under, over / under, over / under) if over and under else None


def _regime(arm: str, ratio: Interval | None, side: Side) -> Regime:
    return Regime(arm, beyond(ratio, side), ratio.estimate if ratio else None, ratio and _spread(ratio))


def _cost(cell: Evidence, arm: str, read: Read) -> str:
    """`static-exact 15.4 µs`."""
    mean = cell.mean(arm, read) or 0.0
    return f"{arm} {text.size(mean) if read is held else text.seconds(mean)}"


def _spread(interval: Interval) -> Interval | None:
    return interval if interval.bounded and interval.low < interval.high else None


def _rule(side: Side) -> str:
    zone, other = (ZONE, "below") if side == "above" else (f"1/{ZONE}", "above")
    return (
        f"Supported if the 95% interval of static ÷ dynamic lies {side} {zone}, refuted if {other} that, inconclusive "
        "otherwise or where only one engine was measured. The static engine is judged by its arm that costs least. "
        "Bytes are counted, not sampled: they have no interval."
    )


OWN: Mapping[str, Claim] = {
    claim.id: claim
    for claim in (
        Claim(
            id="F1",
            title="Once warm, static is faster for this function",
            statement="A graph built once runs this function faster than one recorded on every call.",
            opposite="Kernels are nearly all of its time, or its inputs change too much for a fixed graph.",
            measured="Seconds a call takes in steady state, static ÷ dynamic, in paired blocks.",
            rule=_rule("below"),
            find=_contest(Time, steady, "seconds once warm", "below"),
            reads=(Time, Parity),
        ),
        Claim(
            id="F2",
            title="For one run, dynamic is faster for this function",
            statement="Building the graph costs more than it saves when the function runs once over its inputs.",
            opposite="Tracing and compiling are cheap enough, or inputs alike enough, to pay back within one run.",
            measured="Seconds from nothing to the last of the inputs, build and compile included, static ÷ dynamic.",
            rule=_rule("above"),
            find=_contest(Time, first_run, "seconds for one run from nothing", "above"),
            reads=(Time, Parity),
        ),
        Claim(
            id="F3",
            title="Dynamic holds less memory for this function",
            statement="The static engine holds more bytes for this function: its structure, its plan, every shape.",
            opposite="A plan shares buffers between values, which the tape keeps until backward.",
            measured="The peak of a steady call above the baseline, with structure, plan and caches, static ÷ dynamic.",
            rule=_rule("above"),
            find=_contest(Memory, held, "bytes held", "above"),
            reads=(Memory, Parity),
        ),
    )
}
"""The claims about one function, by id."""


def judge(records: Records) -> list[Verdict]:
    """The verdict on each claim about one function."""
    return [claim.judge(records) for claim in OWN.values()]
