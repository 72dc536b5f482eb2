"""The compiled loops that batches use, where the compiled tape runs; else None."""

from __future__ import annotations

import os
from types import ModuleType

from dynamic import tapes


def _compiled() -> ModuleType | None:
    if not tapes.is_compiled() or os.environ.get("NOBATCHC"):
        return None
    from dynamic import _native

    return _native


compiled: ModuleType | None = _compiled()
