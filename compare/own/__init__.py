"""The comparison of a user's function in both engines, behind the same gate and measured as workloads are.

Read `measure` (what one process finds on a function), `workers` (the processes, and the answers that are kept), `run`
(from plans to a result) and `result`, which shows it. `graph` has the graph of a function. The function is a subject
(`compare.subjects`), and its jobs are a plan (`compare.plans`).
"""

from compare.own.result import Result
from compare.own.run import compare

__all__ = ["Result", "compare"]
