"""What in a line breaks its schema, told by the place."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from compare.records.schema.kinds import KINDS


def violation(record: Mapping[str, Any]) -> str | None:
    """What in a line breaks the schema, as `arms.dynamic.blocks[0] is no float`; None where nothing does."""
    expected = KINDS.get(record["kind"])
    return None if expected is None else _violation(record, expected, "")


def _violation(value: Any, expected: Any, place: str) -> str | None:
    parts = get_args(expected)
    if is_typeddict(expected):
        return _in_fields(value, expected, place)
    if get_origin(expected) is dict:
        entries: Any = value.items() if isinstance(value, dict) else None
        return _in_entries(entries, parts[1], place, "{}.{}")
    if get_origin(expected) is list:
        entries = enumerate(value) if isinstance(value, list) else None
        return _in_entries(entries, parts[0], place, "{}[{}]")
    if get_origin(expected) is UnionType:
        found = [_violation(value, part, place) for part in parts if part is not NoneType]
        return None if value is None else found[0]
    return None if _is_plain(value, expected, parts) else f"{place} is no {getattr(expected, '__name__', parts)}"


def _in_fields(value: Any, expected: Any, place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place} is no object"
    prefix = f"{place}." if place else ""
    for name in sorted(expected.__required_keys__ - value.keys()):
        return f"{prefix}{name} is missing"
    hints = get_type_hints(expected)
    problems = (_violation(value[n], hints[n], f"{prefix}{n}") for n in hints.keys() & value.keys())
    return next(filter(None, problems), None)


def _in_entries(entries: Any, expected: Any, place: str, name: str) -> str | None:
    if entries is None:
        return f"{place} is no container"
    problems = (_violation(entry, expected, name.format(place, key)) for key, entry in entries)
    return next(filter(None, problems), None)


def _is_plain(value: Any, expected: Any, literals: tuple[Any, ...]) -> bool:
    if expected is Any:
        return True
    if literals:
        return value in literals
    kinds = (int, float) if expected is float else expected
    return isinstance(value, kinds) and (expected is bool or not isinstance(value, bool))
