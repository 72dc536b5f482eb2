"""Plans of a function in one engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compare.plans.comparison import ComparisonPlan, plans_of


def plan_of(
    engine: str, function: str, inputs: str = "", modes: Sequence[str] | None = None, **options: Any
) -> ComparisonPlan:
    """The plan for a function of a file in one engine."""
    (plan,) = plans_of([engine], function, inputs, modes, **options)
    return plan
