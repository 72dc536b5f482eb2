"""The ladder of a function: what each part of compiling adds, where a framework's compiler does all at once."""

from __future__ import annotations

from math import exp

from compare.instruments.ladder import LADDER, NATIVE, REPLAY, RUNGS, TAPE, THREADS
from compare.instruments.time.rounds import half_width
from compare.records.cells import Ladder, Threads
from compare.records.record import DYNAMIC, Records, of
from compare.stats import Interval, geometric_mean
from compare.words import text

CAUSES = {
    "dispatch": (TAPE, REPLAY),
    "algebra": (REPLAY, "simplify"),
    "the memory plan": ("simplify", "plan"),
    "another order": ("plan", "restructure"),
    "fusion": ("restructure", "contract"),
    "machine code": ("contract", NATIVE),
}
"""What the way from one rung to another is for."""
SHOWN = {TAPE: DYNAMIC}
"""What a rung is called that is a mode of the table above."""


def seconds(records: Records) -> dict[str, float]:
    """The seconds of a call on each rung that gives what the tape gives; none without a ladder."""
    rungs: dict[str, list[float]] = {}
    for record in of(records, Ladder):
        for name, rung in record.rungs.items():
            if rung.status == "ok" and rung.blocks:
                rungs.setdefault(name, []).append(geometric_mean(rung.blocks))
    took = {name: geometric_mean(rungs[name]) for name in RUNGS if name in rungs}
    shared = threads(records)
    return {**took, THREADS: took[NATIVE] * shared.estimate} if shared and NATIVE in took else took


def threads(records: Records) -> Interval | None:
    """What all cores make of the seconds of native code, on the wall; None where there is one core, or it is not told.

    The interval is that of the blocks of the process that has timed both.
    """
    timed = [record.rungs for record in of(records, Threads) if record.rungs[THREADS].status == "ok"]
    tops, bottoms = ([block for rungs in timed for block in rungs[name].blocks] for name in (THREADS, NATIVE))
    if not tops:
        return None
    ratio = geometric_mean([top / bottom for top, bottom in zip(tops, bottoms, strict=True)])
    spread = exp(half_width(tops, bottoms))
    return Interval(ratio, ratio / spread, ratio * spread)


def table(records: Records) -> list[tuple[str, ...]]:
    """A header, and a row for each rung: the seconds of a call, over those of the rung below, and what it adds."""
    took = seconds(records)
    rows = [
        (
            SHOWN.get(name, name),
            text.seconds(took[name]),
            text.ratio(took[name] / took[base]) if base in took else "",
            LADDER[name].adds,
        )
        for name in took
        for base in [LADDER[name].base]
    ]
    return [("rung", "a call", "÷ below", "adds"), *rows] if rows else []


def sentence(records: Records) -> str:
    """`Of what compiling gives here, dispatch is 40%, fusion 12%, ...`; "" where no mode is faster than dynamic."""
    took = seconds(records)
    ends = [name for name in ("contract", NATIVE) if name in took]
    saved = took[TAPE] - took[ends[-1]] if TAPE in took and ends else 0.0
    if saved <= 0:
        return ""
    parts = {what: took[low] - took[high] for what, (low, high) in CAUSES.items() if low in took and high in took}
    shares = ", ".join(f"{what} {round(100 * share / saved)}%" for what, share in parts.items())
    return (
        f"Compiling saves {text.seconds(saved)} of the {text.seconds(took[TAPE])} that dynamic takes for this call: "
        f"{shares}.{_on_cores(records)}"
    )


def _on_cores(records: Records) -> str:
    shared = threads(records)
    cores = max((record.cores for record in of(records, Threads)), default=1)
    if shared is None:
        return ""
    spread = f"{text.ratio(shared.estimate)} {text.interval(shared.low, shared.high)}"
    return f" With threads={cores} machine code takes {spread} the time."
