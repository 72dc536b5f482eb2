"""Results in the formats of other tools: pyperf, pytest-benchmark, asv, JSON Schema, speedscope and Perfetto.

A pyperf file of version 1.0 has benchmarks, each with a run for each worker process, each with its values in seconds.
`python -m pyperf compare_to OLD.json NEW.json` reads it (https://pyperf.readthedocs.io). A file of pytest-benchmark has
the statistics of a benchmark's values, which `pytest-benchmark compare` and several CI services read
(https://pytest-benchmark.readthedocs.io). A results file of asv of version 2 has columns, and rows by the names of
benchmarks; it belongs into `results/MACHINE/` of an asv project (https://asv.readthedocs.io).

speedscope and Perfetto, which reads Chrome's trace events, show a step by source line, with time from left to right.
Each line is shown once, where it first runs, with the time of all its runs, since the times between were not recorded.
Time outside of all lines comes last, as "elsewhere".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean, median, quantiles, stdev
from typing import Any, NamedTuple

import msgspec

from compare.claims.evidence import cells, steady
from compare.errors import NothingMeasuredError
from compare.records import results
from compare.records.cells import LineCost, SourceLines, SourceLinesRow, Time, TimeRow
from compare.records.job import KINDS
from compare.records.own import CompileEvent, CompileTrace
from compare.records.record import Environment, Records, Run, records_of

PYPERF = "1.0"
PYTEST_BENCHMARK = "5.1.0"
"""The version of pytest-benchmark whose files are written."""
ASV = 2
ASV_COLUMNS = [
    "result", "params", "version", "started_at", "duration", "stats_q_25", "stats_q_75", "samples",
]  # fmt: skip
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def steady_processes(records: Records, mode: str | None = None) -> dict[str, list[tuple[Time, TimeRow]]]:
    """Return the processes that timed each benchmark: each cell and mode that agreed.

    Benchmarks are named `workload/size, mode`, on several threads with their number, and without the processes that
    others disturbed. With `mode`, only that mode is exported, and names are of the cell
    alone, so that two modes of one run can be compared. Noisy cells get more processes than the run was asked for;
    these are left out, so that two runs with the same settings have equally many values. Raises NothingMeasuredError
    without such times.
    """
    admitted = {(cell.cell, name) for cell in cells(records, Time) for name in cell.modes if mode in (None, name)}
    timed: dict[str, list[tuple[Time, TimeRow]]] = {}
    asked = max((int(str(run.settings.get("processes", 0))) for run in records_of(records, Run)), default=0)
    for record in sorted(records_of(records, Time), key=lambda record: record.process):
        on_threads = f", {record.threads} threads" if record.threads > 1 else ""
        for name, row in record.modes.items():
            if (record.cell, name) in admitted and row.status == "ok" and steady(row):
                benchmark = f"{record.cell}{'' if mode else f', {name}'}{on_threads}"
                timed.setdefault(benchmark, []).append((record, row))
    if not timed:
        raise NothingMeasuredError(f"no steady times{f' of {mode}' if mode else ''} to export; see `graphduel report`")
    return {name: processes[: asked or None] for name, processes in timed.items()}


def pyperf(records: Records, mode: str | None = None) -> dict[str, Any]:
    """Export steady times to pyperf: a benchmark for each cell and mode that agreed, one value for each process.

    pyperf compares two benchmarks with equally many values and assumes that values are independent. Blocks of one
    process are not independent, so a value is their mean. A cell that only one process measured is left out, since
    pyperf reports an error for it. Raises NothingMeasuredError without such times.
    """
    tested = {name: each for name, each in steady_processes(records, mode).items() if len(each) > 1}
    if not tested:
        raise NothingMeasuredError(
            "pyperf needs two processes for each cell, and one measured each; run with --processes 2 or more"
        )
    benchmarks = [
        {"metadata": {"name": name, "unit": "second"}, "runs": [_run(*each) for each in processes]}
        for name, processes in tested.items()
    ]
    return {"version": PYPERF, "metadata": {"graphduel_schema": results.VERSION}, "benchmarks": benchmarks}


def pytest_benchmark(records: Records, mode: str | None = None) -> dict[str, Any]:
    """Export steady times to pytest-benchmark: a benchmark for each cell and mode, one value for each process.

    Raises NothingMeasuredError without such times.
    """
    timed = steady_processes(records, mode)
    environment, began = _environment(records), _began(records)
    machine = {
        "python_version": environment.python, "machine": environment.machine, "system": environment.system,
        "cpu": {"brand_raw": environment.cpu, "count": environment.logical_cores},
    }  # fmt: skip
    benchmarks = [
        {
            "group": None,
            "name": name,
            "fullname": name,
            "params": None,
            "param": None,
            "extra_info": {"graphduel_schema": results.VERSION},
            "options": {"timer": processes[0][0].clock, "min_rounds": len(processes)},
            "stats": _statistics([fmean(row.blocks) for _, row in processes], processes[0][1].calls_per_block or 1),
        }
        for name, processes in timed.items()
    ]
    return {
        "machine_info": machine,
        "commit_info": {"id": environment.commit or "unversioned", "time": None, "dirty": False, "branch": "(unknown)"},
        "benchmarks": benchmarks,
        "datetime": began.isoformat(),
        "version": PYTEST_BENCHMARK,
    }


def _statistics(values: Sequence[float], calls: int) -> dict[str, Any]:
    """Return pytest-benchmark's statistics of values in seconds, each a mean over blocks of `calls` calls."""
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    inside = [v for v in values if low - 1.5 * (high - low) <= v <= high + 1.5 * (high - low)]
    spread, mean = (stdev(values) if len(values) > 1 else 0.0), fmean(values)
    beyond = sum(abs(value - mean) > spread for value in values)
    return {
        "min": min(values), "max": max(values), "mean": mean, "stddev": spread, "rounds": len(values),
        "median": middle, "iqr": high - low, "q1": low, "q3": high, "iqr_outliers": len(values) - len(inside),
        "stddev_outliers": beyond, "outliers": f"{beyond};{len(values) - len(inside)}", "ld15iqr": min(inside),
        "hd15iqr": max(inside), "ops": 1 / mean, "total": sum(values), "data": [*values], "iterations": calls,
    }  # fmt: skip


