"""The settings of a run: a preset, which says how much it measures, a seed, and the cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compare.records.cells import Time
from compare.records.job import Budget, Job
from compare.records.record import MODELS, Cell, Device, kind_of
from compare.workloads import models

GIB = 2**30


@dataclass(frozen=True)
class Tables:
    """The measurements beside the workloads: strategies for lengths, and the crossover map, in so many processes.

    `lengths` are pairs of a model and a distribution of lengths, at `size`; if empty, every model has every
    distribution (`compare.instruments.lengths`). `grid` is the name of the map's grid
    (`compare.instruments.crossover`).
    """

    lengths: tuple[tuple[str, str], ...]
    size: str
    lengths_budget: Budget
    grid: str
    grid_budget: Budget
    processes: int


@dataclass(frozen=True)
class Closer:
    """The cells of one size that are analysed: those named, or all workloads except some.

    Each has the ladder (`compare.instruments.ladder`) in `processes`; cells in `apart` also have time part by part
    (`compare.instruments.parts`) and the ledger (`compare.instruments.ledger`). Parts are small differences,
    which vary more between layouts of memory than within one: they take more processes, each shorter.
    """

    size: str
    ladder: tuple[str, ...]
    apart: tuple[str, ...]
    processes: int
    budget: Budget
    apart_processes: int
    apart_budget: Budget
    leaves_out: tuple[str, ...] = ("big_matmul",)  # a step takes so long that eight rungs of it would take hours

    def of(self, names: tuple[str, ...], chosen: Iterable[Cell]) -> list[Cell]:
        """Return the chosen cells of this size: those named, or without names all except `leaves_out`."""
        of_size = [cell for cell in chosen if cell.size == self.size]
        return [cell for cell in of_size if (cell.workload in names if names else cell.workload not in self.leaves_out)]


@dataclass(frozen=True)
class Beyond:
    """The thin measurements of a run at sizes beyond its own, to cover every regime (`compare.claims.regimes`).

    Each workload of the run, except some, is counted at the further `sizes`, and so are the cells that are timed. For
    each kind of workload at least one `timed` cell has steps of 1 MiB and more, over so many `examples` of its stream.
    """

    sizes: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    timed: tuple[Cell, ...] = ()
    examples: int = 0
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class FrameworkSettings:
    """The measurements of frameworks: the run's cells without some, and added workloads, in so many processes.

    The modes are those of the `usual` modes, or of all modes of the suite. The first process of a cell finds no
    compiled code of an earlier one. `limit` is the seconds that a mode may take for its first epoch; `timeout` is that
    of a preset, and also holds for a worker with the check of a claim.
    """

    adds: tuple[str, ...]
    leaves_out: tuple[str, ...]
    usual: bool
    processes: int
    budget: Budget
    limit: float
    timeout: float


@dataclass(frozen=True)
class Preset:
    """The extent of a run's measurements: sizes, worker processes per cell, seconds.

    A cell whose intervals stay wide gets more processes, up to `most`, while `more_seconds` last. `seconds` limits the
    rounds of all cells together, beyond each cell's minimum; sizes `beyond` the run's are measured thinly.
    `leaves_out` names workloads that are measured only when asked for. `timeout` is the seconds without progress after
    which a worker is ended (`compare.run.processes`), times the slowness of the machine (`compare.run.progress`), and
    `memory` is how many bytes a worker may take. With `models`, real models are measured one after another, and
    nothing of our own engines (`compare.workloads.models`).
    """

    sizes: tuple[str, ...]
    processes: int
    most: int
    budget: Budget
    seconds: float
    more_seconds: float
    timeout: float
    tables: Tables
    closer: Closer
    frameworks: FrameworkSettings
    leaves_out: tuple[str, ...] = ()
    beyond: Beyond | None = None
    memory: int = 8 * GIB
    models: bool = False


PRESETS: Mapping[str, Preset] = {
    "quick": Preset(
        ("small",), 4, 8, Budget(rounds=12, least=4, seconds=2.5, width=0.03), seconds=22, more_seconds=8, timeout=90,
        tables=Tables(
            (("rnn_text", "lines"),), "small", Budget(rounds=6, least=3, seconds=0.5),
            "coarse", Budget(rounds=4, least=3, seconds=0.02), processes=3,
        ),
        closer=Closer(
            "small", ("tiny_mlp", "elementwise_chain"), ("tiny_mlp", "elementwise_chain"), processes=3,
            budget=Budget(rounds=8, least=4, seconds=0.8), apart_processes=3,
            apart_budget=Budget(rounds=8, least=4, seconds=0.8),
        ),
        frameworks=FrameworkSettings(
            ("encoder_text",), ("moe_digits", "fixed_point"), usual=True, processes=4,
            budget=Budget(rounds=10, least=4, seconds=1.5, block_seconds=0.01), limit=25, timeout=300,
        ),
        leaves_out=(
            "deep_chain", "conv_digits", "lstm_text", "encoder_text", "early_exit", "decode_text", "beam_text",
        ),
        beyond=Beyond(
            ("medium", "large"), ("big_matmul",),
            (
                Cell("elementwise_chain", "medium"), Cell("mlp_digits", "large"), Cell("encoder_text", "large"),
                Cell("branch_on_sum", "large"), Cell("fixed_point", "large"),
            ),
            examples=5, budget=Budget(rounds=6, least=4, seconds=0.6),
        ),
    ),
    "full": Preset(
        ("small", "medium", "large"), 6, 12, Budget(rounds=20, least=5, seconds=20), seconds=360, more_seconds=60,
        timeout=900,
        tables=Tables(
            (), "medium", Budget(rounds=10, least=4, seconds=4),
            "fine", Budget(rounds=8, least=3, seconds=0.3), processes=3,
        ),
        closer=Closer(
            "medium", (), (), processes=3, budget=Budget(rounds=12, least=4, seconds=1.5), apart_processes=8,
            apart_budget=Budget(rounds=8, least=4, seconds=0.8),
        ),
        frameworks=FrameworkSettings(
            (), (), usual=False, processes=4,
            budget=Budget(rounds=15, least=5, seconds=6, block_seconds=0.03), limit=120, timeout=900,
        ),
    ),
}  # fmt: skip
REAL = replace(
    PRESETS["quick"],
    sizes=(models.SIZE,),
    beyond=None,
    leaves_out=(),
    models=True,
    frameworks=FrameworkSettings(
        (), (), usual=True, processes=4,
        budget=Budget(rounds=8, least=4, seconds=3, block_seconds=0.02), limit=180, timeout=600,
    ),
)  # fmt: skip
"""The preset for real models: a cold process and three more, the fewest that give an interval."""


@dataclass(frozen=True)
class Settings:
    """The settings of a user. `only` is a glob on `workload` or `workload/size`, and `claim` the id of a claim.

    With a claim the run measures only the kinds of record that the claim reads.

    With `python_tape` claims are judged by a tape in Python too. `frameworks` are measured beside our engines,
    their workloads on `device`, "cpu" or "cuda". Real models are measured in `modes`, by default the first two of a
    framework, and `against` is the folder of a run of workloads that the page compares them with. Warm steps are timed
    on so many `threads`; if these are several, each mode has a process of its own, and the clock is the wall.
    """

    preset: str = "quick"
    seed: int = 0
    processes: int = PRESETS["quick"].processes
    only: str | None = None
    claim: str | None = None
    python_tape: bool = False
    frameworks: Sequence[str] = ()
    device: Device = "cpu"
    modes: Sequence[str] = ()
    against: str | None = None
    threads: int = 1

    @property
    def limits(self) -> Preset:
        """Return the preset by its name."""
        return REAL if self.preset == MODELS else PRESETS[self.preset]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a run's first line records them."""
        return {**asdict(self), "frameworks": list(self.frameworks), "modes": list(self.modes)}

    def job(
        self, kind: str, cell: Cell, process: int | None = None, budget: Budget | None = None, sample: int = 0
    ) -> Job:
        """Return a job of that kind for a cell, with the budget of the preset unless another is given.

        With `sample` it takes so many examples of the stream.
        """
        from compare.subjects.subject import Subject  # which loads NumPy

        asked = budget or self.limits.budget
        subject = Subject.of_workload(cell, sample=sample)
        threads = self.threads if kind == kind_of(Time) else 1
        return subject.job(kind, process, seed=self.seed, budget=asked, memory=self.limits.memory, threads=threads)
