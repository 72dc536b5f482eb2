"""A typed view of the lines of results.jsonl.

The lines come from a file that anybody may have edited, so every field is converted here, once, and a line
that does not convert is counted instead of ending the report.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from compare.claims import CLAIMS
from compare.instruments import INSTRUMENTS
from compare.records.schema.violation import violation

Line = Mapping[str, Any]


class Cell(NamedTuple):
    """What was measured: a workload at one of its sizes."""

    workload: str
    size: str


class Call(NamedTuple):
    """One call of the first epoch: useful length, seconds, and whether its shape was new to the arm."""

    length: int
    seconds: float
    new: bool


@dataclass(frozen=True)
class Run:
    """The settings and the machine of one run."""

    run: str
    at: str
    settings: dict[str, Any]
    environment: dict[str, Any]


@dataclass(frozen=True)
class Timing:
    """One arm in one worker process; `blocks` are seconds a call, paired by index across arms."""

    cell: Cell
    process: int
    arm: str
    status: str
    reason: str
    build: float
    first: float
    blocks: tuple[float, ...]
    stream: tuple[Call, ...]
    compiles: int
    useful: int
    computed: int


@dataclass(frozen=True)
class Memory:
    """Bytes of one arm in one steady step: the peak over its baseline, and the same step's bytes by class."""

    cell: Cell
    arm: str
    status: str
    reason: str
    peak: int
    resident_growth: int
    classes: dict[str, int]
    nodes: int


@dataclass(frozen=True)
class Parity:
    """How far one arm's outputs and gradients were from the float64 reference, before anything was timed."""

    cell: Cell
    arm: str
    status: str
    reason: str
    output_error: float | None
    gradient_error: float | None
    tolerance: float | None
    same_graph: bool | None


@dataclass(frozen=True)
class Gradients:
    """The gradient checks made for one claim."""

    claim: str
    checks: int
    passed: int
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """A job that ended in an error."""

    job: str
    error: str


@dataclass(frozen=True)
class Table:
    """A line that claims read as it stands, and that keeps to the schema: strategies for lengths, a crossover map."""

    line: Line


@dataclass(frozen=True)
class Results:
    """Every record of a run directory, by kind; `unreadable` counts the lines that did not convert."""

    runs: tuple[Run, ...]
    timings: tuple[Timing, ...]
    memory: tuple[Memory, ...]
    parity: tuple[Parity, ...]
    gradients: tuple[Gradients, ...]
    failures: tuple[Failure, ...]
    tables: tuple[Table, ...]
    unreadable: int


def parse(lines: Iterable[Any]) -> Results:
    """The typed records of `lines` (one JSON value each), in their order."""
    records: list[Any] = []
    unreadable = 0
    for line in lines:
        try:
            records.extend(_READERS[line["kind"]](line))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            unreadable += 1

    def of(kind: type) -> tuple[Any, ...]:
        return tuple(record for record in records if isinstance(record, kind))

    return Results(of(Run), of(Timing), of(Memory), of(Parity), of(Gradients), of(Failure), of(Table), unreadable)


def _run(line: Line) -> list[Run]:
    settings, environment = dict(line["settings"]), dict(line["environment"])
    return [Run(str(line["run"]), str(line["at"]), settings, environment)]


def _timings(line: Line) -> list[Timing]:
    cell, process = _cell(line), int(line["process"])
    return [_timing(cell, process, str(arm), fields) for arm, fields in line["arms"].items()]


def _timing(cell: Cell, process: int, arm: str, fields: Line) -> Timing:
    return Timing(
        cell,
        process,
        arm,
        *_status(fields),
        build=_seconds(fields.get("build")),
        first=_seconds(fields.get("first")),
        blocks=tuple(_positive(block) for block in fields.get("blocks") or ()),
        stream=tuple(_call(call) for call in fields.get("stream") or ()),
        compiles=int(fields.get("compiles") or 0),
        useful=int(fields.get("useful") or 0),
        computed=int(fields.get("computed") or 0),
    )


def _memory(line: Line) -> list[Memory]:
    return [_memory_of(_cell(line), str(arm), fields) for arm, fields in line["arms"].items()]


def _memory_of(cell: Cell, arm: str, fields: Line) -> Memory:
    classes = {str(name): max(0, int(size or 0)) for name, size in (fields.get("classes") or {}).items()}
    peak, growth = int(fields.get("peak") or 0), int(fields.get("resident_growth") or 0)
    return Memory(cell, arm, *_status(fields), peak, growth, classes, nodes=int(fields.get("nodes") or 0))


def _parity(line: Line) -> list[Parity]:
    same = line.get("same_graph")
    return [
        Parity(
            _cell(line),
            str(arm),
            *_status(fields),
            output_error=_number(fields.get("output_error")),
            gradient_error=_number(fields.get("gradient_error")),
            tolerance=_number(fields.get("tolerance")),
            same_graph=None if same is None else bool(same),
        )
        for arm, fields in line["arms"].items()
    ]


def _gradients(line: Line) -> list[Gradients]:
    failures = tuple(str(failure) for failure in line.get("failures") or ())
    return [Gradients(str(line["claim"]), int(line["checks"]), int(line["passed"]), failures)]


def _table(line: Line) -> list[Table]:
    if problem := violation(line):
        raise ValueError(problem)
    return [Table(line)]


def _failure(line: Line) -> list[Failure]:
    job = line["job"]
    named = ", ".join(f"{key} {value}" for key, value in job.items()) if isinstance(job, Mapping) else str(job)
    return [Failure(named, str(line["error"]))]


_READERS: dict[str, Callable[[Line], list[Any]]] = {
    # what the page says of the check of a claim is the verdict on it
    **{claim.check.name: lambda _: [] for claim in CLAIMS.values() if claim.check},
    **{kind.name: _table for instrument in INSTRUMENTS for kind in instrument.kinds if kind.holds},
    "run": _run,
    "time": _timings,
    "memory": _memory,
    "parity": _parity,
    "gradients": _gradients,
    "failure": _failure,
}


def _cell(line: Line) -> Cell:
    return Cell(str(line["workload"]), str(line["size"]))


def _status(fields: Line) -> tuple[str, str]:
    return str(fields["status"]), str(fields.get("reason") or "")


def _call(fields: Line) -> Call:
    return Call(int(fields["length"]), _seconds(fields["seconds"]), bool(fields["new"]))


def _seconds(value: float | None) -> float:
    """A duration that can be plotted; what an arm does not have (no build, no first call) counts as 0."""
    seconds = float(value or 0.0)
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"not a duration: {value!r}")
    return seconds


def _positive(value: float) -> float:
    """A measured duration: ratios are taken of it, so it cannot be 0."""
    if _seconds(value) == 0.0:
        raise ValueError("a block of no duration")
    return float(value)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
