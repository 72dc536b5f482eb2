"""The registration of this instrument."""

from compare.instruments.base import Instrument
from compare.instruments.memory.schema import Memory
from compare.records.record import Kind

MEMORY = Instrument(
    (Kind(Memory, "compare.instruments.memory.measure:measure", by_arm=True),),
    figures=("compare.instruments.memory.figure",),
)
