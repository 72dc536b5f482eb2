"""A function of the user's own in both engines, behind the same gate and by the same measurements as the workloads."""

from compare.own.result import Result
from compare.own.run import compare

__all__ = ["Result", "compare"]
