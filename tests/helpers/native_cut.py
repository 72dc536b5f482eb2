"""Native code that is shared among threads however short it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from static.native import cores


@contextmanager
def everything_cut() -> Iterator[None]:
    """Kernels that are made inside are cut however short they are."""
    with patch.multiple(cores, CHUNK=2, SUMMED=4, WIDE=2, PAYS=0):
        yield
