"""The claims that people make about static and dynamic graphs, and the verdict of records on each.

`base` has the classes, each `c1` to `c8` one claim with its rule, `evidence` and `regimes` what the rules share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType

from compare.claims import base
from compare.claims.base import Claim, Effect, Finding, Label, Regime, Verdict
from compare.errors import UnknownNameError
from compare.extensions import load_extensions
from compare.records.record import Record, Records
from compare.workloads import nearest

__all__ = ["CLAIMS", "Claim", "Effect", "Finding", "Label", "Record", "Regime", "Verdict", "get", "judge"]

MODULES = (
    "c1_control_flow",
    "c2_gradients",
    "c3_debugging",
    "c4_shapes",
    "c5_memory",
    "c6_speed",
    "c7_prototyping",
    "c8_structure",
)
"""The modules beside this file that each have a `CLAIM`, in the order reports use."""


_OURS: Mapping[str, Claim] = {
    claim.id: claim for claim in (import_module(f"{__name__}.{name}").CLAIM for name in MODULES)
}
CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {**_OURS, **{id: extension.value for id, extension in load_extensions("claims", Claim, _OURS).items()}}
)
"""Every claim by its id: ours in the order of `MODULES`, then the claims that extensions add."""


def judge(records: Records, *, python_tape: bool = False, asked: str | None = None) -> list[Verdict]:
    """Judge every claim by the records, in the order of `CLAIMS`, or only the claim with the id `asked`.

    The order of the records makes no difference. Where the tape ran in Python, claims that rest on seconds and bytes
    of the dynamic engine alone become inconclusive, unless `python_tape` is true.
    """
    where = base.in_python(records)  # says in words that the tape ran in Python, and is empty if it did not
    verdicts = []
    for claim in CLAIMS.values():
        if asked in (None, claim.id):
            finding = claim.judge(records).finding
            if where and claim.tape == "alone" and not python_tape:
                finding = base.unsettle(where, finding)
            elif where and claim.tape != "not":
                finding = replace(finding, reasons=(*finding.reasons, base.warning(where)))
            verdicts.append(Verdict(claim, finding))
    return verdicts


def get(id: str) -> Claim:
    """Return the claim of an id in any case. Raises UnknownNameError, which suggests the nearest id."""
    name = id.strip().upper()
    if name not in CLAIMS:
        raise UnknownNameError(f"no claim is named {id!r}; {nearest(name, tuple(CLAIMS))}")
    return CLAIMS[name]
