"""Every kind of record by its name: those of claims and instruments, and those that belong to no claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compare.claims import CLAIMS
from compare.instruments import INSTRUMENTS
from compare.records.kind import Kind
from compare.records.schema.runs import Failure, Run
from compare.records.schema.selftest import Selftest, TrialMemory, TrialTime

OTHERS = (
    Kind("run", Run),
    Kind("failure", Failure),
    Kind("environment", measure="compare.run.environment:measure"),
    Kind("returned memory", measure="compare.advice.returned:measure"),
    Kind("selftest time", TrialTime, "compare.selftest.measure:measure_time"),
    Kind("selftest memory", TrialMemory, "compare.selftest.measure:measure_memory"),
    Kind("selftest", Selftest),
)
"""What a run writes of itself, what the advice asks a worker for, and the selftest."""


def _registered() -> Iterator[Kind]:
    yield from OTHERS
    yield from (kind for instrument in INSTRUMENTS for kind in instrument.kinds)
    yield from (claim.check for claim in CLAIMS.values() if claim.check)


REGISTERED: Mapping[str, Kind] = {kind.name: kind for kind in _registered()}
"""What makes and describes each kind."""

KINDS: Mapping[str, Any] = {name: kind.holds for name, kind in REGISTERED.items() if kind.holds}
"""What a line of each kind holds."""
