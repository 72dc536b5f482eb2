"""A step line by line for two viewers: speedscope, and Perfetto, which reads Chrome's trace events.

Both draw time from left to right. A line stands once, where it first runs, as long as all its runs together: what lies
between its runs was not recorded. What no line takes is last, as "elsewhere".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from compare.errors import NothingMeasuredError
from compare.records.breakdowns import LineCost, SourceLines, SourceLinesArm
from compare.records.record import Records, of

SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"
ELSEWHERE = "elsewhere"
_MICRO = 1e6


class Stretch(NamedTuple):
    """A line of a step: where it is, its text, when it begins in seconds, and what it costs."""

    place: str
    text: str
    start: float
    cost: LineCost


def speedscope(records: Records, arm: str | None = None) -> dict[str, Any]:
    """A profile for each arm, or for that one, in speedscope's format. Raises NothingMeasuredError without lines."""
    profiles, frames = [], dict[str, dict[str, Any]]()
    for name, row, code in _arms(records, arm):
        stretches = list(_stretches(row, code))
        for stretch in stretches:
            frames.setdefault(stretch.place, _frame(stretch))
        places = list(frames)
        profiles.append(
            {
                "type": "sampled",
                "name": name,
                "unit": "seconds",
                "startValue": 0.0,
                "endValue": sum(stretch.cost.seconds for stretch in stretches),
                "samples": [[places.index(stretch.place)] for stretch in stretches],
                "weights": [stretch.cost.seconds for stretch in stretches],
            }
        )
    shared = {"frames": list(frames.values())}
    return {"$schema": SPEEDSCOPE, "exporter": "graphduel", "shared": shared, "profiles": profiles}


def perfetto(records: Records, arm: str | None = None) -> dict[str, Any]:
    """A thread for each arm, or for that one, as Chrome's trace events. Raises NothingMeasuredError without lines."""
    events: list[dict[str, Any]] = []
    for thread, (name, row, code) in enumerate(_arms(records, arm), start=1):
        where = {"pid": 1, "tid": thread}
        events.append({"ph": "M", "name": "thread_name", "args": {"name": name}, **where})
        for stretch in _stretches(row, code):
            costs = {"place": stretch.place, "kernels": stretch.cost.kernels, "bytes made": stretch.cost.made}
            events.append(
                {
                    "ph": "X",
                    "name": stretch.text,
                    "cat": "line",
                    "ts": stretch.start * _MICRO,
                    "dur": stretch.cost.seconds * _MICRO,
                    "args": {**costs, "bytes saved for backward": stretch.cost.saved_bytes},
                    **where,
                }
            )
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"exporter": "graphduel"}}


def _arms(records: Records, arm: str | None) -> list[tuple[str, SourceLinesArm, dict[str, str]]]:
    read = [
        (name, row, record.code)
        for record in of(records, SourceLines)
        for name, row in record.arms.items()
        if row.status == "ok" and arm in (None, name)
    ]
    if not read:
        whose = f" of {arm}" if arm else ""
        raise NothingMeasuredError(
            f"no step{whose} was read line by line; `graphduel compare FILE.py:FUNCTION --out DIR` does that"
        )
    return read


def _stretches(row: SourceLinesArm, code: dict[str, str]) -> Iterator[Stretch]:
    start = 0.0
    for place, cost in (*row.lines.items(), (ELSEWHERE, LineCost(seconds=row.elsewhere))):
        yield Stretch(place, code.get(place, place).strip() or place, start, cost)
        start += cost.seconds


def _frame(stretch: Stretch) -> dict[str, Any]:
    file, colon, line = stretch.place.rpartition(":")
    return (
        {"name": stretch.text, "file": file, "line": int(line)} if colon and line.isdigit() else {"name": stretch.text}
    )
