"""The registration of this instrument."""

from compare.instruments.base import Instrument
from compare.instruments.parity.schema import Parity
from compare.records.record import Kind

PARITY = Instrument(
    (Kind(Parity, "compare.instruments.parity.measure:measure"),),
    figures=("compare.instruments.parity.figure",),
)
