"""Every kind of record by name, with the function that measures it: the table of workers, results and schema.

Functions are named as strings and not imported here, so that this package does not depend on the code that measures. A
claim outside this package registers the kind of its check when the claim is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
    CountedPrograms,
    EngineGraphs,
    FunctionFault,
    FunctionGraph,
    FunctionLook,
    FunctionMemory,
    RewriteHints,
    ShapePolicies,
)
from compare.records.record import Bare, Failure, Kind, Run

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
        of_question="compare.own.measure:measure",
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
    Kind(Programs, "compare.claims.c1_control_flow.measure:measure", everywhere=True, typical={"": 23.0}),
    Kind(Gradients, "compare.claims.c2_gradients:measure", everywhere=True, timed=False, typical={"": 3.0}),
    Kind(Faults, "compare.claims.c3_debugging:measure", everywhere=True, timed=False, typical={"": 2.5}),
    Kind(Prototypes, "compare.claims.c7_prototyping:measure", everywhere=True),
    Kind(Edits, "compare.claims.c8_structure:measure", everywhere=True, typical={"": 3.5}),
    # functions of a user's
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
