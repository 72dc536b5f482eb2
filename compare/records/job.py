"""A job: the measurement that one worker process makes, sent to it as JSON, and every kind of record that it may make.

The table of kinds is for workers, results and schema. It names the function that measures each kind as a string and
does not import it, so that this package does not depend on the code that measures. A claim outside this package
registers the kind of its check when the claim is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any

from compare.records.cells import (
    Compilations,
    Crossover,
    CrossoverMemory,
    Glimpse,
    Ladder,
    Ledger,
    Lengths,
    LengthsProbe,
    Memory,
    Parity,
    Parts,
    SourceLines,
    Threads,
    Time,
)
from compare.records.checks import Edits, Faults, Gradients, Programs, Prototypes, Selftest, TrialMemory, TrialTime
from compare.records.own import (
    Bisection,
    CallParts,
    CompileTrace,
    CountedPrograms,
    EngineGraphs,
    FunctionFault,
    FunctionGraph,
    FunctionLook,
    FunctionMemory,
    RewriteHints,
    ShapePolicies,
)
from compare.records.record import Bare, Cell, Failure, JobName, Kind, Run


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
    framework's eager mode; None means our engines. `asked` are the arguments of a job without a source, as the plan for
    a user's function (`compare.plans.comparison`). `variables` are environment variables of its worker, and `python` is
    its interpreter, "" for that of this process. `thin` is the number of examples taken of a stream
    (`compare.instruments.parity`), with the memory of all modes counted in one process; 0 takes all. `threads` is how
    many threads, on as many cores, its worker computes with. `title` is the user's name for the job, if `name` does not
    tell it from others.
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
    threads: int = 1
    examples: tuple[int, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
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


# Kinds ----------------------------------------------------------------------------------------------------------------


ELSEWHERE, FIRST = "elsewhere", "first"
"""Keys of `typical` for jobs in a framework, in place of a size: a process there compiles for long, and the first one,
which finds no compiled code, for longer."""

_TABLE = (
    # the run itself
    Kind(Run),
    Kind(Failure),
    Kind(Bare, "compare.run.environment:measure"),
    # instruments
    Kind(
        Time,
        "compare.instruments.timing:measure",
        of_subject="compare.own.measure:measure",
        typical={"": 1.8, "medium": 2.2, "large": 3.0, ELSEWHERE: 8.0, FIRST: 16.0},
    ),
    Kind(Ladder, "compare.instruments.ladder:measure", counts=True, typical={"small": 1.7, "": 3.5}),
    Kind(Threads, "compare.instruments.ladder:measure_threads", typical={"small": 1.4, "": 2.5}, all_cores=True),
    Kind(Parts, "compare.instruments.parts:measure", typical={"": 2.5}),
    Kind(Crossover, "compare.instruments.crossover:measure", typical={"coarse": 2.5, "": 18.0}),
    Kind(CrossoverMemory, "compare.instruments.crossover:measure_memory", counts=True),
    Kind(Lengths, "compare.instruments.lengths:measure", typical={"small": 2.2, "": 9.0}),
    Kind(LengthsProbe, "compare.instruments.trace:measure"),
    Kind(SourceLines, "compare.instruments.ledger:measure_source_lines"),
    Kind(
        Memory,
        "compare.instruments.memory:measure",
        by_mode=True,
        counts=True,
        typical={"": 2.2, "medium": 2.8, "large": 3.0},
    ),
    Kind(Ledger, "compare.instruments.ledger:measure", by_mode=True, counts=True, typical={"small": 1.4, "": 2.2}),
    Kind(Parity, "compare.instruments.parity:measure", timed=False, typical={"": 1.2}),
    Kind(Compilations),
    Kind(Glimpse),
    # checks of claims
    Kind(Programs, "compare.instruments.programs:measure", everywhere=True, typical={"": 23.0}),
    Kind(Gradients, "compare.claims.c2_gradients:measure", everywhere=True, timed=False, typical={"": 3.0}),
    Kind(Faults, "compare.claims.c3_debugging:measure", everywhere=True, timed=False, typical={"": 2.5}),
    Kind(Prototypes, "compare.claims.c7_prototyping:measure", everywhere=True),
    Kind(Edits, "compare.claims.c8_structure:measure", everywhere=True, typical={"": 3.5}),
    # functions of a user's
    Kind(CallParts),
    Kind(Bisection),
    Kind(CompileTrace),
    Kind(ShapePolicies),
    Kind(RewriteHints),
    Kind(EngineGraphs),
    Kind(FunctionFault),
    Kind(FunctionLook, "compare.own.measure:measure"),
    Kind(FunctionGraph, "compare.own.graph:measure"),
    Kind(FunctionMemory, "compare.own.graph:measure_memory"),
    # advice, and the selftest
    Kind(CountedPrograms, "compare.advice.counting:measure"),
    Kind(TrialTime, "compare.selftest.trials:measure_time"),
    Kind(TrialMemory, "compare.selftest.trials:measure_memory", counts=True),
    Kind(Selftest),
)

_registered = {kind.name: kind for kind in _TABLE}
KINDS: Mapping[str, Kind] = MappingProxyType(_registered)
"""Every kind that this process knows, by name."""


def register(kind: Kind) -> None:
    """Add a kind to `KINDS`. Raises ValueError if another record type has the same name."""
    if _registered.setdefault(kind.name, kind).type is not kind.type:
        raise ValueError(f"a kind of record is called {kind.name!r} already; give the new one another tag")
