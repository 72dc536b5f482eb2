"""The results file: append-only JSON lines, one line per finished job, schema version 1.

A line counts once its newline is written. What a killed run left after the last newline is ignored when the
file is read, and cut away when the run is resumed, so that the next line starts clean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from compare.errors import ResultsError

SCHEMA = 1
RESULTS = "results.jsonl"
VERDICTS = "verdicts.json"

Record: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]

# What makes a line of each kind usable; fields beyond these may be added without a new schema version.
_REQUIRED: Mapping[str, Mapping[str, type]] = {
    "run": {"run": str, "at": str, "settings": dict, "environment": dict},
    "parity": {"workload": str, "size": str, "agree": bool, "arms": dict},
    "time": {"workload": str, "size": str, "process": int, "arms": dict},
    "memory": {"workload": str, "size": str, "arms": dict},
    "gradients": {"claim": str, "checks": int, "passed": int},
    "failure": {"job": dict, "error": str},
}
_KEY = ("kind", "workload", "size", "process", "claim")


def silent(_: str) -> None:
    """A notice that nobody reads."""


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Add one line in a single write, flushed to the disk. Raises ValueError for NaN and infinity."""
    line = json.dumps({"schema": SCHEMA, **record}, allow_nan=False, separators=(",", ":"))
    with path.open("ab", buffering=0) as file:
        file.write(line.encode() + b"\n")
        os.fsync(file.fileno())


def read(path: Path, notice: Callable[[str], None] = silent) -> list[Record]:
    """Every complete line, in order; `notice` hears of a cut-off last line, which is ignored.

    Raises ResultsError naming the file, the line and what to do, where a line is not ours or of another
    version.
    """
    complete, rest = _split(path)
    if rest:
        notice(f"{path}: the last line is cut off and was ignored; its job has no result")
    return list(_parsed(path, complete))


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value, allow_nan=False, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def _split(path: Path) -> tuple[bytes, bytes]:
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _parsed(path: Path, complete: bytes) -> Iterator[Record]:
    for number, line in enumerate(complete.splitlines(), start=1):
        try:
            yield _checked(json.loads(line))
        except ResultsError as error:
            raise ResultsError(f"{path}:{number}: {error}") from None
        except (ValueError, RecursionError):
            reason = "not a line of graphduel results (no JSON)"
            raise ResultsError(f"{path}:{number}: {reason}; {_REMEDY}") from None


_REMEDY = "move the file away, or choose another folder with --out"


def _checked(record: Any) -> Record:
    if not isinstance(record, dict) or "schema" not in record or not isinstance(record.get("kind"), str):
        raise ResultsError(f"not a line of graphduel results (no schema or kind); {_REMEDY}")
    if record["schema"] != SCHEMA:
        raise ResultsError(
            f"schema version {record['schema']!r}, and this graphduel reads version {SCHEMA}; "
            "use the graphduel that wrote it, or choose another folder with --out"
        )
    for field, kind in _REQUIRED.get(record["kind"], {}).items():
        if not isinstance(record.get(field), kind):
            raise ResultsError(f"a {record['kind']} line without a usable {field!r}; {_REMEDY}")
    return record
