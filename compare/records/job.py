"""A job: the measurement that one worker process makes, in a form that is sent to the worker as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from compare.records.record import Cell, JobName

LENGTH_MODELS = ("rnn_text", "encoder_text")
LENGTH_DISTRIBUTIONS = ("lines", "sentences", "trees", "uniform")
"""The models that are timed on inputs of varying length, and the distributions of lengths, by name.

`compare.workloads.lengths` defines them; reading the names here loads neither models nor data.
"""


def seeded_random(words: str) -> Random:
    """Return a random generator seeded with a string; it may hold surrogates from a file name that is not text."""
    return Random(words.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Budget:
    """The length of a measurement, in seconds and in rounds of one block per mode.

    At least `rounds` in steady state are run, and more until the interval of the mean ratio of each mode to the first
    is at most `width` either way within the process. After `least` rounds, `seconds` ends this. A round is never cut,
    so blocks stay paired. `width` bounds the precision only: measuring until a difference shows would always find one.
    """

    rounds: int = 20
    least: int = 5
    seconds: float = 10.0
    block_seconds: float = 0.004
    width: float = 0.02


@dataclass(frozen=True)
class Job:
    """One cell of the experiment: a kind of measurement of a workload at a size, or a check of a claim.

    `source` says where the workload (or the check) is defined, as `module:attribute`. `modes` names the modes to
    measure side by side; empty means every mode of the workload. `memory` is the bytes the job may take beyond those of
    a fresh worker; 0 sets no limit. `lengths` names a distribution of input lengths (`compare.workloads.lengths`), and
    `examples` gives lengths directly. `comparison` is the number of a comparison in a selftest. Workers that run at
    once have different lanes, and so different cores. `mode` is a mode of a framework, which is compared with the
    framework's eager mode; None means our engines. `asked` is a user's question about a function
    (`compare.own.question`), and `variables` are environment variables of its worker. `thin` is the number of examples
    taken of a stream (`compare.instruments.parity`), with the memory of all modes counted in one process; 0 takes all.
    `title` is the user's name for the job, if `name` does not tell it from others.
    """

    kind: str
    workload: str | None = None
    size: str | None = None
    process: int | None = None
    claim: str | None = None
    lengths: str | None = None
    comparison: int | None = None
    mode: str | None = None
    source: str = ""
    seed: int = 0
    modes: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    memory: int = 0
    lane: int = 0
    thin: int = 0
    examples: tuple[int, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """Make the job from the values that `to_dict` returned."""
        tuples = {name: tuple(values[name]) for name in ("modes", "examples")}
        nested = {**tuples, "budget": Budget(**values["budget"])}
        return cls(**{**values, **nested})

    @property
    def name(self) -> JobName:
        """The fields that tell the job from others."""
        return JobName(**{name: getattr(self, name) for name in JobName.__struct_fields__})

    @property
    def head(self) -> dict[str, Any]:
        """The fields of `name` that are set, without the kind: the first fields of the job's record."""
        return self.name.fields

    @property
    def cell(self) -> Cell:
        """The workload and size of the job."""
        return Cell(str(self.workload), str(self.size))

    @property
    def label(self) -> str:
        """The name of the job for people, as `time rnn_text/small, process 2`."""
        cell = str(self.cell) if self.workload else str(self.claim or self.size or "")
        cell += f", {self.lengths}" if self.lengths else ""
        cell += "" if self.comparison is None else f", comparison {self.comparison}"
        process = "" if self.process is None else f", process {self.process}"
        mode = f", {self.mode}" if self.mode else ""
        return f"{self.kind} {cell}{mode}{process}".strip().replace(" ,", ",")

    def random(self) -> Random:
        """Return the job's own random generator: the same job draws the same orders in every run with one seed."""
        return seeded_random(f"{self.seed}/{self.workload}/{self.size}/{self.process}{self.lengths or ''}")
