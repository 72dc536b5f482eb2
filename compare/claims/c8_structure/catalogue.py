"""All structure edits."""

from __future__ import annotations

from compare.claims.c8_structure import choices, layers, lengths
from compare.claims.c8_structure.base import Edit


def edits() -> tuple[Edit, ...]:
    """Every edit: of parameters, of what is computed, of sizes."""
    return (*layers.EDITS, *choices.EDITS, *lengths.EDITS)
