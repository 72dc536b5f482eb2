"""The answer as text: a table of modes, whether compiling pays, and what each compilation and graph break was for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from compare.claims.base import SMALLEST_EFFECT
from compare.own.show import WIDTH, aligned
from compare.report import text

if TYPE_CHECKING:
    from compare.frameworks.own.result import Mode, Result

COLUMNS = ("mode", "a call, warm", "of eager's time", "first call", "first pass", "compiles", "breaks", "peak")
MOST_REASONS = 4


def plain(result: Result) -> str:
    """The heading, a table with a row a mode, the answer, and the reasons below it."""
    table = aligned((COLUMNS, *map(row, result.modes)))
    notes = [line for note in sentences(result) for line in _wrapped(note)]
    return "\n".join([heading(result), "", *table, "", *notes])


def heading(result: Result) -> str:
    """`train.py:loss in PyTorch 2.13.0: value and gradients over 5 calls; 3 × fresh processes, cpu`."""
    asked = result.asked
    title = f"{asked.adapter.title} {result.gate.version}"
    count = 1 + max((record.process for record in result.processes), default=-1)
    processes = f"{count} × {'fresh processes' if asked.function else 'this process'}, cpu"
    step = f"value and gradients over {text.counted(result.calls, 'call')}"
    return f"{asked.function or 'a function'} in {title}: {step}; {processes}"


def row(mode: Mode) -> tuple[str, ...]:
    """A mode under COLUMNS."""
    if mode.call is None:
        return (mode.name, mode.status, *("" for _ in COLUMNS[2:]))
    first, epoch = (_cold(getattr(mode, name), getattr(mode, f"{name}_warm"), mode) for name in ("first", "epoch"))
    return (
        mode.name,
        text.seconds(mode.call),
        _ratio(mode),
        first,
        epoch,
        f"{mode.compiles:,}" if mode.compiles else "",
        f"{sum((mode.breaks or {}).values()):,}" if mode.breaks else "",
        "" if mode.peak is None else text.size(mode.peak),
    )


def sentences(result: Result) -> Iterator[str]:
    """The answer for each compiled mode, then what the gate found, then why there were compilations and breaks."""
    eager, *compiled = result.modes
    for mode in compiled:
        yield f"{mode.name}: {_answer(mode, eager)}"
    yield _gate(result)
    for mode in compiled:
        yield from _reasons(mode, "compiled", mode.reasons)
        yield from _reasons(mode, "broke the graph", mode.breaks)
    yield from (f"failed: {error}" for error in result.lost)


def _answer(mode: Mode, eager: Mode) -> str:
    if mode.call is None or mode.ratio is None:
        return f"not timed, {mode.status}: {mode.reason}"
    if eager.epoch is None or mode.epoch is None:
        return "its first pass did not end"
    cost = f"its first pass costs {text.seconds(mode.epoch)} from nothing"
    if mode.epoch_warm is not None:
        cost += f", {text.seconds(mode.epoch_warm)} with the cache of an earlier process"
    said = f"{_ratio(mode)} of eager's time once warm"
    if mode.side == "below":
        warm = f", {mode.pays_from_warm:,} with that cache" if mode.pays_from_warm is not None else ""
        paid = f"{mode.pays_from:,} calls{warm}" if mode.pays_from is not None else "no number of calls seen here"
        return f"compiling pays after {paid}: {said}; {cost}."
    return f"{_not_paid(mode)}: {said}; {cost}."


def _not_paid(mode: Mode) -> str:
    if mode.side == "above":
        return "compiling never pays, it is slower"
    no_faster = mode.ratio is not None and mode.ratio.low >= 1 / (1 + SMALLEST_EFFECT)
    return "compiling never pays, it is no faster" if no_faster else "cannot tell whether compiling pays"


def _gate(result: Result) -> str:
    there = [mode for mode in result.modes if mode.ulp is not None]
    worst = max((mode.ulp or 0.0 for mode in there), default=0.0)
    against = "eager with the same random numbers" if result.gate.random else "float64 and eager"
    wrong = [f"{mode.name}: {mode.reason}" for mode in there if mode.status == "disagree"]
    if wrong:
        return f"Outputs or gradients disagree with {against}: {text.listed(wrong)}."
    return f"Outputs and gradients agree with {against} to {worst:.1f} units in the last place of float32."


def _reasons(mode: Mode, what: str, reasons: Mapping[str, int] | None) -> Iterator[str]:
    found = sorted((reasons or {}).items(), key=lambda item: -item[1])
    for reason, count in found[:MOST_REASONS]:
        said = reason.split("\n")[0].strip()
        yield f"{mode.name} {what} {text.counted(count, 'time')}: {said}"
    if len(found) > MOST_REASONS:
        yield f"{mode.name} {what} for {text.counted(len(found) - MOST_REASONS, 'further reason')}"


def _cold(cold: float | None, warm: float | None, mode: Mode) -> str:
    if cold is None:
        return ""
    return text.seconds(cold) + (f" ({text.seconds(warm)})" if warm is not None and mode.compiles else "")


def _ratio(mode: Mode) -> str:
    if mode.ratio is None:
        return ""
    return f"{text.ratio(mode.ratio.estimate)} {text.interval(mode.ratio.low, mode.ratio.high)}"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
