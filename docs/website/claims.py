"""A page for each claim: what it says, its rule, and what the run in reports/reference found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare import text
from compare.claims import CLAIMS, Claim

FIGURES = {
    "C4": {
        "latency": "The time of each call in the first epoch",
        "strategies": "Strategies for inputs of varying length",
    },
    "C5": {"memory": "Bytes that each mode holds", "ledger": "The bytes of a step, by class"},
    "C6": {"steady": "The time of a step, once warm", "break-even": "Runs until compiling has paid for itself"},
}
"""The pictures of a run that show a claim, with their caption."""


def pages(run: Path) -> dict[str, str]:
    """The pages by name, from the verdicts of a run."""
    verdicts = {one["claim"]: one for one in json.loads((run / "verdicts.json").read_text("utf-8"))}
    found = {f"claims/{name.lower()}.md": "\n".join(_page(CLAIMS[name], verdicts[name])) for name in CLAIMS}
    return {"claims/README.md": "\n".join(_overview(verdicts)), **found}


def _overview(verdicts: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "# The claims\n"
    yield "People make eight claims about static and dynamic graphs. Each has a page: the claim, the rule that decides,"
    yield "and the verdict of [the reference run](../../reports/reference/report.md) with its reasons.\n"
    yield "| claim | verdict | effect, 95% interval |\n| :-- | :-- | --: |"
    for name, claim in CLAIMS.items():
        yield f"| [{name} {claim.title}]({name.lower()}.md) | {verdicts[name]['verdict']} | {_effect(verdicts[name])} |"


def _page(claim: Claim, verdict: dict[str, Any]) -> Iterator[str]:
    yield f"# {claim.id}: {claim.title}\n"
    yield f"**{verdict['verdict'].capitalize()}** in [the reference run](../../reports/reference/report.md)."
    if verdict["effect"]:
        name = verdict["effect"]["name"]
        yield f"{name[0].upper()}{name[1:]}: {_effect(verdict)}."
    yield f"\n**The claim.** {claim.statement}\n\n**Its opposite.** {claim.opposite}\n"
    yield f"**What is measured.** {claim.measured}\n\n**The rule, fixed before the data.** {claim.rule}"
    for name, caption in FIGURES.get(claim.id, {}).items():
        yield f"\n![{caption}](../../reports/reference/plots/{name}.png)\n\n*{caption}, in the reference run.*"
    yield from _list("Reasons", verdict["reasons"])
    yield "\n## Regimes\n\n| regime | verdict | value, 95% interval |\n| :-- | :-- | --: |"
    for regime in verdict["regimes"]:
        yield f"| {regime['name']} | {regime['verdict']} | {_value(regime, verdict['effect'])} |"
    yield from _list("Literature", verdict["literature"])
    yield from _list("Not tested", claim.not_tested)
    yield f"\n`graphduel show {claim.id}` prints the claim and its rule. The code is in `compare/claims/`."


def _list(title: str, lines: Any) -> Iterator[str]:
    if lines:
        yield f"\n## {title}\n"
        yield from (f"* {line}" for line in lines)


def _effect(verdict: dict[str, Any]) -> str:
    effect = verdict["effect"]
    return _value({"value": effect["value"], "interval": verdict["interval"]}, effect) if effect else ""


def _value(found: dict[str, Any], effect: dict[str, Any] | None) -> str:
    """A value in the unit of the effect, with its interval."""
    if found["value"] is None:
        return ""
    unit = effect["unit"] if effect else ""
    ends = [text.quantity(end, unit) for end in found["interval"] or ()]
    return text.quantity(found["value"], unit) + (f" [{', '.join(ends)}]" if ends else "")