def asv(records: Records, mode: str | None = None) -> dict[str, Any]:
    """Export steady times to asv: a benchmark for each cell, with a parameter for the modes, and its samples.

    Without the commit of a checkout, asv cannot place a result in its history: the field is then "unversioned". Raises
    NothingMeasuredError without such times.
    """
    timed, environment, began = steady_processes(records, mode), _environment(records), _began(records)
    samples: dict[str, dict[str, list[float]]] = {}
    for name, processes in timed.items():
        cell, _, of_mode = name.partition(", ")
        samples.setdefault(cell, {})[of_mode or str(mode)] = [fmean(row.blocks) for _, row in processes]
    rows = {cell: _asv_row(modes, round(began.timestamp() * 1000)) for cell, modes in samples.items()}
    python = (environment.python or "").rpartition(" ")[2]
    return {
        "version": ASV,
        "commit_hash": environment.commit or "unversioned",
        "env_name": f"existing-py{python}",
        "date": round(began.timestamp() * 1000),
        "params": {"machine": _host(records), "cpu": environment.cpu, "os": environment.system, "python": python},
        "python": python,
        "requirements": {},
        "env_vars": environment.threads,
        "result_columns": ASV_COLUMNS,
        "results": rows,
        "durations": {},
    }


def _asv_row(modes: Mapping[str, Sequence[float]], started: int) -> list[Any]:
    """Return a row in the order of `ASV_COLUMNS`: of a benchmark with a parameter, whose values are the modes."""
    samples = [list(values) for values in modes.values()]
    medians = [median(values) for values in samples]
    return [medians, [[repr(name) for name in modes]], "1", started, None, *_quartiles(samples), samples]


def _quartiles(samples: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the first and the third quartiles of each of several samples."""
    each = [quantiles(v, n=4, method="inclusive") if len(v) > 1 else [*v] * 3 for v in samples]
    return [[low for low, _, _ in each], [high for _, _, high in each]]


def _environment(records: Records) -> Environment:
    """Return the environment of the last start."""
    starts = records_of(records, Run)
    return (starts[-1].environment if starts else None) or Environment()


def _began(records: Records) -> datetime:
    """Return the time of the first start; the epoch where no record has it."""
    return next((datetime.fromisoformat(run.at) for run in records_of(records, Run)), datetime.fromtimestamp(0, UTC))


def _host(records: Records) -> str:
    return next((record.host for record in records if record.host), None) or "unknown"


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
    """Export each mode, or `mode`, as a thread of Chrome's trace events, and what its compiler did as another.

    Raises NothingMeasuredError without either.
    """
    traces = _traces(records, mode)
    events = [event for thread, each in enumerate(traces, start=1) for event in _compiler_thread(thread, *each)]
    for thread, (name, row, code) in enumerate(_read(records, mode, needed=not traces), start=1):
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


def _traces(records: Records, mode: str | None) -> list[tuple[str, list[CompileEvent]]]:
    """Return the events of each mode's compiler."""
    return [
        (name, row.events)
        for record in records_of(records, CompileTrace)
        for name, row in record.modes.items()
        if row.events and mode in (None, name)
    ]


def _compiler_thread(thread: int, mode: str, events: Sequence[CompileEvent]) -> Iterator[dict[str, Any]]:
    """Yield the trace events of a compiler, in a process of their own: they lie in each other, and take seconds."""
    where = {"pid": 2, "tid": thread}
    yield {"ph": "M", "name": "process_name", "args": {"name": "compiler, first calls"}, **where}
    yield {"ph": "M", "name": "thread_name", "args": {"name": mode}, **where}
    for event in events:
        times = {"ts": event.start * _MICRO, "dur": event.seconds * _MICRO}
        yield {"ph": "X", "name": event.name, "cat": "compiler", **times, "args": {"graph": event.graph}, **where}


def _read(
    records: Records, mode: str | None, *, needed: bool = True
) -> list[tuple[str, SourceLinesRow, dict[str, str]]]:
    read = [
        (name, row, record.code)
        for record in records_of(records, SourceLines)
        for name, row in record.modes.items()
        if row.status == "ok" and mode in (None, name)
    ]
    if not read and needed:
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
