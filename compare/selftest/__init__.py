"""The selftest of the harness: how often a run would report a difference that is not there, or miss a real one.

An engine is compared with itself, with itself slowed down by a known share, and with itself leaking known bytes, by the
workers, rounds, memory pass and intervals of a normal run. The rates are published with their intervals. `trials` has
the changed engines, `experiment` the jobs, and `rates` the evaluation.
"""

from compare.selftest.experiment import Trials, run

__all__ = ["Trials", "run"]
