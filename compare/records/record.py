"""The base classes of records: a record is the result of a job, one line of a results file, in seconds and bytes.

The types of the kinds are in the other modules here, and `compare.records.job` lists them. A field at its default is
not written, and a field with a default may be added without a new version of the file.

This module also has the start of a run (`Run`), a job without a result (`Failure`), records as HTML for notebooks, and
machines: the fingerprint that must be equal for numbers to be pooled, and a label that tells hosts apart.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from msgspec import Meta, Struct, to_builtins

Status = Literal["ok", "unsupported", "disagree", "failed"]
"""The outcome of a mode."""
WRITTEN = "as-written"
"""The mode in which a user's file runs with its own calls of a compiler."""
DYNAMIC = "dynamic"
"""The mode of our own engines that records its graph on every run."""
Seconds = Annotated[float, Meta(ge=0, le=1e18)]
"""A duration, below the age of the universe: sums, ratios and margins of an axis stay far inside what floats hold."""
Block = Annotated[float, Meta(ge=1e-18, le=1e18)]
"""Seconds of a block, above 0, since ratios are taken of them."""

LENGTH_MODELS = ("rnn_text", "encoder_text")
LENGTH_DISTRIBUTIONS = ("lines", "sentences", "trees", "uniform")
"""The models that are timed on inputs of varying length, and the distributions of lengths, by name.

`compare.workloads.lengths` defines them; reading the names here loads neither models nor data.
"""


class Cell(NamedTuple):
    """One workload at one size."""

    workload: str
    size: str

    def __str__(self) -> str:
        return f"{self.workload}/{self.size}"

    @property
    def title(self) -> str:
        """The name of the cell in sentences, as `rnn_text (small)`."""
        return f"{self.workload} ({self.size})"


FORMER = {"mode": "arm", "modes": "arms"}
"""The fields that keep the name of the first version in a file, so that older files and their readers stay good."""


