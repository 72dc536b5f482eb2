"""The instrument measured: how often a run would see a difference that is not there, or miss one that is.

An engine is compared with itself, with itself slowed down by a known share, and with itself leaking known bytes, by
the workers, the rounds, the memory pass and the intervals of a run. The rates are published with their intervals.
"""

from compare.selftest.experiment import Trials, run

__all__ = ["Trials", "run"]
