"""The kinds of lines, and what each holds."""

from collections.abc import Mapping
from typing import Any

from compare.records.schema.cells import Memory, Parity, Time
from compare.records.schema.checks import Edits, Faults, Gradients, Programs, Prototypes
from compare.records.schema.closer import Ladder, Ledger, Parts
from compare.records.schema.runs import Failure, Run
from compare.records.schema.selftest import Selftest, TrialMemory, TrialTime
from compare.records.schema.tables import Crossover, CrossoverMemory, Lengths

KINDS: Mapping[str, Any] = {
    "run": Run,
    "parity": Parity,
    "time": Time,
    "memory": Memory,
    "gradients": Gradients,
    "program": Programs,
    "fault": Faults,
    "edit": Edits,
    "prototype": Prototypes,
    "lengths": Lengths,
    "crossover": Crossover,
    "crossover memory": CrossoverMemory,
    "ladder": Ladder,
    "parts": Parts,
    "ledger": Ledger,
    "failure": Failure,
    "selftest time": TrialTime,
    "selftest memory": TrialMemory,
    "selftest": Selftest,
}
