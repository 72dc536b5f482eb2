"""All structure edits."""

from __future__ import annotations

from compare.claims.c8_structure.base import Edit
from compare.claims.c8_structure.choices import EDITS as CHOICES
from compare.claims.c8_structure.layers import EDITS as LAYERS
from compare.claims.c8_structure.lengths import EDITS as LENGTHS


def edits() -> tuple[Edit, ...]:
    """Every edit: of parameters, of what is computed, of sizes."""
    return (*LAYERS, *CHOICES, *LENGTHS)
