"""Parity: whether outputs and gradients of all arms agree, before anything of a cell is measured."""

from compare.instruments.base import Instrument
from compare.instruments.parity.schema import Parity
from compare.records.record import Kind

PARITY = Instrument(
    (Kind(Parity, "compare.instruments.parity.measure:measure", timed=False, typical={"": 1.2}),),
    figures=("compare.instruments.parity.figure",),
    claim="parity",
)
