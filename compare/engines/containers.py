"""What a framework's step gives, in containers of Python's own: that is what is compared.

Mappings, named tuples and dataclasses of whichever class are dicts here. What is neither a number nor text is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, np.generic, np.ndarray)


def opened(value: Any, numbers: Callable[[Any], Any]) -> Any:
    """The value in dicts, lists and tuples; `numbers` gives an array of the framework's as NumPy's, else None."""
    array = numbers(value)
    if array is not None:
        return array
    inside = named_parts(value)
    if inside is not None:
        return {key: opened(part, numbers) for key, part in inside.items()}
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(opened(part, numbers) for part in value)
    if isinstance(value, Enum):
        return str(value)
    return value if isinstance(value, _PLAIN) else None


def named_parts(value: Any) -> dict[Any, Any] | None:
    """What a mapping, a named tuple or a dataclass holds, by its names; None of any other value."""
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=False))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    return None
