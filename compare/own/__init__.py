"""A function of the user's own in both engines, behind the same gate and by the same measurements as the workloads.

Read `question` (what is asked), `plan` (the jobs, and what drops out), `measure` (a function that is open in a process)
and `run` (from question to result; `comparison` where several engines are asked). `origin` finds a function, `case`
makes a case of it, `effects` and `traffic` see what it does besides its result, and `exchange` hands it to others.
"""

from compare.own.result import Result
from compare.own.run import compare

__all__ = ["Result", "compare"]
