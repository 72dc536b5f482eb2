"""The results file, version 1: append-only JSON lines, one line per finished job, parsed here and nowhere else.

A line is one JSON object with `schema` (the version), `kind`, and the fields of the type of that kind
(`compare.records.job`). A field may be added without a new version. A line of an unknown kind is kept and not read.

A line counts once its newline is written. A rest after the last newline, left by a killed run, is ignored when the
file is read, and cut away when the run is resumed, so that the next line starts clean.

A file may be packed by gzip, which makes it a sixth as long.

`upgrade` converts lines of kinds that earlier versions wrote, so that an old report still opens.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from compare.errors import CompareError, ResultsError
from compare.records.job import KINDS
from compare.records.own import SharedVerdict
from compare.records.record import Failure, JobName, Record, Run
from graphs import files as zips
from graphs.files import write_file

RESULTS = "results.jsonl"
PACKED = f"{RESULTS}.gz"
VERDICTS = "verdicts.json"
SHARED = "verdict.json"
"""The small file that a run writes for `graphduel report` of many."""
FRAMEWORKS = "frameworks.json"
VERSION = 1


def silent(_: str) -> None:
    """Drop a notice."""


def to_json(record: Record) -> dict[str, Any]:
    """Return the JSON value of a record's line."""
    return {"schema": VERSION, **msgspec.to_builtins(record)}


def encode(record: Record) -> bytes:
    """Return the line of a record, newline included. Raises ValueError for NaN and infinity."""
    return (json.dumps(to_json(record), allow_nan=False, separators=(",", ":")) + "\n").encode()


def parse_line(line: bytes) -> Record | None:
    """Return the record of a line; None if its kind is not known.

    Raises ResultsError if a line is not from graphduel, has another version, or lacks fields of its kind.
    """
    try:
        value = json.loads(line, parse_constant=_refuse_constant)  # msgspec's own reader refuses lone surrogates
    except (ValueError, RecursionError) as error:
        raise _unknown_format(error) from None
    return of_json(value)


def of_json(value: Any) -> Record | None:
    """Return the record of a line's JSON value; None and ResultsError as for `parse_line`."""
    try:
        value = upgrade(value)
        head = msgspec.convert(value, _Head)
        if head.schema == VERSION:
            return msgspec.convert(value, KINDS[head.kind].type) if head.kind in KINDS else None
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise _unknown_format(error) from None
    newer = isinstance(head.schema, int) and head.schema > VERSION
    remedy = "pip install --upgrade graphduel" if newer else "use the graphduel that wrote it"
    raise ResultsError(
        f"schema version {head.schema!r}, and this graphduel reads version {VERSION}; {remedy}, or choose another "
        "folder with --out"
    )


def _unknown_format(error: Exception) -> ResultsError:
    return ResultsError(
        f"not a line of graphduel results ({error}); move the file away, or choose another folder with --out"
    )


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


class _Head(msgspec.Struct):
    """The fields that every line has."""

    schema: Any
    kind: str


def valid(record: Record) -> Record:
    """Return a new record if a line may hold it. Raises CompareError if not, as no file is to blame for that."""
    try:
        for value in (msgspec.to_builtins(record), *record.beside):
            msgspec.convert(value, KINDS[value["kind"]].type)
    except msgspec.ValidationError as error:
        raise CompareError(
            f"what was measured cannot be ({error}); if seconds are below 0, a clock of this machine went backwards: "
            "measure again"
        ) from None
    return record


def unfold(record: Record) -> list[Record]:
    """Split a record into the records beside it and itself, each a line of its own.

    The record itself comes last, since it marks its job as done: a run killed between the lines repeats the job.
    """
    others = [other for line in record.beside if (other := of_json(line)) is not None]
    record.beside = []
    for other in others:
        other.mode, other.host, other.label, other.threads = record.mode, record.host, record.label, record.threads
    return [*others, record]


def append(path: Path, record: Record) -> None:
    """Append the line of a record to the file and flush it to the disk; on an error, append nothing.

    Raises ValueError for NaN and infinity, and ResultsError if the disk refuses it, for example because it is full.
    """
    line = encode(record)
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            data = line
            while data:  # a nearly full disk accepts only a part at first, and raises OSError at the next write
                data = data[file.write(data) :]
            os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):  # if this fails too, the rest is cut away when the run is resumed
                file.truncate(before)
            raise ResultsError(f"{path}: {error.strerror}; make room, then go on with --resume") from error


def has_some(directory: Path) -> bool:
    """Whether a directory holds results of a run. Raises ResultsError if its results file is not from graphduel."""
    path = directory / RESULTS
    if not path.exists():
        return False
    read(path)
    return True


def read_shared(path: Path) -> SharedVerdict:
    """Return the verdict in a file. Raises ResultsError if it holds none, or one of another version."""
    try:
        shared = msgspec.json.decode(path.read_bytes(), type=SharedVerdict)
    except (OSError, msgspec.MsgspecError) as error:
        raise ResultsError(f"{path} is no {SHARED} of a run: {error}") from None
    if shared.schema != VERSION:
        raise ResultsError(f"{path}: schema version {shared.schema}, and this graphduel reads version {VERSION}")
    return shared


