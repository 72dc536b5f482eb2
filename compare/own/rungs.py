"""The ladder of a function: what each part of compiling adds, where a framework's compiler does all at once."""

from __future__ import annotations

from compare.instruments.ladder import NATIVE, REPLAY, RUNGS, TAPE
from compare.records.breakdowns import Ladder
from compare.records.record import Records, of
from compare.stats import geometric_mean
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


def seconds(records: Records) -> dict[str, float]:
    """The seconds of a call on each rung that gives what the tape gives; none without a ladder."""
    rungs: dict[str, list[float]] = {}
    for record in of(records, Ladder):
        for name, rung in record.rungs.items():
            if rung.status == "ok" and rung.blocks:
                rungs.setdefault(name, []).append(geometric_mean(rung.blocks))
    return {name: geometric_mean(rungs[name]) for name in RUNGS if name in rungs}


def table(records: Records) -> list[tuple[str, ...]]:
    """A header, and a row for each rung: the seconds of a call, over those of the rung below, and what it adds."""
    took = seconds(records)
    rows = [
        (name, text.seconds(took[name]), text.ratio(took[name] / took[base]) if base in took else "", RUNGS[name].adds)
        for name in took
        for base in [RUNGS[name].base]
    ]
    return [("rung", "a call", "÷ below", "adds"), *rows] if rows else []


def sentence(records: Records) -> str:
    """`Of what compiling gives here, dispatch is 40%, fusion 12%, ...`; "" where no mode is faster than the tape."""
    took = seconds(records)
    ends = [name for name in ("contract", NATIVE) if name in took]
    saved = took[TAPE] - took[ends[-1]] if TAPE in took and ends else 0.0
    if saved <= 0:
        return ""
    parts = {what: took[low] - took[high] for what, (low, high) in CAUSES.items() if low in took and high in took}
    shares = ", ".join(f"{what} {round(100 * share / saved)}%" for what, share in parts.items())
    return (
        f"Of the {text.seconds(saved)} that compiling saves of a call in our engine ({text.seconds(took[TAPE])} on the "
        f"tape): {shares}."
    )
