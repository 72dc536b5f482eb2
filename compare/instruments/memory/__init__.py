"""Memory: the peak of a steady step, in NumPy's own allocations and as the operating system sees it."""

from compare.instruments.base import Instrument
from compare.instruments.memory.schema import Memory
from compare.records.record import Kind

MEMORY = Instrument(
    (
        Kind(
            Memory,
            "compare.instruments.memory.measure:measure",
            by_arm=True,
            typical={"": 2.2, "medium": 2.8, "large": 3.0},
        ),
    ),
    figures=("compare.instruments.memory.figure",),
    claim="C5",
)
