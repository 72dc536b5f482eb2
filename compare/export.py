"""Results in the formats of others: pyperf's JSON, and the schema of a results file as a JSON Schema.

pyperf writes a file of version 1.0 as benchmarks, each with runs, one for each worker process, each with its values in
seconds: what `python -m pyperf compare_to OLD.json NEW.json` reads (https://pyperf.readthedocs.io).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from compare import schema
from compare.claims import evidence
from compare.claims.base import Record, Records
from compare.errors import NothingMeasuredError

PYPERF = "1.0"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def pyperf(records: Records, arm: str | None = None) -> dict[str, Any]:
    """The steady times of a run: a benchmark for each cell and arm that agreed, a run and one value for each process.

    pyperf tests two benchmarks by their values, as many of each, as if they were independent. Blocks of one process are
    not, so their mean is the value; and processes beyond those that the run was asked for, which noisy cells get, are
    left out, so that two runs with the same settings have as many.

    Benchmarks are named `workload/size, arm`. With `arm` only that one is taken and names are of the cell alone, so
    that two arms of one run can be compared. Raises NothingMeasuredError where there are no such times.
    """
    admitted = {(cell.workload, cell.size, arm) for cell in evidence.cells(records, "time") for arm in _arms(cell)}
    runs: dict[str, list[dict[str, Any]]] = {}
    asked = max((r["settings"].get("processes", 0) for r in records if r["kind"] == "run"), default=0)
    for record in (r for r in records if r["kind"] == "time" and (not asked or r["process"] < asked)):
        for name, row in record["arms"].items():
            wanted = arm in (None, name) and row.get("blocks")
            if wanted and (record["workload"], record["size"], name) in admitted:
                cell = f"{record['workload']}/{record['size']}"
                runs.setdefault(cell if arm else f"{cell}, {name}", []).append(_run(record, row))
    if not runs:
        raise NothingMeasuredError(f"no steady times{f' of {arm}' if arm else ''} to export; see `graphduel report`")
    benchmarks = [{"metadata": {"name": name, "unit": "second"}, "runs": found} for name, found in runs.items()]
    return {"version": PYPERF, "metadata": {"graphduel_schema": schema.VERSION}, "benchmarks": benchmarks}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of one line of a results file, by its kind; made of the types in `compare.schema`."""
    kinds = [_line(kind, fields) for kind, fields in schema.KINDS.items()]
    other = {"properties": {"kind": {"not": {"enum": list(schema.KINDS)}}}}
    return {
        "$schema": DRAFT,
        "title": f"A line of graphduel results, version {schema.VERSION}",
        "type": "object",
        "required": ["schema", "kind"],
        "properties": {"schema": {"const": schema.VERSION}, "kind": {"type": "string"}},
        "oneOf": [*kinds, other],
    }


def _arms(cell: evidence.Cell) -> tuple[str, ...]:
    return (evidence.DYNAMIC, *cell.static_arms) if cell.of(evidence.DYNAMIC) else cell.static_arms


def _run(record: Record, row: Record) -> dict[str, Any]:
    loops = row.get("calls_per_block", 1)
    warmups = [[loops, seconds] for seconds in row.get("warmup", ()) if seconds > 0]
    run = {"metadata": {"loops": loops, **_told(record)}, "values": [fmean(row["blocks"])]}
    return {**run, "warmups": warmups} if warmups else run


def _told(record: Record) -> dict[str, Any]:
    """What a run says of its process and machine, by pyperf's names where it has them."""
    environment = record.get("environment") or {}
    told = {
        "graphduel_process": record["process"],
        "hostname": record.get("host"),
        "cpu_model_name": environment.get("cpu"),
        "python_version": environment.get("python"),
        "numpy_version": environment.get("numpy"),
        "platform": environment.get("system"),
        "load_avg_1min": environment.get("load"),
    }
    return {name: value for name, value in told.items() if value is not None}


def _line(kind: str, fields: Any) -> dict[str, Any]:
    told = _of(fields)
    return {**told, "properties": {**told["properties"], "kind": {"const": kind}}}


def _of(expected: Any) -> dict[str, Any]:
    parts = get_args(expected)
    if expected is Any:
        return {}
    if is_typeddict(expected):
        return _object(expected)
    if get_origin(expected) is dict:
        return {"type": "object", "additionalProperties": _of(parts[1])}
    if get_origin(expected) is list:
        return {"type": "array", "items": _of(parts[0])}
    if get_origin(expected) is UnionType:
        return {"anyOf": list(_each(parts))}
    return {"enum": list(parts)} if get_origin(expected) is Literal else {"type": _PLAIN[expected]}


def _each(parts: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    return ({"type": "null"} if part is NoneType else _of(part) for part in parts)


def _object(expected: Any) -> dict[str, Any]:
    hints = get_type_hints(expected)
    described = {"description": expected.__doc__} if expected.__doc__ else {}
    properties = {name: _of(hint) for name, hint in hints.items()}
    return {"type": "object", **described, "required": sorted(expected.__required_keys__), "properties": properties}