class JobName(Struct, frozen=True, omit_defaults=True, rename=FORMER):
    """The fields that tell one job from another.

    `mode` is a mode of a framework, which is compared with the framework's eager mode; null for our engines.
    """

    kind: str
    workload: str | None = None
    size: str | None = None
    lengths: str | None = None
    comparison: int | None = None
    process: int | None = None
    claim: str | None = None
    mode: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that are set, without the kind; the record of the job begins with them."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__[1:]}
        return {name: value for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        return " ".join(map(str, (self.kind, *self.fields.values())))


class Blas(Struct):
    """The linear algebra library that NumPy was built with, and the loaded libraries of this kind."""

    name: str | None = None
    version: str | None = None
    loaded: list[dict[str, str | int | None]] = []


class Environment(Struct):
    """The machine, software and settings of a process (`compare.run.environment`); a field is null if unknown.

    `power` is "mains" or "battery"; null also for a machine without a battery. `layout` is the bytes by which a
    worker's heap and environment were moved.
    """

    cpu: str | None = None
    cores: int | None = None
    logical_cores: int | None = None
    governor: str | None = None
    memory: int | None = None
    system: str | None = None
    machine: str | None = None
    python: str | None = None
    numpy: str | None = None
    blas: Blas | None = None
    versions: dict[str, str] = {}
    commit: str | None = None
    affinity: list[int] | None = None
    threads: dict[str, str] = {}
    malloc: dict[str, str] = {}
    hash_seed: str | None = None
    gc: str | None = None
    tape: Literal["compiled", "python"] | None = None
    gpu: str | None = None
    load: float | None = None
    power: str | None = None
    layout: tuple[int, int] | None = None


class Record(Struct, kw_only=True, omit_defaults=True, tag_field="kind", rename=FORMER):
    """The base of all records: the fields that every line may have beside the fields of its kind.

    A measurement has the `seed` of its random orders, the `environment` of the worker, and `startup`, the seconds until
    the worker and both engines were loaded. `host` is a label of the host (`host_label`). `mode` is the measured mode
    of a framework, null for our engines. `ended` says what a worker was doing when it had answered but did not exit and
    was stopped. `threads` is how many threads the worker computed with. `label` is the name of the job for people, if
    `job` does not tell it from others. `beside` holds further records of the same worker.
    """

    mode: str | None = None
    host: str | None = None
    seed: int | None = None
    environment: Environment | None = None
    startup: float | None = None
    ended: str | None = None
    threads: int = 1
    label: str | None = None
    beside: list[dict[str, Any]] = []

    @property
    def job(self) -> JobName:
        """The name of the job that made the record."""
        named = {name: getattr(self, name, None) for name in JobName.__struct_fields__[1:]}
        return JobName(kind_of(type(self)), **named)

    def _repr_html_(self) -> str:
        from graphs.errors import escape_html  # imported here, since it loads NumPy, which help does not need

        rows = "".join(
            f"<tr><th>{escape_html(name)}</th><td>{escape_html(value)}</td></tr>"
            for name, value in _rows("", _plain_fields(self))
            if name.partition(" ")[0] != "environment"
        )
        return f"<table><caption>{escape_html(str(self.job))}</caption>{rows}</table>"


class ModeRow(Struct, omit_defaults=True):
    """The row of a mode: its status, and the reason if that is not ok."""

    status: Status
    reason: str | None


class OfComparison(Record, kw_only=True):
    """A record with compared modes; `eager` is the framework's mode that compiles nothing, null for our engines."""

    eager: str | None = None

    @property
    def base(self) -> str:
        """The mode with which the others are compared."""
        return self.eager or DYNAMIC


class OfCell(OfComparison):
    """A record of one cell: a workload at a size."""

    workload: str
    size: str

    @property
    def cell(self) -> Cell:
        """The workload and its size."""
        return Cell(self.workload, self.size)


NAME = r"[\w-]+"
"""The pattern of a mode's name, in ASCII."""
_NAMED = re.compile(rf"({NAME})=.*", re.ASCII | re.DOTALL)


def label(mode: str) -> str:
    """Return the name that records have for a mode: NAME of `NAME=WORD` (`compare.engines.words`), else its own."""
    named = _NAMED.fullmatch(mode)
    return named[1] if named else mode


class OfModes(OfCell):
    """A record with a row for each mode of a cell."""

    modes: Mapping[str, Any]

    def label_rows(self) -> None:
        """Name the rows of modes that a user has defined as the user does."""
        self.modes = {label(mode): row for mode, row in self.modes.items()}

    def add(self, refused: Mapping[str, ModeRow]) -> None:
        """Add a row for each mode that was refused at the parity gate."""
        self.modes = {**self.modes, **refused}


Setting = str | int | float | bool | list[str] | None
OWN = "own"
"""The preset of runs of a user's own function, in their settings."""


MODELS = "models"
"""The preset of runs of the suite of real models, in their settings."""


class Run(Record, tag="run"):
    """The start of a run, or of resuming one; `at` is ISO 8601, in UTC."""

    run: str
    at: str
    settings: dict[str, Setting]

    @property
    def is_own(self) -> bool:
        """Whether the run measured a user's function, and not a suite."""
        return self.settings.get("preset") == OWN

    @property
    def is_of_models(self) -> bool:
        """Whether the run measured real models, and not our workloads."""
        return self.settings.get("preset") == MODELS


def options_of(settings: Mapping[str, Setting]) -> list[str]:
    """Return the options of `graphduel run` that repeat a run of our workloads or of real models."""
    preset = settings.get("preset")
    words = ["--suite", MODELS] if preset == MODELS else [f"--{preset}"] if preset else []
    usual = {"device": "cpu", "threads": 1, "frameworks": settings.get("frameworks") if preset == MODELS else None}
    for name in ("only", "claim", "frameworks", "device", "modes", "against", "threads"):
        value = settings.get(name)
        if value and value != usual.get(name):
            words += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    return words


class Failure(Record, tag="failure"):
    """A job without a result; `overran` is whether it was ended at its time limit."""

    job: JobName
    error: str
    overran: bool = False


def error_of(record: Record) -> str | None:
    """Return the error of a job without a result; None for other records."""
    return record.error if isinstance(record, Failure) else None


class Bare(Record, tag="environment"):
    """The environment of a worker, without any measurement."""


Records = Sequence[Record]
R = TypeVar("R", bound=Record)
T = TypeVar("T")
K = TypeVar("K")


def kind_of(type: type[Record]) -> str:
    """Return the name of the kind of a record type, as in the field `kind` of a line."""
    return str(type.__struct_config__.tag)


def records_of(records: Iterable[Record], type: type[R]) -> list[R]:
    """Return the records of one type, in order."""
    return [record for record in records if isinstance(record, type)]


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key, in order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class Kind(NamedTuple):
    """A kind of record: its type, the function that measures it, and how its jobs are run.

    `measure` is the `module:function` that a worker calls with the job, and `of_subject` the one for a job that has a
    plan for a user's function instead of a source. With `by_mode`, each mode has a process of its own. If `timed` is
    false, jobs may run in parallel on all cores. If the job `counts` exact bytes, the memory layout of its worker is
    not varied. With `everywhere`, the check of a claim is also made for each framework of a run; `job.mode` is then a
    mode of it. A worker with `all_cores` may use every core of the run. `typical` are the seconds of a job by size,
    with the key "" for other sizes; only their proportions matter.
    """

    type: type[Record]
    measure: str = ""
    of_subject: str = ""
    by_mode: bool = False
    timed: bool = True
    counts: bool = False
    everywhere: bool = False
    typical: Mapping[str, float] = {"": 2.0}
    all_cores: bool = False

    @property
    def name(self) -> str:
        """The name of the kind, as in the field `kind` of a line."""
        return kind_of(self.type)


# A record as a table of HTML: a row a field, fields of fields beside each other ---------------------------------


_FEW = 4
"""A list of more numbers than this is shown by its length and median."""


def _plain_fields(record: Struct) -> dict[str, Any]:
    """Return the plain values of a record's fields by their names in the code, where a line has those of `FORMER`."""
    later = {former: name for name, former in FORMER.items()}
    return {later.get(name, name): value for name, value in to_builtins(record).items()}


def _rows(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _rows(f"{prefix} {name}".strip(), inner)
    elif isinstance(value, list) and value and not all(map(_is_number, value)):
        for place, inner in enumerate(value):
            yield from _rows(f"{prefix} {place}".strip(), inner)
    elif value is not None:
        yield prefix, _value_text(value)


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > _FEW:
            return f"{len(value)} numbers, median {_value_text(median(value))}"
        return ", ".join(map(_value_text, value)) or "none"
    if not _is_number(value):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Machines -------------------------------------------------------------------------------------------------------------


Fingerprint = dict[str, Any]


def fingerprint(environment: Environment) -> Fingerprint:
    """Return the fields of an environment that decide the speed of a job; a missing field is None."""
    blas = environment.blas or Blas()
    cores = sorted({str(pool["architecture"]) for pool in blas.loaded if pool.get("architecture")})
    return {
        **{
            name: getattr(environment, name)
            for name in ("cpu", "machine", "python", "numpy", "commit", "malloc", "tape", "gpu")
        },
        "blas": [blas.name, blas.version, *cores],
    }


def machine_differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """Return each field in which two fingerprints differ, as `numpy 2.0.1 and 2.4.6`."""
    names = dict.fromkeys([*left, *right])
    return [f"{name} {left.get(name)} and {right.get(name)}" for name in names if left.get(name) != right.get(name)]


def host_label(host: str | None = None) -> str:
    """Return a label that hides a host's name, the same for the same host; by default of this host."""
    return "host-" + hashlib.sha256((host or platform.node()).encode()).hexdigest()[:8]


Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)

_gpus: list[str] = []


def note_gpu(gpu: str) -> None:
    """Remember the name of the GPU on which this process computes."""
    _gpus[:] = [gpu]


def gpu_in_use() -> str | None:
    """Return the name of the GPU on which this process computes; None for the CPU."""
    return _gpus[-1] if _gpus else None
