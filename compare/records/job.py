"""A job: what one worker process is asked to measure, as it travels to the worker and back in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from compare.records.record import Cell, JobName


def seeded_random(words: str) -> Random:
    """A generator that begins with these words; a file's name in them may be bytes that are no text."""
    return Random(words.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Budget:
    """How long to measure, in seconds and in rounds of one block per arm.

    `rounds` in steady state are wanted, and more until the mean ratio of each arm to the first is known to `width`
    either way within the process. `seconds` bounds that once `least` rounds are done. A round is never cut, so blocks
    stay paired. `width` is about precision alone: to measure until a difference shows would find one in the end.
    """

    rounds: int = 20
    least: int = 5
    seconds: float = 10.0
    block_seconds: float = 0.004
    width: float = 0.02


@dataclass(frozen=True)
class Job:
    """One cell of the experiment: a kind of measurement of a workload at a size, or a check of a claim.

    `source` says where the workload (or the check) is defined, as `module:attribute`; `arms` names what to
    measure side by side, every arm of the workload when empty. `memory` is how many bytes the job may take beyond
    those of a worker that has just started; 0 sets no limit. `lengths` names the lengths of the inputs, where a job
    chooses them (`compare.workloads.lengths`), and `examples` are lengths that it is given.
    `comparison` is the number of that of a selftest. Workers that run at once have different lanes, and so different
    cores. `arm` is that of a framework, which is compared with the framework's eager one; without it our engines are
    measured. `asked` is what a user asks about a function (`compare.own.question`), and `variables`
    are those of the environment that its worker starts with. A `thin` job takes so many examples of a stream
    (`compare.instruments.sample`), and counts the memory of all arms in one process; 0 is a whole one. `title` is what
    the user calls it, where its name does not tell it from others.
    """

    kind: str
    workload: str | None = None
    size: str | None = None
    process: int | None = None
    claim: str | None = None
    lengths: str | None = None
    comparison: int | None = None
    arm: str | None = None
    source: str = ""
    seed: int = 0
    arms: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    memory: int = 0
    lane: int = 0
    thin: int = 0
    examples: tuple[int, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """The job that `to_dict` wrote."""
        tuples = {name: tuple(values[name]) for name in ("arms", "examples")}
        nested = {**tuples, "budget": Budget(**values["budget"])}
        return cls(**{**values, **nested})

    @property
    def name(self) -> JobName:
        """What tells it from others."""
        return JobName(**{name: getattr(self, name) for name in JobName.__struct_fields__})

    @property
    def head(self) -> dict[str, Any]:
        """The fields that name the job, as the record of its kind begins."""
        return self.name.fields

    @property
    def cell(self) -> Cell:
        """The workload at the size that it is about."""
        return Cell(str(self.workload), str(self.size))

    @property
    def label(self) -> str:
        """What a person calls the job: `time rnn_text/small, process 2`."""
        cell = str(self.cell) if self.workload else str(self.claim or self.size or "")
        cell += f", {self.lengths}" if self.lengths else ""
        cell += "" if self.comparison is None else f", comparison {self.comparison}"
        process = "" if self.process is None else f", process {self.process}"
        arm = f", {self.arm}" if self.arm else ""
        return f"{self.kind} {cell}{arm}{process}".strip().replace(" ,", ",")

    def random(self) -> Random:
        """The job's own generator: the same job draws the same orders in every run of one seed."""
        return seeded_random(f"{self.seed}/{self.workload}/{self.size}/{self.process}{self.lengths or ''}")
