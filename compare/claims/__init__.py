"""The claims people make about static and dynamic graphs, and the verdict of the records on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from compare.claims import tape
from compare.claims.base import Claim, Effect, Finding, Label, Regime, Verdict
from compare.claims.c1_control_flow.rule import CLAIM as C1
from compare.claims.c2_gradients.rule import CLAIM as C2
from compare.claims.c3_debugging.rule import CLAIM as C3
from compare.claims.c4_shapes.rule import CLAIM as C4
from compare.claims.c5_memory.rule import CLAIM as C5
from compare.claims.c6_speed.rule import CLAIM as C6
from compare.claims.c7_prototyping.rule import CLAIM as C7
from compare.claims.c8_structure.rule import CLAIM as C8
from compare.errors import UnknownNameError
from compare.records.record import Record, Records
from compare.workloads import nearest

__all__ = ["CLAIMS", "Claim", "Effect", "Finding", "Label", "Record", "Regime", "Verdict", "get", "judge"]

CLAIMS: Mapping[str, Claim] = MappingProxyType({claim.id: claim for claim in (C1, C2, C3, C4, C5, C6, C7, C8)})
"""Every claim by its id, C1 to C8, in that order."""


def judge(records: Records, *, python_tape: bool = False) -> list[Verdict]:
    """The verdict on every claim, in order.

    Which order the records stand in makes no difference. Claims that rest on the
    seconds and bytes of the dynamic engine alone are not judged by a tape in Python, unless with `python_tape`.
    """
    where = tape.in_python(records)
    return [_judged(claim, records, where, python_tape) for claim in CLAIMS.values()]


def _judged(claim: Claim, records: Records, where: str, python_tape: bool) -> Verdict:
    """The verdict on one claim; `where` the tape ran in Python, if it did."""
    if where and claim.tape == "alone" and not python_tape:
        return Verdict(claim, tape.not_measured(where))
    verdict = claim.judge(records)
    if where and claim.tape != "not":
        reasons = (*verdict.finding.reasons, tape.warning(where))
        return Verdict(claim, replace(verdict.finding, reasons=reasons))
    return verdict


def get(id: str) -> Claim:
    """The claim of this id, in capitals or not. Raises UnknownNameError suggesting the nearest id."""
    known = id.strip().upper()
    if known not in CLAIMS:
        raise UnknownNameError(f"no claim is named {id!r}; {nearest(known, tuple(CLAIMS))}")
    return CLAIMS[known]
