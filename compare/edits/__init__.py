"""Structure edits: models that change while they train, and what each edit costs an engine."""

from compare.edits.base import Edit, Version
from compare.edits.catalogue import edits

__all__ = ["Edit", "Version", "edits"]
