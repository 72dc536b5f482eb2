"""C8: a static structure stays fixed for the whole training; a dynamic one can change at run time.

Judged by how often an engine had to rebuild, and by the time of the first step after an edit, in steady steps of that
engine. An edit after which the losses of the engines do not agree is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from compare.claims.base import Cited, Claim, Effect, Finding, Label, Regime, combine, not_measured
from compare.records.checks import EditRow, Edits
from compare.records.kinds import KINDS
from compare.records.record import Records, kind_of, of
from compare.stats import geometric_mean_interval
from compare.words import text

MIN_EDITS = 4
"""The kinds of edit without which the claim is not tested."""
FREE = 2.0
"""An edit that costs at most this many steady steps is as good as free."""
EDIT_COST = 5.0
"""A rebuild is felt where the step after an edit costs static this many times more than it costs dynamic."""


def find(records: Records) -> Finding:
    """Supported where dynamic takes an edit for free and static must rebuild, at a cost that is felt."""
    rows = [row for record in of(records, Edits) for row in record.edits]
    edits = sorted((row for row in rows if row.agree), key=lambda row: row.edit)
    if not rows:
        return not_measured("structure edits during training")
    if len(edits) < MIN_EDITS:
        return Finding(
            "inconclusive", (f"only {text.counted(len(edits), 'edit')} measured, and {MIN_EDITS} are needed",)
        )
    cost = geometric_mean_interval([[_cost(edit)] for edit in edits])
    regimes = tuple(Regime(edit.edit, _verdict(edit), _cost(edit)) for edit in edits)
    rebuilt = sum(edit.engines["static"].rebuild > 0 for edit in edits)
    return Finding(
        combine(regime.verdict for regime in regimes),
        (f"static had to rebuild its graph after {rebuilt} of {text.counted(len(edits), 'edit')}", *_details(rows)),
        Effect("steady steps that an edit costs, static ÷ dynamic", cost.estimate, "ratio"),
        cost,
        regimes,
    )


def _details(rows: list[EditRow]) -> Iterator[str]:
    """How static met the edits, and what the other way would have cost."""
    foreseen = [row for row in rows if {"foreseen", "retraced"} <= {*row.ways}]
    if foreseen:
        names = ", ".join(sorted(row.edit for row in foreseen))
        again = median(row.ways["retraced"].steps for row in foreseen)
        yield (
            f"the graph holds these edits as a branch, a mask or a symbolic size: {names}; with a new trace for each "
            f"edit they would cost {text.number(again)} steps (median)"
        )
    apart = sorted(row.edit for row in rows if "static" in row.engines and not row.agree)
    if apart:
        yield f"left out, because the losses of the engines differ: {', '.join(apart)}"
    yield from sorted(f"{row.edit}, {way}: not run, {reason}" for row in rows for way, reason in row.refused.items())


def _cost(edit: EditRow) -> float:
    return edit.engines["static"].steps / edit.engines["dynamic"].steps


def _verdict(edit: EditRow) -> Label:
    dynamic, static = edit.engines["dynamic"], edit.engines["static"]
    changes = dynamic.rebuild == 0 and dynamic.steps <= FREE
    fixed = static.rebuild > 0 and _cost(edit) >= EDIT_COST
    return "supported" if changes and fixed else "refuted"


CLAIM = Claim(
    id="C8",
    title="A static structure stays fixed in training, a dynamic one can change",
    statement="The structure of a static graph is fixed for the whole training. A dynamic graph is built "
    "anew in every step, so layers can be dropped, added or skipped while it trains.",
    opposite="A static graph can hold a structure that varies, as a branch or a mask. A new structure costs one "
    "compile, which is cached. Over a whole training this cost disappears.",
    measured="Edits of the structure during training, in each engine: a layer dropped, a layer added, stochastic "
    "depth, early exit. Recorded are: whether the engine had to rebuild, and the time of the first step after the "
    "edit, in steady steps of that engine. Static holds a foreseeable edit as a branch, a mask or a symbolic size; "
    "any other edit needs a new trace. Losses must be equal.",
    rule=f"An edit supports the claim if dynamic takes it without a rebuild, within {FREE:g} steady steps, "
    f"and static rebuilds and pays at least {EDIT_COST:g} times as many steps. Otherwise the edit refutes it. "
    "The claim gets the verdict that all edits give, and depends where they give different ones. Inconclusive with "
    f"fewer than {MIN_EDITS} kinds of edit.",
    find=find,
    reads=(Edits,),
    check=KINDS[kind_of(Edits)],
    tape="partly",
    literature=(
        Cited(
            "TensorFlow Fold runs a new structure for each example, more than 10 times faster",
            "arXiv 1702.02181",
            "a CPU, trees, compared with the same trees one by one",
            apart="it edits structures between steps, and not between examples",
        ),
        Cited(
            "control flow inside the graph can be differentiated",
            "abstract, arXiv 1805.01772",
            "TensorFlow, as a fact without a figure",
            apart="C1 judges this, with programs that differentiate control flow",
        ),
    ),
    not_tested=(
        "a structure that training searches or learns",
        "the cost, in all other steps, of a branch or a mask for an edit that never comes",
        "edits that change the shapes of parameters while an optimiser holds state for them",
    ),
)