def replace(path: Path, records: Iterable[Record]) -> None:
    """Write these records to a results file, in place of an earlier one.

    Raises ValueError for NaN and infinity, and ResultsError if the disk refuses it.
    """
    try:
        write_file(path, b"".join(map(encode, records)))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}; make room, or choose another folder") from error


def create(path: Path) -> None:
    """Create an empty file if there is none, and flush its folder, so that its name survives a loss of power."""
    path.touch()
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def find_results(directory: Path) -> Path | None:
    """Return the results file of a folder, plain or packed by gzip; None if there is none.

    A packed run can be read and judged again, but not resumed.
    """
    return next((path for path in (directory / RESULTS, directory / PACKED) if path.exists()), None)


def read(path: Path, notice: Callable[[str], None] = silent) -> list[Record]:
    """Read every complete line of a known kind, in order; `notice` is called for other lines and a cut-off last line.

    Raises ResultsError, as `parse_line` does, with the file and the line number.
    """
    complete, rest = _split(path)
    if rest:
        notice(f"{path}: the last line is cut off and was ignored; its job has no result")
    lines = list(_parse_lines(path, complete))
    records = [each for record in lines if record is not None for each in unfold(record)]
    if others := lines.count(None):
        notice(f"{path}: {others} lines of kinds that this graphduel does not know were left alone")
    return records


def repair(path: Path) -> bool:
    """Cut away an incomplete last line. Returns whether there was one."""
    complete, rest = _split(path)
    if rest:
        os.truncate(path, len(complete))
    return bool(rest)


def done_jobs(records: Iterable[Record]) -> set[JobName]:
    """Return the jobs that have a record, so that they need not run again; failed jobs are not among them."""
    return {record.job for record in records if not isinstance(record, Run | Failure)}


def lost_jobs(records: Iterable[Record]) -> list[Failure]:
    """Return the last failure of each job that has no record, also not from a later start."""
    kept = list(records)
    last = {record.job: record for record in kept if isinstance(record, Failure)}
    return [record for job, record in last.items() if job not in done_jobs(kept)]


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON file, whole or not at all."""
    write_file(path, (json.dumps(value, allow_nan=False, indent=1) + "\n").encode())


def _split(path: Path) -> tuple[bytes, bytes]:
    data = _unpack(path) if path.suffix == ".gz" else path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _unpack(path: Path) -> bytes:
    """Unpack a file. Raises ResultsError if it is broken, or unpacks to more bytes than results ever do."""
    size = path.stat().st_size
    most = zips.most(size)
    try:
        with gzip.open(path) as packed:
            data: bytes = packed.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ResultsError(f"{path}: not a whole file of gzip ({error}); pack the results again") from None
    if len(data) > most:
        raise ResultsError(
            f"{path}: {size:,} bytes unpack to more than {most:,}, which no results do; unpack it yourself"
        )
    return data


def _parse_lines(path: Path, complete: bytes) -> Iterator[Record | None]:
    for number, line in enumerate(complete.splitlines(), start=1):
        try:
            yield parse_line(line)
        except ResultsError as error:
            raise ResultsError(f"{path}:{number}: {error}") from None


CELL = "framework cell"
"""An old kind of record: a framework on a workload in one process; now `time` with other records beside it."""
_BASE = "eager"
_TIMES = (
    "build", "first", "calls_per_block", "warmup", "steady", "blocks", "stream", "compiles", "compile_seconds",
    "useful", "computed", "whole",
)  # fmt: skip
_PARITY = ("output_error", "gradient_error", "tolerance")


def upgrade(value: Any) -> Any:
    """Return the JSON value of a line in the form that this version writes."""
    if not isinstance(value, Mapping) or value.get("kind") != CELL:
        return value
    head = {name: field for name, field in value.items() if name not in ("arms", "version", "cache", "kind")}
    head.setdefault(_BASE, next(iter(value["arms"]), None))
    times = {mode: _only(row, _TIMES) for mode, row in value["arms"].items()}
    line = {**head, "kind": "time", "arms": times, "cache": value["cache"], "clock": "wall"}
    return {**line, "beside": list(_beside(head, value))}


def _beside(head: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    place = {name: head[name] for name in ("schema", "workload", "size", "arm", _BASE) if name in head}
    rows = value["arms"]
    agree = all(row["status"] in ("ok", "unsupported") for row in rows.values())
    parity = {mode: {"output_error": None, "gradient_error": None, "tolerance": 0.0, **_only(row, _PARITY)}
              for mode, row in rows.items()}  # fmt: skip
    yield {**place, "kind": "parity", "agree": agree, "arms": parity, "same_graph": None, "kernel_calls": {}}
    if value["cache"] == "warm":
        return
    told = {
        mode: {**_only(row, ("breaks", "limits")), "made": row.get("compilations", [])} for mode, row in rows.items()
    }
    yield {**place, "kind": "compilations", "version": value["version"], "arms": told}
    memory = {mode: {**_only(row, ()), "peak": row.get("peak") or 0, "held": row.get("held") or 0}
              for mode, row in rows.items()}  # fmt: skip
    if any(row["peak"] for row in memory.values()):
        yield {**place, "kind": "memory", "arms": memory, "counted": "malloc"}


def _only(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in ("status", "reason", *names) if name in row}
