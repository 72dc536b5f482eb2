"""What the report says of other frameworks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compare.page import blocks as page
from compare.page import verdicts
from compare.page.blocks import Bullets, Section, Table
from compare.words import text

if TYPE_CHECKING:
    from compare.claims.agreement import Outside
    from compare.claims.evidence import ArmOfCell

NOTES = """\
Each framework runs in processes of its own, one thread on one core, in float32, on the data that our engines get.
One source: each workload is executed once more over the framework's functions. Results are waited for.
An arm is compared with the eager arm of its framework. An arm that differs from the float64 reference is not timed.
Cold: the first process finds no compiled code. Warm: later ones find what it left; the rules see these alone.
Memory is bytes from malloc, counted alike for all: how far they rise in a step."""
QUESTION = (
    "The same claims about other frameworks: their eager arm stands for dynamic, their compiled arms for static, and "
    "the rule of each claim is the one above. ✓ is the verdict that our engines have, ✗ another one; ? is open."
)
_AGREES = {"yes": "✓", "no": "✗", "cannot tell": "?"}


def section(frameworks: Sequence[Outside]) -> Section | None:
    """The section of the page; None where no framework was measured."""
    if not frameworks:
        return None
    notes = (
        *NOTES.splitlines(),
        *(outside.framework.remark for outside in frameworks if outside.framework.remark),
    )
    return page.section(
        "Other frameworks",
        QUESTION,
        _agreement(frameworks),
        *(Bullets(reasons, title) for title, reasons in _reasons(frameworks)),
        _cells(frameworks),
        *(_verdicts(outside) for outside in frameworks if outside.agreements),
        Bullets(notes, "How they were measured"),
        name="frameworks",
    )


def _agreement(frameworks: Sequence[Outside]) -> Table:
    """A row a claim: our verdict, and that on each framework, with whether they agree."""
    compared = [outside for outside in frameworks if outside.agreements]
    headers = ("claim", "our engines", *(f"{outside.framework.title} {outside.version}" for outside in compared))
    rows = []
    for row in zip(*(outside.agreements for outside in compared), strict=True):
        theirs = (f"{_AGREES[outside.agrees]}\N{NO-BREAK SPACE}{outside.theirs}" for outside in row)
        rows.append((row[0].claim, row[0].ours, *theirs))
    return Table(headers, tuple(rows), "l" * len(headers))


def _reasons(frameworks: Sequence[Outside]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for outside in frameworks:
        for agreement in outside.agreements:
            if agreement.agrees != "yes":
                says = {"no": "does not agree", "cannot tell": "cannot be compared"}[agreement.agrees]
                yield f"{agreement.claim}: {outside.framework.title} {says}", agreement.why


def _cells(frameworks: Sequence[Outside]) -> Table:
    headers = (
        "framework", "workload", "arm", "status", "first call, cold", "first call, warm", "steady", "arm ÷ eager",
        "compiles", "peak", "held between steps", "why",
    )  # fmt: skip
    rows = tuple(_cell(outside.framework.title, arm) for outside in frameworks for arm in outside.arms)
    return Table(headers, rows, "llllrrrrrrrl", "What each arm took on each workload")


def _cell(framework: str, arm: ArmOfCell) -> tuple[str, ...]:
    def seconds(value: float | None) -> str:
        return "" if value is None else text.seconds(value)

    ratio = arm.ratio
    bounds = f" {text.interval(ratio.low, ratio.high)}" if ratio and ratio.bounded else ""
    return (
        framework,
        arm.cell.title,
        arm.arm,
        arm.status,
        seconds(arm.cold),
        seconds(arm.warm),
        seconds(arm.steady),
        text.ratio(ratio.estimate) + bounds if ratio else "",
        str(arm.compiles),
        text.size(arm.peak) if arm.peak else "",
        "" if arm.held is None else text.size(arm.held),
        arm.reason,
    )


def _verdicts(outside: Outside) -> Table:
    rows = tuple(
        (f"{v.claim.id} {v.claim.title}", verdicts.marked(v), verdicts.effect(v.finding), "; ".join(v.reasons[:3]))
        for v in outside.verdicts
    )
    title = f"Verdicts on {outside.framework.title} {outside.version}"
    return Table(("claim", "verdict", "effect [95% interval]", "why"), rows, "llrl", title)
