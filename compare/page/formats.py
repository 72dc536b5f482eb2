"""Results in the formats of other tools: pyperf, JSON Schema of a results file, speedscope and Perfetto.

A pyperf file of version 1.0 has benchmarks, each with a run for each worker process, each with its values in seconds.
`python -m pyperf compare_to OLD.json NEW.json` reads it (https://pyperf.readthedocs.io).

speedscope and Perfetto, which reads Chrome's trace events, show a step by source line, with time from left to right.
Each line is shown once, where it first runs, with the time of all its runs, since the times between were not recorded.
Time outside of all lines comes last, as "elsewhere".
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from compare.claims.evidence import cells
from compare.errors import NothingMeasuredError
from compare.records import results
from compare.records.cells import LineCost, SourceLines, SourceLinesRow, Time, TimeRow
from compare.records.job import KINDS
from compare.records.record import Environment, Records, Run, records_of

PYPERF = "1.0"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def pyperf(records: Records, mode: str | None = None) -> dict[str, Any]:
    """Export steady times to pyperf: a benchmark for each cell and mode that agreed, one value for each process.

    pyperf compares two benchmarks with equally many values and assumes that values are independent. Blocks of one
    process are not independent, so a value is their mean. Noisy cells get more processes than the run was asked for;
    these are left out, so that two runs with the same settings have equally many values. A cell that only one process
    measured is left out too, since pyperf reports an error for it.

    Benchmarks are named `workload/size, mode`. With `mode`, only that mode is exported, and names are of the cell
    alone, so that two modes of one run can be compared. Raises NothingMeasuredError without such times.
    """
    admitted = {(cell.cell, name) for cell in cells(records, Time) for name in cell.modes if mode in (None, name)}
    runs: dict[str, list[dict[str, Any]]] = {}
    asked = max((int(str(run.settings.get("processes", 0))) for run in records_of(records, Run)), default=0)
    for record in (r for r in records_of(records, Time) if not asked or r.process < asked):
        for name, row in record.modes.items():
            if row.blocks and (record.cell, name) in admitted:
                runs.setdefault(str(record.cell) if mode else f"{record.cell}, {name}", []).append(_run(record, row))
    if not runs:
        raise NothingMeasuredError(f"no steady times{f' of {mode}' if mode else ''} to export; see `graphduel report`")
    tested = {name: processes for name, processes in runs.items() if len(processes) > 1}
    if not tested:
        raise NothingMeasuredError(
            "pyperf needs two processes for each cell, and one measured each; run with --processes 2 or more"
        )
    benchmarks = [
        {"metadata": {"name": name, "unit": "second"}, "runs": processes} for name, processes in tested.items()
    ]
    return {"version": PYPERF, "metadata": {"graphduel_schema": results.VERSION}, "benchmarks": benchmarks}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a results file, by its kind, made from the record types."""
    types = [kind.type for kind in KINDS.values()]
    components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    kinds, definitions = msgspec.json.decode(msgspec.json.encode(components))  # turns default tuples into lists
    other = {"properties": {"kind": {"not": {"enum": list(KINDS)}}}}
    return {
        "$schema": DRAFT,
        "title": f"A line of graphduel results, version {results.VERSION}",
        "type": "object",
        "required": ["schema", "kind"],
        "properties": {"schema": {"const": results.VERSION}, "kind": {"type": "string"}},
        "oneOf": [*kinds, other],
        "$defs": definitions,
    }


def _run(record: Time, row: TimeRow) -> dict[str, Any]:
    loops = row.calls_per_block or 1
    warmups = [[loops, seconds] for seconds in row.warmup if seconds > 0]
    run = {"metadata": {"loops": loops, **_metadata(record)}, "values": [fmean(row.blocks)]}
    return {**run, "warmups": warmups} if warmups else run


def _metadata(record: Time) -> dict[str, Any]:
    """Return metadata of a process and its machine, by pyperf's names where pyperf has them."""
    environment = record.environment or Environment()
    fields = {
        "graphduel_process": record.process,
        "hostname": record.host,
        "cpu_model_name": environment.cpu,
        "python_version": environment.python,
        "numpy_version": environment.numpy,
        "platform": environment.system,
        "load_avg_1min": environment.load,
    }
    return {name: value for name, value in fields.items() if value is not None}


SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"
ELSEWHERE = "elsewhere"
_MICRO = 1e6


class Stretch(NamedTuple):
    """A source line of a step as an interval: its place, its text, its start in seconds, and its cost."""

    place: str
    text: str
    start: float
    cost: LineCost


def speedscope(records: Records, mode: str | None = None) -> dict[str, Any]:
    """Export a profile of each mode, or of `mode`, to speedscope. Raises NothingMeasuredError without lines."""
    profiles, frames = [], dict[str, dict[str, Any]]()
    for name, row, code in _read(records, mode):
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


def perfetto(records: Records, mode: str | None = None) -> dict[str, Any]:
    """Export each mode, or `mode`, as a thread of Chrome's trace events. Raises NothingMeasuredError without lines."""
    events: list[dict[str, Any]] = []
    for thread, (name, row, code) in enumerate(_read(records, mode), start=1):
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


def _read(records: Records, mode: str | None) -> list[tuple[str, SourceLinesRow, dict[str, str]]]:
    read = [
        (name, row, record.code)
        for record in records_of(records, SourceLines)
        for name, row in record.modes.items()
        if row.status == "ok" and mode in (None, name)
    ]
    if not read:
        whose = f" of {mode}" if mode else ""
        raise NothingMeasuredError(
            f"no step{whose} was read line by line; `graphduel compare FILE.py:FUNCTION --out DIR` does that"
        )
    return read


def _stretches(row: SourceLinesRow, code: dict[str, str]) -> Iterator[Stretch]:
    start = 0.0
    for place, cost in (*row.lines.items(), (ELSEWHERE, LineCost(seconds=row.elsewhere))):
        yield Stretch(place, code.get(place, place).strip() or place, start, cost)
        start += cost.seconds


def _frame(stretch: Stretch) -> dict[str, Any]:
    file, colon, line = stretch.place.rpartition(":")
    return (
        {"name": stretch.text, "file": file, "line": int(line)} if colon and line.isdigit() else {"name": stretch.text}
    )
