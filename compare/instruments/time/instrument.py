"""The registration of this instrument."""

from compare.instruments.base import Instrument
from compare.instruments.time.schema import Time
from compare.records.record import Kind

TIME = Instrument(
    (Kind(Time, "compare.instruments.time.measure:measure"),),
    figures=("compare.instruments.time.figure",),
)
