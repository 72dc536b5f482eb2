"""Every kind of record by its name: those of claims and instruments, and those that belong to no claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compare.claims import CLAIMS
from compare.frameworks.advice.schema import FrameworkWork
from compare.frameworks.outside.schema import FrameworkCell
from compare.frameworks.own.schema import FrameworkFault, FrameworkGate, FrameworkTime
from compare.instruments import INSTRUMENTS
from compare.records.own import EngineGraphs, RewriteHints, ShapePolicies
from compare.records.record import Kind
from compare.records.runs import Bare, Calibration, Failure, ReturnedMemory, Run
from compare.records.trials import Selftest, TrialMemory, TrialTime

OTHERS = (
    Kind(Run),
    Kind(Failure),
    Kind(Bare, "compare.run.environment:measure"),
    Kind(ReturnedMemory, "compare.advice.returned:measure"),
    Kind(Calibration, "compare.advice.calibration:measure"),
    Kind(TrialTime, "compare.selftest.measure:measure_time"),
    Kind(TrialMemory, "compare.selftest.measure:measure_memory"),
    Kind(Selftest),
    Kind(ShapePolicies),
    Kind(RewriteHints),
    Kind(EngineGraphs),
    Kind(FrameworkFault),
    Kind(FrameworkGate, "compare.frameworks.own.measure:measure_gate"),
    Kind(FrameworkTime, "compare.frameworks.own.measure:measure_times"),
    Kind(FrameworkWork, "compare.frameworks.advice.measure:measure"),
    Kind(FrameworkCell, "compare.frameworks.outside.measure:measure", typical={"": 8.0}),
)
"""What a run writes of itself, what the advice asks a worker for, the selftest, and functions in frameworks."""


def _registered() -> Iterator[Kind]:
    yield from OTHERS
    yield from (kind for instrument in INSTRUMENTS for kind in instrument.kinds)
    yield from (claim.check for claim in CLAIMS.values() if claim.check)


KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _registered()}
"""What makes and describes each kind."""
