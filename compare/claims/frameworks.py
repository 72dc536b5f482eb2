"""The verdicts of a run on other frameworks: whether they agree with our engines, claim by claim, and if not, why.

The second part is `model_costs`: the costs of each real model in each compiled mode of a framework, beside its eager
mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from compare import text
from compare.claims import CLAIMS, Verdict
from compare.claims.base import OPEN, Regime, agreement
from compare.claims.evidence import (
    Evidence,
    ModeOfCell,
    cells,
    compilation_report,
    modes,
    of_framework,
    of_ours,
    steady,
)
from compare.claims.regimes import BreakEven, break_even, course
from compare.engines import Engine, find_engine, frameworks
from compare.records.cells import Compilations, CompiledRow, Memory, MemoryRow, Parity, Time
from compare.records.record import Records, records_of
from compare.stats import geometric_mean
from compare.workloads.models import MODELS, Model, is_model

Agrees = Literal["yes", "no", "cannot tell"]
_AGREES: Mapping[str, Agrees] = {"the same": "yes", "differ": "no", "open": "cannot tell"}
MOST = 4
"""The largest number of regimes that the reasons of a disagreement name."""


@dataclass(frozen=True)
class Agreement:
    """One claim on one framework: its verdict on eager and compiled, beside our verdict on dynamic and static."""

    claim: str
    framework: str
    ours: str
    theirs: str
    agrees: Agrees
    why: tuple[str, ...]


@dataclass(frozen=True)
class Outside:
    """The results of a run on a framework: the verdict on each claim, agreement with ours, and each mode's costs."""

    framework: Engine
    version: str
    verdicts: tuple[Verdict, ...]
    agreements: tuple[Agreement, ...]
    modes: tuple[ModeOfCell, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain JSON values."""
        return {
            "framework": self.framework.name,
            "version": self.version,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "agreement": [asdict(agreement) for agreement in self.agreements],
        }


def outside(records: Records, ours: Sequence[Verdict]) -> list[Outside]:
    """Judge every framework that has records by the rules of the claims, and compare with our own verdicts."""
    return [outside for name in frameworks() if (outside := _judge_framework(find_engine(name), records, ours))]


def _judge_framework(framework: Engine, records: Records, ours: Sequence[Verdict]) -> Outside | None:
    own = of_framework(records, framework)
    if not own:
        return None
    here = {verdict.claim.id: verdict for verdict in ours}
    verdicts = tuple(claim.judge(own) for claim in CLAIMS.values())
    on_gpu = any(record.environment and record.environment.gpu for record in records)
    ladder = [] if on_gpu else _ladder(framework, own, of_ours(records))  # ours ran on the CPU
    why = {"C4": ladder, "C5": _peaks(of_ours(records)), "C6": ladder}
    agreements = (
        _agreement(framework, here[v.claim.id], v, why.get(v.claim.id, ())) for v in verdicts if v.claim.id in here
    )
    version = next((record.version for record in records_of(own, Compilations)), "")
    compared = tuple(agreements) if len(framework.mode_names) > 1 else ()
    return Outside(framework, version, verdicts, compared, tuple(modes(framework, records)))


def _agreement(framework: Engine, ours: Verdict, theirs: Verdict, explained: Sequence[str]) -> Agreement:
    here, there = ours.finding.verdict, theirs.finding.verdict
    agrees = _AGREES[agreement((here, there))]
    why: tuple[str, ...] = ()
    if agrees == "cannot tell":
        reasons = (theirs if there in OPEN else ours).reasons
        why = tuple(reason for reason in reasons if reason.startswith("flagged")) or reasons[:1]
    elif agrees == "no":
        why = (*_differences(ours, theirs), *explained)
    return Agreement(ours.claim.id, framework.name, here, there, agrees, why)


def _differences(ours: Verdict, theirs: Verdict) -> Iterator[str]:
    """Yield the conditions on which two verdicts differ; without any, the first reasons of the framework's verdict."""
    here = {regime.condition: regime for regime in ours.finding.regimes}
    pairs = [(here[regime.condition], regime) for regime in theirs.finding.regimes if regime.condition in here]
    parted = [pair for pair in pairs if pair[0].verdict != pair[1].verdict]
    for ours_there, regime in parted[:MOST]:
        yield f"{regime.condition}: {_regime_text(regime)} there, {_regime_text(ours_there)} here"
    if len(parted) > MOST:
        yield f"and {len(parted) - MOST} more conditions of {len(pairs)}"
    if not parted:
        yield from theirs.reasons[:2]


def _regime_text(regime: Regime) -> str:
    return f"{regime.verdict} ({text.number(regime.value)})" if regime.value is not None else regime.verdict


def _ladder(framework: Engine, theirs: Records, ours: Records) -> list[str]:
    """Split a framework's compiled ÷ eager into the part of graph mode, measured by our engines, and of kernels.

    compiled ÷ eager = (static ÷ dynamic) x (dynamic ÷ eager) x (compiled ÷ static), over the workloads in both.
    """
    here = {cell.cell: cell for cell in cells(ours, Time)}
    factors = [factor for cell in cells(theirs, Time) if (factor := _factors(cell, here))]
    if not factors:
        return []
    mode, eager, compiled = (geometric_mean(column) for column in zip(*factors, strict=True))
    said = (
        f"in {framework.title} compiled ÷ eager is {text.ratio(mode * eager * compiled)} with the best compiled mode, "
        f"over {text.count_noun(len(factors), 'workload')}: {text.ratio(mode)} is graph mode alone (static ÷ dynamic "
        f"here), times {text.ratio(eager)} (our dynamic engine ÷ its eager mode), times {text.ratio(compiled)} (its "
        "compiled mode ÷ our static engine)"
    )
    return [said]


def _peaks(ours: Records) -> list[str]:
    """Return a sentence with our ratio of bytes by the peak of a step only, as frameworks are counted."""
    ratios = [
        (fixed / dynamic)
        for cell in cells(ours, Memory)
        if (mode := cell.least(_peak))
        and (fixed := cell.mean(mode, _peak))
        and (dynamic := cell.mean(cell.base, _peak))
    ]
    if not ratios:
        return []
    said = (
        "in a framework only the peak of a step is counted; our count adds graphs, plans and caches that stay between "
        f"steps. By the peak alone, static ÷ dynamic is {text.ratio(geometric_mean(ratios))} here, over "
        f"{text.count_noun(len(ratios), 'cell')}"
    )
    return [said]


def _peak(measured: MemoryRow) -> Sequence[float]:
    return (measured.peak,)


def _factors(cell: Evidence, here: Mapping[Any, Evidence]) -> tuple[float, float, float] | None:
    ours = here.get(cell.cell)
    compiled, static = cell.least(steady), ours.least(steady) if ours else None
    if ours is None or compiled is None or static is None:
        return None
    their_eager, their_compiled = cell.mean(cell.base, steady), cell.mean(compiled, steady)
    dynamic, fixed = ours.mean(ours.base, steady), ours.mean(static, steady)
    if not (their_eager and their_compiled and dynamic and fixed):
        return None
    return fixed / dynamic, dynamic / their_eager, their_compiled / fixed


JUDGED = ("C4", "C5", "C6", "C8")
"""The claims whose rules apply to real models: those on the costs of streams, steps and bytes."""


def of_models(records: Records) -> list[Verdict]:
    """Judge a framework's records of real models by the claims in `JUDGED`."""
    return [CLAIMS[id].judge(records) for id in JUDGED]


@dataclass(frozen=True)
class ModelCosts:
    """A compiled mode of a model beside the eager mode: seconds of steps and of first calls, bytes, compilations.

    `pays` says after how many steps compiling has paid for itself, without compiled code on the disk. `told` is the
    compiler's report on the mode in the cold process. `inputs` is the number of calls in the stream, and `shapes` the
    number of new shapes among them. `error` is the largest scaled error of outputs and gradients. A field is None if
    it is not known.
    """

    name: str
    model: Model
    eager: ModeOfCell
    mode: ModeOfCell
    pays: BreakEven | None
    told: CompiledRow | None
    inputs: int
    shapes: int
    error: float | None

    @property
    def recompiles(self) -> int:
        """The number of compilations of code that had been compiled before for another input."""
        return sum(self.reasons.values())

    @property
    def reasons(self) -> Counter[str]:
        """The reasons for recompilations, each with its count."""
        made = self.told.made if self.told else []
        return Counter(each.reason for each in made if not each.reason.startswith("the first call"))


def model_costs(records: Records, framework: Engine) -> Iterator[ModelCosts]:
    """Yield the costs of each compiled mode of each model that was measured in a framework, ordered by model."""
    own = [record for record in of_framework(records, framework) if is_model(record.job.workload)]
    evidence = {cell.workload: cell for cell in cells(own, Time)}
    rows = list(modes(framework, own))
    eager = {row.cell: row for row in rows if row.mode == framework.mode_names[0]}
    for row in rows:
        if row.mode == framework.mode_names[0] or row.cell not in eager:
            continue
        name = row.cell.workload
        here = evidence.get(name)
        stream = [
            mode.stream or []
            for record in records_of(own, Time)
            if record.workload == name
            and record.cache == "cold"
            and (mode := record.modes.get(framework.mode_names[0]))
        ]
        gates = [
            record.modes[row.mode]
            for record in records_of(own, Parity)
            if record.cell == row.cell and row.mode in record.modes
        ]
        errors = [error for gate in gates for error in (gate.output_error, gate.gradient_error) if error is not None]
        yield ModelCosts(
            name,
            MODELS[name],
            eager[row.cell],
            row,
            _pays(here, row.mode) if here else None,
            compilation_report(own, row.cell, row.mode),
            inputs=len(stream[0]) if stream else 1,
            shapes=sum(call.new for call in stream[0]) if stream else 1,
            error=max(errors, default=None),
        )


def _pays(cell: Evidence, mode: str) -> BreakEven | None:
    ratio = cell.ratio(mode, cell.base, steady)
    timed = ratio and cell.start.of(mode) and cell.start.of(cell.base)
    return break_even(course(cell, mode), course(cell, cell.base), ratio) if ratio and timed else None
