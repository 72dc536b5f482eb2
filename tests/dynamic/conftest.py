"""What tests of the compiled tape share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dynamic import inplace
from graphs import dispatch


@pytest.fixture
def nothing_unusual() -> Iterator[None]:
    """Nothing that the loops stand aside for: a test elsewhere may have changed a history in place."""
    assert not dispatch.detours
    before, inplace.clock.rewritten = inplace.clock.rewritten, 0
    yield
    inplace.clock.rewritten = max(before, inplace.clock.rewritten)
