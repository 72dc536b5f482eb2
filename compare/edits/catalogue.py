"""All structure edits."""

from __future__ import annotations

from compare.edits import choices, layers, lengths
from compare.edits.base import Edit


def edits() -> tuple[Edit, ...]:
    """Every edit: of parameters, of what is computed, of sizes."""
    return (*layers.EDITS, *choices.EDITS, *lengths.EDITS)
