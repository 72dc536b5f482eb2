"""What serves several claims: each instrument a folder, whose `measure` makes the record of a job."""

from compare.instruments.base import Instrument
from compare.instruments.crossover.instrument import CROSSOVER
from compare.instruments.ladder.instrument import LADDER
from compare.instruments.ledger.instrument import LEDGER
from compare.instruments.lengths.instrument import LENGTHS
from compare.instruments.memory.instrument import MEMORY
from compare.instruments.parity.instrument import PARITY
from compare.instruments.parts.instrument import PARTS
from compare.instruments.time.instrument import TIME

__all__ = ["INSTRUMENTS", "Instrument"]

INSTRUMENTS = (TIME, LADDER, PARTS, CROSSOVER, LENGTHS, MEMORY, LEDGER, PARITY)
"""Every instrument, in the order of their figures."""
