"""What the check of C2 finds."""

from typing import Any, TypedDict


class Gradients(TypedDict):
    """The gradient checks made for a claim."""

    claim: str
    checks: int
    passed: int
    failures: list[str]
    by_op: dict[str, Any]
