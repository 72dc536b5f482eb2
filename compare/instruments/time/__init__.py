"""Time: the build, the first call of each shape, and blocks of steady steps, in rounds over all arms."""

from compare.instruments.base import Instrument
from compare.instruments.time.schema import Time
from compare.records.record import Kind

TIME = Instrument(
    (Kind(Time, "compare.instruments.time.measure:measure", typical={"": 1.8, "medium": 2.2, "large": 3.0}),),
    figures=("compare.instruments.time.figure",),
    claim="C6",
)
