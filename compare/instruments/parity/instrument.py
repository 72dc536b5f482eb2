"""The registration of this instrument."""

from compare.instruments.base import Instrument
from compare.instruments.parity.schema import Parity
from compare.records.kind import Kind

PARITY = Instrument(
    (Kind("parity", Parity, "compare.instruments.parity.measure:measure"),),
    figures=("compare.instruments.parity.figure",),
)
