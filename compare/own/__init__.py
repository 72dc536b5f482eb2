"""The comparison of a user's function in both engines, behind the same gate and measured as workloads are.

Read `subject` (a function in an engine, as data), `plan` (the jobs, and which modes drop out), `measure` (a function in
this process) and `run` (from plans to a result). `origin` finds a function, `case` makes a case of it, `effects` and
`traffic` find its side effects, `exchange` hands it to other processes, and `result` shows it.
"""

from compare.own.result import Result
from compare.own.run import compare

__all__ = ["Result", "compare"]
