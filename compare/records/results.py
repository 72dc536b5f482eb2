"""The results file, version 1: append-only JSON lines, one line per finished job, parsed here and nowhere else.

A line is one JSON object with `schema`, the version, `kind`, and the fields of the type of that kind
(`compare.records.kinds`). A field may be added without a new version; a line of a kind that is not known is left alone.

A line counts once its newline is written. What a killed run left after the last newline is ignored when the
file is read, and cut away when the run is resumed, so that the next line starts clean.

A file that is kept may be packed by gzip: it is a sixth as long.

Lines of kinds that earlier versions wrote, as lines of today's: an old report opens as it did.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

from compare.errors import CompareError, ResultsError
from compare.records.kinds import KINDS
from compare.records.record import Failure, JobName, Record, Run
from graphs import archive
from graphs.files import write_file

RESULTS = "results.jsonl"
PACKED = f"{RESULTS}.gz"
VERDICTS = "verdicts.json"
FRAMEWORKS = "frameworks.json"
VERSION = 1


def silent(_: str) -> None:
    """A notice that nobody reads."""


def to_json(record: Record) -> dict[str, Any]:
    """A record as the JSON value of its line."""
    return {"schema": VERSION, **msgspec.to_builtins(record)}


def encode(record: Record) -> bytes:
    """A line. Raises ValueError for NaN and infinity."""
    return (json.dumps(to_json(record), allow_nan=False, separators=(",", ":")) + "\n").encode()


def parse_line(line: bytes) -> Record | None:
    """The record that a line holds, None where its kind is not known.

    Raises ResultsError where a line is not ours, of another version, or has not the fields of its kind.
    """
    try:
        value = json.loads(line, parse_constant=_refuse_constant)  # msgspec's own reader knows no halves of characters
    except (ValueError, RecursionError) as error:
        raise _unknown_format(error) from None
    return of_json(value)


def of_json(value: Any) -> Record | None:
    """The record of the JSON value of a line, as `parse_line` gives and refuses it."""
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
    """What every line has."""

    schema: Any
    kind: str


def valid(record: Record) -> Record:
    """The record of what was just measured. Raises CompareError where no line may hold it: then no file is to blame."""
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
    """A record as the last of those that its worker found, each of which is then a line of its own.

    It comes last, since it tells that its job is done: a run that is killed between them does the job again.
    """
    others = [other for line in record.beside if (other := of_json(line)) is not None]
    record.beside = []
    for other in others:
        other.arm, other.host, other.label = record.arm, record.host, record.label
    return [*others, record]


def append(path: Path, record: Record) -> None:
    """Add one line, flushed to the disk, or none at all.

    Raises ValueError for NaN and infinity, and ResultsError where the disk does not take it, as when it is full.
    """
    line = encode(record)
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            _write_all(file, line)
            os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):  # what is cut off here is cut away when the run is resumed
                file.truncate(before)
            raise ResultsError(f"{path}: {error.strerror}; make room, then go on with --resume") from error


def has_some(directory: Path) -> bool:
    """Whether a directory holds the results of a run. Raises ResultsError where a file of that name is none of ours."""
    path = directory / RESULTS
    if not path.exists():
        return False
    read(path)
    return True


def replace(path: Path, records: Iterable[Record]) -> None:
    """Write a file that holds these records, in the place of an earlier one.

    Raises ValueError for NaN and infinity, and ResultsError where the disk does not take it.
    """
    try:
        write_file(path, b"".join(map(encode, records)))
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}; make room, or choose another folder") from error


def create(path: Path) -> None:
    """Make an empty file, if there is none, whose name survives a loss of power as its lines do."""
    path.touch()
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def find_results(directory: Path) -> Path | None:
    """The results file of a folder, as it was written or packed by gzip; None where there is none.

    A packed run can be read and judged again, and not be resumed.
    """
    return next((path for path in (directory / RESULTS, directory / PACKED) if path.exists()), None)


def read(path: Path, notice: Callable[[str], None] = silent) -> list[Record]:
    """Every complete line of a known kind, in order; `notice` hears of others, and of a cut-off last line.

    Raises ResultsError naming the file, the line and what to do, as `parse_line` does.
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
    """The jobs that need not run again; one that failed is not among them."""
    return {record.job for record in records if not isinstance(record, Run | Failure)}


def lost_jobs(records: Iterable[Record]) -> list[Failure]:
    """The last failure of each job that has no record: one that a later start has made good is none."""
    kept = list(records)
    last = {record.job: record for record in kept if isinstance(record, Failure)}
    return [record for job, record in last.items() if job not in done_jobs(kept)]


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_file(path, (json.dumps(value, allow_nan=False, indent=1) + "\n").encode())


def _write_all(file: FileIO, data: bytes) -> None:
    """Write it all: a disk that is nearly full takes a part first, and says so at the next write."""
    while data:
        data = data[file.write(data) :]


def _split(path: Path) -> tuple[bytes, bytes]:
    data = _unpack(path) if path.suffix == ".gz" else path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _unpack(path: Path) -> bytes:
    """The data of a packed file, which never become more than packed results do."""
    size = path.stat().st_size
    most = archive.most(size)
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
"""A process of a framework on a workload: today times, with parity, compilations and bytes beside them."""
_BASE = "eager"
_TIMES = (
    "build", "first", "calls_per_block", "warmup", "steady", "blocks", "stream", "compiles", "compile_seconds",
    "useful", "computed", "whole",
)  # fmt: skip
_PARITY = ("output_error", "gradient_error", "tolerance")


def upgrade(value: Any) -> Any:
    """The JSON value of a line as today's version would have written it."""
    if not isinstance(value, Mapping) or value.get("kind") != CELL:
        return value
    head = {name: field for name, field in value.items() if name not in ("arms", "version", "cache", "kind")}
    head.setdefault(_BASE, next(iter(value["arms"]), None))
    times = {arm: _only(row, _TIMES) for arm, row in value["arms"].items()}
    line = {**head, "kind": "time", "arms": times, "cache": value["cache"], "clock": "wall"}
    return {**line, "beside": list(_beside(head, value))}


def _beside(head: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    place = {name: head[name] for name in ("schema", "workload", "size", "arm", _BASE) if name in head}
    rows = value["arms"]
    agree = all(row["status"] in ("ok", "unsupported") for row in rows.values())
    parity = {arm: {"output_error": None, "gradient_error": None, "tolerance": 0.0, **_only(row, _PARITY)}
              for arm, row in rows.items()}  # fmt: skip
    yield {**place, "kind": "parity", "agree": agree, "arms": parity, "same_graph": None, "kernel_calls": {}}
    if value["cache"] == "warm":
        return
    told = {arm: {**_only(row, ("breaks", "limits")), "made": row.get("compilations", [])} for arm, row in rows.items()}
    yield {**place, "kind": "compilations", "version": value["version"], "arms": told}
    memory = {arm: {**_only(row, ()), "peak": row.get("peak") or 0, "held": row.get("held") or 0}
              for arm, row in rows.items()}  # fmt: skip
    if any(row["peak"] for row in memory.values()):
        yield {**place, "kind": "memory", "arms": memory, "counted": "malloc"}


def _only(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in ("status", "reason", *names) if name in row}
