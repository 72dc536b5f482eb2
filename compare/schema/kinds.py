"""The kinds of lines, and what each holds."""

from collections.abc import Mapping
from typing import Any

from compare.schema.cells import Memory, Parity, Time
from compare.schema.checks import Edits, Faults, Gradients, Programs, Prototypes
from compare.schema.closer import Ladder, Ledger, Parts
from compare.schema.runs import Failure, Run
from compare.schema.selftest import Selftest, TrialMemory, TrialTime
from compare.schema.tables import Crossover, CrossoverMemory, Lengths

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
