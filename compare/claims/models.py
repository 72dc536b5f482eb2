"""What each real model took in each compiled arm of a framework, beside its eager arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compare.claims import CLAIMS, Verdict
from compare.claims import evidence as frameworks
from compare.claims.crossover import BreakEven, break_even, course
from compare.claims.evidence import Evidence, cells, steady
from compare.engines import Engine
from compare.records.cells import CompiledArm, Parity, Time
from compare.records.record import Record, Records, of
from compare.workloads.models import MODELS, Model, is_model

JUDGED = ("C4", "C5", "C6", "C8")
"""The claims whose rules judge what was measured of models: what their streams, steps and bytes cost."""


def judged(records: Records) -> list[Verdict]:
    """The verdicts of these claims on records of a framework."""
    return [CLAIMS[id].judge(records) for id in JUDGED]


@dataclass(frozen=True)
class ModelCosts:
    """A compiled arm of a model beside the eager one: seconds of steps and of first calls, bytes, compilations.

    `cold` and `cached` are the seconds of the first call, without and with compiled code on the disk, and `pays` and
    `pays_cached` say after how many steps compiling has paid for itself from there. `eager_peak` and `peak` are bytes
    of a step. `told` is what the compiler said of the arm in the cold process. Each is None where it is not known.
    `error` is how far outputs and gradients are off at most, scaled.
    """

    name: str
    model: Model
    eager: frameworks.ArmOfCell
    arm: frameworks.ArmOfCell
    pays: BreakEven | None
    pays_cached: BreakEven | None
    told: CompiledArm | None
    inputs: int
    shapes: int
    error: float | None

    @property
    def recompiles(self) -> int:
        """Compilations for code that had been compiled for another input: a reason is said for these alone."""
        return sum(self.reasons.values())

    @property
    def reasons(self) -> Counter[str]:
        """Why there were recompilations, and how often."""
        made = self.told.made if self.told else []
        return Counter(each.reason for each in made if not each.reason.startswith("the first call"))


def costs(records: Records, framework: Engine) -> Iterator[ModelCosts]:
    """Every compiled arm of every model that was measured in a framework, model after model."""
    own = [record for record in frameworks.of_framework(records, framework) if is_model(record.job.workload)]
    evidence = {cell.workload: cell for cell in cells(own, Time)}
    rows = list(frameworks.arms(framework, own))
    eager = {row.cell: row for row in rows if row.arm == framework.arms[0]}
    for row in rows:
        if row.arm == framework.arms[0] or row.cell not in eager:
            continue
        name = row.cell.workload
        here = evidence.get(name)
        stream = [
            arm.stream or []
            for record in of(own, Time)
            if record.workload == name and record.cache == "cold" and (arm := record.arms.get(framework.arms[0]))
        ]
        yield ModelCosts(
            name,
            MODELS[name],
            eager[row.cell],
            row,
            _pays(here, row.arm) if here else None,
            _pays(replace(here, cold=()), row.arm) if here else None,
            frameworks.told(own, row.cell, row.arm),
            inputs=len(stream[0]) if stream else 1,
            shapes=sum(call.new for call in stream[0]) if stream else 1,
            error=_error(own, row),
        )


def _pays(cell: Evidence, arm: str) -> BreakEven | None:
    ratio = cell.ratio(arm, cell.base, steady)
    timed = ratio and cell.start.of(arm) and cell.start.of(cell.base)
    return break_even(course(cell, arm), course(cell, cell.base), ratio) if ratio and timed else None


def _error(records: list[Record], row: frameworks.ArmOfCell) -> float | None:
    gates = [
        record.arms[row.arm] for record in of(records, Parity) if record.cell == row.cell and row.arm in record.arms
    ]
    errors = [error for gate in gates for error in (gate.output_error, gate.gradient_error) if error is not None]
    return max(errors, default=None)
