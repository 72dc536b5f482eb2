"""What a wrong construction of a layer, an optimizer or a schedule says: its name, the rule, the line, the remedy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from graphs.op import is_ours
from graphs.wrong_calls import WRONG, raise_named


def guard_construction(cls: type) -> None:
    """Let every error of `__init__` be a GraphError that names the class; those of users raise what they raise."""
    init = vars(cls).get("__init__")
    if init is not None and is_ours(cls):
        cls.__init__ = _guarded(init)  # type: ignore[misc]


def _guarded(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def called(self: Any, *args: Any, **options: Any) -> None:
        try:
            init(self, *args, **options)
        except WRONG as error:
            raise_named(error, type(self).__name__, "", type(self))

    return called
