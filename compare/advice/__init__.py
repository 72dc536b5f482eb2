"""Advice before any measurement: which mode should win for a function, by how much, and after how many calls.

All engines share one model. An adapter counts the work of a call as amounts of terms such as ops, elements and bytes
(`Ops.counts`). `prediction` fits the price of each term on this machine to programs (`probes`), and `predict` adds up
amounts times prices. The function itself is not timed or compiled, and a function for our engines is only traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from compare.advice import counting
from compare.advice.prediction import TIE, Advice, Prices, predict
from compare.engines import OWN, find_engine
from compare.run.progress import Reporter

__all__ = ["TIE", "Advice", "Prices", "advise"]


def advise(
    f: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    gradient: bool | None = None,
    costs: Prices | None = None,
) -> Advice:
    """Predict which engine wins for `f`, a plain function over graphs ops, called with these inputs in turn.

    `inputs` and `gradient` are as for `compare.compare`. Without `costs`, the stored prices of this machine are used;
    if there are none, they are measured in half a minute. f is traced on shapes only and never run; if it branches on
    values, it is converted as by `static.jit(f, convert=True)`. If the static engine refuses f, the advice says so.
    Raises InputsError for inputs that cannot be used, and the error of tracing for a function that is wrong.
    """
    program = counting.own(f, inputs, gradient, counting.subject_of(OWN, "", "", None).modes)
    return predict(costs or _costs(), program)


@cache
def _costs() -> Prices:
    return counting.find_prices(
        counting.subject_of(find_engine(OWN).name, "", "", None), None, Reporter(), lambda _: None
    )
