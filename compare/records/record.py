"""What a record is: what a job has left, of one kind, as a line of a results file holds it; times in s, sizes in bytes.

The types of the kinds are in the other modules here, and `compare.records.kinds` lists them. A field that is at its
default is not written, and a field may be added with a default without a new version of the file.

Here are the start of a run, and a job that left no result; and a record as a notebook shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from msgspec import Meta, Struct, to_builtins

Status = Literal["ok", "unsupported", "disagree", "failed"]
"""How an arm came out."""
WRITTEN = "as-written"
"""The mode in which a file compiles what it compiles by itself."""
DYNAMIC = "dynamic"
"""The arm of our own engines that records its graph on every run."""
Seconds = Annotated[float, Meta(ge=0, le=1e300)]
Block = Annotated[float, Meta(gt=0, le=1e300)]
"""Seconds of which ratios are taken."""


class Cell(NamedTuple):
    """One workload at one size."""

    workload: str
    size: str

    def __str__(self) -> str:
        return f"{self.workload}/{self.size}"

    @property
    def title(self) -> str:
        """`rnn_text (small)`, as sentences have it."""
        return f"{self.workload} ({self.size})"


class JobName(Struct, frozen=True, omit_defaults=True):
    """What tells one job from another.

    `arm` is that of a framework, which is compared with the framework's eager one; null where our engines are measured.
    """

    kind: str
    workload: str | None = None
    size: str | None = None
    lengths: str | None = None
    comparison: int | None = None
    process: int | None = None
    claim: str | None = None
    arm: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """Those that the job has but for its kind: with them the record of the job begins."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__[1:]}
        return {name: value for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        return " ".join(map(str, (self.kind, *self.fields.values())))


class Blas(Struct):
    """The linear algebra that NumPy was built with, and the libraries of it that are loaded."""

    name: str | None = None
    version: str | None = None
    loaded: list[dict[str, str | int | None]] = []


class Environment(Struct):
    """What it takes to judge a number (`compare.run.environment`); null where the system does not tell.

    `power` is "mains" or "battery"; null also where there is no battery. `layout` are the bytes by which a worker's
    heap and environment were moved (`compare.run.environment`).
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


class Record(Struct, kw_only=True, omit_defaults=True, tag_field="kind"):
    """What every line may have beside the fields of its kind.

    What a worker measured has the `seed` of its orders, the `environment` of the worker, and `startup`: from its start
    until it and both engines were loaded. `host` is the same for all that was measured on one host
    (`compare.records.machines.label`). `arm` is that of a framework that was measured, null for our engines. `ended` is
    what the worker still did once it had answered, where it did not come to its end and was ended. `label` is what its
    job was called where the name does not tell it from others.
    """

    arm: str | None = None
    host: str | None = None
    seed: int | None = None
    environment: Environment | None = None
    startup: float | None = None
    ended: str | None = None
    label: str | None = None
    beside: list[dict[str, Any]] = []

    @property
    def job(self) -> JobName:
        """The job that has left it."""
        named = {name: getattr(self, name, None) for name in JobName.__struct_fields__[1:]}
        return JobName(kind_of(type(self)), **named)

    def _repr_html_(self) -> str:
        return _html(self, str(self.job))


class Arm(Struct, omit_defaults=True):
    """An arm: how it came out, and why where that is not well."""

    status: Status
    reason: str | None


class OfComparison(Record, kw_only=True):
    """A record of what was compared; `eager` is the arm of a framework that compiles nothing, null of our engines."""

    eager: str | None = None

    @property
    def base(self) -> str:
        """The arm that the others are compared with."""
        return self.eager or DYNAMIC


class OfCell(OfComparison):
    """A record of a cell."""

    workload: str
    size: str

    @property
    def cell(self) -> Cell:
        """What was measured."""
        return Cell(self.workload, self.size)


class OfArms(OfCell):
    """A record of the arms of a cell."""

    arms: Mapping[str, Any]

    def add(self, refused: Mapping[str, Arm]) -> None:
        """Add a row for each arm that was refused at the gate."""
        self.arms = {**self.arms, **refused}


Setting = str | int | float | bool | list[str] | None
OWN = "own"
"""What the preset of a user's own function is called in the settings of its run."""


MODELS = "models"
"""What the preset of the suite of real models is called there."""


class Run(Record, tag="run"):
    """The start of a run, or of a resumed one; `at` is ISO 8601, in UTC."""

    run: str
    at: str
    settings: dict[str, Setting]

    @property
    def is_own(self) -> bool:
        """Whether it measured a function of the user's, and not the suite."""
        return self.settings.get("preset") == OWN

    @property
    def is_of_models(self) -> bool:
        """Whether it measured real models, and not our workloads."""
        return self.settings.get("preset") == MODELS


def options_of(settings: Mapping[str, Setting]) -> list[str]:
    """The options of `graphduel run` that ask for what a run of our workloads or of real models measures."""
    preset = settings.get("preset")
    words = ["--suite", MODELS] if preset == MODELS else [f"--{preset}"] if preset else []
    usual = {"device": "cpu", "frameworks": settings.get("frameworks") if preset == MODELS else None}
    for name in ("only", "claim", "frameworks", "device", "modes", "against"):
        value = settings.get(name)
        if value and value != usual.get(name):
            words += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    return words


class Failure(Record, tag="failure"):
    """A job that left no result; it `overran` where it was ended at its limit of time."""

    job: JobName
    error: str
    overran: bool = False


def error_of(record: Record) -> str | None:
    """What went wrong, where a job left no result."""
    return record.error if isinstance(record, Failure) else None


class Bare(Record, tag="environment"):
    """The environment of a worker, and nothing that it has measured."""


Records = Sequence[Record]
R = TypeVar("R", bound=Record)
T = TypeVar("T")
K = TypeVar("K")


def kind_of(type: type[Record]) -> str:
    """The name of a kind, as lines have it."""
    return str(type.__struct_config__.tag)


def records_of(records: Iterable[Record], type: type[R]) -> list[R]:
    """The records of one kind."""
    return [record for record in records if isinstance(record, type)]


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items that share a key, by it, in their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class Kind(NamedTuple):
    """A kind of record, and who makes it.

    `measure` is the `module:function` that a worker calls with the job, and `of_question` what it calls where the job
    has no source, but what a user asks. With `by_arm` each arm has a process of its own. Where nothing is `timed`, jobs
    may run side by side on the cores that there are. Where the job `counts`, to the last byte, its memory lies as it
    lies. The check of a claim that is made `everywhere` is made for each framework of a run too: `job.arm` is then a
    mode of it. A worker with `all_cores` keeps those that the run has. `typical` are the seconds of a job in runs on
    one machine, by size, and under "" of other sizes. Only their proportions matter.
    """

    type: type[Record]
    measure: str = ""
    of_question: str = ""
    by_arm: bool = False
    timed: bool = True
    counts: bool = False
    everywhere: bool = False
    typical: Mapping[str, float] = {"": 2.0}
    all_cores: bool = False

    @property
    def name(self) -> str:
        """As lines have it."""
        return kind_of(self.type)


# A record as a table of HTML: a row a field, fields of fields beside each other ---------------------------------


_FEW = 4
"""Lists of more numbers are said by their number and median."""


def _html(record: Struct, head: str) -> str:
    """The table of the fields that a record has, under a caption; an environment is left to be asked for."""
    from graphs.plain import escape_html  # which loads NumPy: help prints without it

    rows = "".join(
        f"<tr><th>{escape_html(name)}</th><td>{escape_html(value)}</td></tr>"
        for name, value in _rows("", to_builtins(record))
        if name.partition(" ")[0] != "environment"
    )
    return f"<table><caption>{escape_html(head)}</caption>{rows}</table>"


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
