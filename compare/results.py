"""The results file: append-only JSON lines, one line per finished job, as `schema` says.

A line counts once its newline is written. What a killed run left after the last newline is ignored when the
file is read, and cut away when the run is resumed, so that the next line starts clean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, TypeAlias

from compare import schema
from compare.errors import ResultsError
from compare.files import write_atomic

RESULTS = "results.jsonl"
VERDICTS = "verdicts.json"
DEEPEST = 64
"""No record of ours is nested as deep as this; what is deeper would end what reads it by recursion."""

Record: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]

_KEY = ("kind", "workload", "size", "lengths", "comparison", "process", "claim")


def silent(_: str) -> None:
    """A notice that nobody reads."""


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Add one line, flushed to the disk, or none at all.

    Raises ValueError for NaN and infinity, and ResultsError where the disk does not take it, as when it is full.
    """
    line = json.dumps({"schema": schema.VERSION, **record}, allow_nan=False, separators=(",", ":")) + "\n"
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            _write_all(file, line.encode())
            os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):  # what is cut off here is cut away when the run is resumed
                file.truncate(before)
            raise ResultsError(f"{path}: {error.strerror}; make room, then go on with --resume") from error


def create(path: Path) -> None:
    """Make an empty file, if there is none, whose name survives a loss of power as its lines do."""
    path.touch()
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: Path, notice: Callable[[str], None] = silent, *, strict: bool = False) -> list[Record]:
    """Every complete line, in order; `notice` hears of a cut-off last line, which is ignored.

    Raises ResultsError naming the file, the line and what to do, where a line is not ours or of another version,
    or, if `strict`, breaks the schema.
    """
    complete, rest = _split(path)
    if rest:
        notice(f"{path}: the last line is cut off and was ignored; its job has no result")
    return list(_parsed(path, complete, strict))


def repair(path: Path) -> bool:
    """Cut away an incomplete last line. Returns whether there was one."""
    complete, rest = _split(path)
    if rest:
        os.truncate(path, len(complete))
    return bool(rest)


def key(job: Mapping[str, Any]) -> Key:
    """What tells one job from another; the same for a job and for the record it left."""
    return tuple(job.get(field) for field in _KEY)


def done_jobs(records: Iterable[Mapping[str, Any]]) -> set[Key]:
    """The keys of the jobs that need not run again; a job that failed is not among them."""
    return {key(r) for r in records if r["kind"] not in ("run", "failure")}


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_atomic(path, (json.dumps(value, allow_nan=False, indent=1) + "\n").encode())


def _write_all(file: FileIO, data: bytes) -> None:
    """Write it all: a disk that is nearly full takes a part first, and says so at the next write."""
    while data:
        data = data[file.write(data) :]


def _split(path: Path) -> tuple[bytes, bytes]:
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _parsed(path: Path, complete: bytes, strict: bool) -> Iterator[Record]:
    for number, line in enumerate(complete.splitlines(), start=1):
        try:
            yield _checked(json.loads(line, parse_constant=_refused), strict)
        except ResultsError as error:
            raise ResultsError(f"{path}:{number}: {error}") from None
        except (ValueError, RecursionError):
            raise ResultsError(f"{path}:{number}: {_foreign('no JSON')}") from None


def depth_of(value: Any) -> int:
    """How deep a JSON value is nested, found without recursion."""
    depth, level = 0, [value]
    while level:
        level = [inner for one in level if isinstance(one, (dict, list))
                 for inner in (one.values() if isinstance(one, dict) else one)]  # fmt: skip
        depth += bool(level)
    return depth


def _checked(record: Any, strict: bool) -> Record:
    if depth_of(record) > DEEPEST:
        raise ResultsError(_foreign(f"nested more than {DEEPEST} deep"))
    if not isinstance(record, dict) or "schema" not in record or not isinstance(record.get("kind"), str):
        raise ResultsError(_foreign("no schema or kind"))
    if record["schema"] != schema.VERSION:
        raise ResultsError(
            f"schema version {record['schema']!r}, and this graphduel reads version {schema.VERSION}; "
            "use the graphduel that wrote it, or choose another folder with --out"
        )
    if strict and (problem := schema.violation(record)):
        raise ResultsError(_foreign(f"{record['kind']}: {problem}"))
    return record


def _foreign(reason: str) -> str:
    return f"not a line of graphduel results ({reason}); move the file away, or choose another folder with --out"


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
