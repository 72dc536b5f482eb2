"""The claims people make about static and dynamic graphs, and the verdict of the records on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from compare.claims import (
    c1_control_flow,
    c2_gradients,
    c3_debugging,
    c4_shapes,
    c5_memory,
    c6_speed,
    c7_prototyping,
    c8_structure,
    tape,
)
from compare.claims.base import Claim, Effect, Finding, Label, Record, Regime, Verdict
from compare.errors import UnknownNameError
from compare.workloads import nearest

__all__ = ["CLAIMS", "Claim", "Effect", "Finding", "Label", "Record", "Regime", "Verdict", "get", "judge"]

_MODULES = (
    c1_control_flow,
    c2_gradients,
    c3_debugging,
    c4_shapes,
    c5_memory,
    c6_speed,
    c7_prototyping,
    c8_structure,
)

CLAIMS: Mapping[str, Claim] = MappingProxyType({module.CLAIM.id: module.CLAIM for module in _MODULES})
"""Every claim by its id, C1 to C8, in that order."""


def judge(records: Sequence[Record], *, python_tape: bool = False) -> list[dict[str, Any]]:
    """The verdict on every claim, in order, as `verdicts.json` holds them.

    `records` are the lines of a results file; which order they stand in makes no difference. Claims that rest on the
    seconds and bytes of the dynamic engine alone are not judged by a tape in Python, unless with `python_tape`.
    """
    where = tape.in_python(records)
    return [_judged(claim, records, where, python_tape).to_dict() for claim in CLAIMS.values()]


def _judged(claim: Claim, records: Sequence[Record], where: str, python_tape: bool) -> Verdict:
    """The verdict on one claim; `where` the tape ran in Python, if it did."""
    if where and claim.id in tape.RESTING and not python_tape:
        return Verdict(claim, tape.not_measured(where))
    verdict = claim.judge(records)
    if where and claim.id in (*tape.RESTING, *tape.PARTLY):
        reasons = (*verdict.finding.reasons, tape.warning(where))
        return Verdict(claim, replace(verdict.finding, reasons=reasons))
    return verdict


def get(id: str) -> Claim:
    """The claim of this id, in capitals or not. Raises UnknownNameError suggesting the nearest id."""
    known = id.strip().upper()
    if known not in CLAIMS:
        raise UnknownNameError(f"no claim is named {id!r}; {nearest(known, tuple(CLAIMS))}")
    return CLAIMS[known]
