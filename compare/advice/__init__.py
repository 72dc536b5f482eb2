"""Advice before any measurement: which engine will win for a function, by how much, and from which run on.

A cost model of this machine (`calibrate`) prices the graphs of a step, which tracing gives (`structure`): kernels by
their specs, and what each engine does beside them (`work`) and to memory (`memory`). Nothing of the function itself is
timed, and a function of the user's is never run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from compare import engines
from compare.advice import kept
from compare.advice.calibration import calibrate
from compare.advice.costs import Costs, load, save
from compare.advice.kept import Kept
from compare.advice.prediction import TIE, Advice, refusal, weigh
from compare.advice.structures import Structure, output_of, structure
from compare.engines import cases
from compare.errors import described
from compare.own.case import case_of, converting
from compare.workloads.base import Case
from graphs.errors import GraphError

__all__ = ["TIE", "Advice", "Costs", "advise", "advise_case", "calibrate", "load", "prices", "save"]


def advise(
    f: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    *,
    gradient: bool | None = None,
    costs: Costs | None = None,
) -> Advice:
    """Predict which engine wins for `f`, a plain function over graphs ops, called with these inputs in turn.

    `inputs` and `gradient` are as for `compare.compare`. Without `costs` the prices that are kept of this machine
    count: where there are none it is calibrated, in half a minute. f is traced, on shapes alone, and never run: where
    it branches on values, it is converted as `static.jit(f, convert=True)` does. Where the static engine refuses it,
    that is the advice. Raises InputsError for inputs that cannot be used, and what tracing raises for a function that
    is wrong.
    """
    try:
        case = converting(case_of(f, inputs, gradient, None, output_of))
        return advise_case(case, costs or _costs(), run=False)
    except GraphError as error:
        if not engines.refuses("static-exact", error):
            raise
        return refusal(described(error))


def advise_case(case: Case, costs: Costs, *, run: bool = True) -> Advice:
    """The advice for a case: exact shapes, a graph for each structure that its examples have.

    Without `run` its function is only traced: raises the GraphError of a trace that fails.
    """
    known: dict[Any, Structure] = {}
    traced = cases.traced(case)
    signatures = [cases.signature(example) for example in case.examples]
    chosen = []
    for signature, example in zip(signatures, case.examples, strict=True):
        if signature not in known or (run and traced is not case.loss):  # a branch may differ where no shape does
            args = (case.params, *example)
            known[signature] = structure(case.loss, args, case.argnum, traced, run=run)
        chosen.append(known[signature])
    return weigh(chosen, costs, len(set(signatures)))


def prices() -> Kept[Costs]:
    """Where the costs of this machine are kept, and how they are measured."""
    return Kept(
        "static-exact",
        lambda path: load(path, kept.machine()),
        save,
        calibrate,
        "on made-up programs, in half a minute",
    )


@cache
def _costs() -> Costs:
    return prices().prices(None, lambda _: None)
