"""What the check of C2 finds."""

from __future__ import annotations

from compare.records.record import Record


class Gradients(Record, tag="gradients"):
    """The gradient checks made for a claim."""

    claim: str
    checks: int
    passed: int
    failures: list[str]
    by_op: dict[str, dict[str, int]]
