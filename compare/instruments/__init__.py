"""What serves several claims: each instrument a folder, whose `measure` makes the record of a job."""

from compare.instruments.base import Instrument
from compare.instruments.crossover import CROSSOVER
from compare.instruments.ladder import LADDER
from compare.instruments.ledger import LEDGER
from compare.instruments.lengths import LENGTHS
from compare.instruments.lines import LINES
from compare.instruments.memory import MEMORY
from compare.instruments.parity import PARITY
from compare.instruments.parts import PARTS
from compare.instruments.time import TIME

__all__ = ["INSTRUMENTS", "Instrument"]

INSTRUMENTS = (TIME, LADDER, PARTS, CROSSOVER, LENGTHS, LINES, MEMORY, LEDGER, PARITY)
"""Every instrument, in the order of their figures."""
