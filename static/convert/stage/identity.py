"""Identity: which one a tensor or an object is that a branch, a loop or a sort has chosen, only the run knows.

What follows from it is refused: `is` and id(), and `==`, a key or `in` where a class compares and hashes by identity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from static.convert.stage.classes import held_by
from static.convert.stage.conversion import part
from static.convert.stage.unknown import is_number, is_symbol, is_tensor, refuse

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_TAKING = frozenset(["append", "appendleft", "extend", "insert", "sort", "reverse"])  # they compare nothing by identity


class ChosenValues:
    """The values of which only the run knows which ones they are."""

    def __init__(self) -> None:
        self.by_id: dict[int, Any] = {}  # alive, so that the id stays theirs


def chosen(value: Any) -> Any:
    """A value that stands for one of several."""
    part(ChosenValues).by_id[id(value)] = value
    return value


def is_chosen(value: Any) -> bool:
    """Whether only the run knows which one a value is."""
    return id(value) in part(ChosenValues).by_id


def same(left: Any, right: Any) -> bool:
    """`one is other`. Raises ControlFlowError where only the run knows."""
    if left is right:
        return True
    if is_number(left) and is_number(right) and (is_symbol(left) or is_symbol(right)):
        refuse("`is` asks for a number that only the run knows; write ==")
    if (is_chosen(left) or is_chosen(right)) and _may_be_one(left, right):
        _refuse("is")
    return False


def not_same(left: Any, right: Any) -> bool:
    """`one is not other`."""
    return not same(left, right)


def identified(value: Any) -> int:
    """`id(value)`."""
    if is_chosen(value) or (is_symbol(value) and value.weak):
        _refuse("id()")
    return id(value)


def check_compared(left: Any, right: Any) -> None:
    """Raise ControlFlowError for `==` where it comes down to the identity of what was chosen."""
    if not part(ChosenValues).by_id:
        return
    for value, beside in ((left, right), (right, left)):
        is_whole = is_chosen(value) and not isinstance(value, _CONTAINERS)
        if (type(beside) is type(value) if is_whole else isinstance(beside, _CONTAINERS)) and _by_identity(value):
            _refuse("==")


def check_key(value: Any) -> None:
    """Raise ControlFlowError for a key, or a member of a set, whose hash is the identity of what was chosen."""
    if part(ChosenValues).by_id and _by_identity(value):
        _refuse("a key")


def check_called(f: Any, args: tuple[Any, ...]) -> None:
    """Raise ControlFlowError for a function of a container that compares what was chosen by identity."""
    if not part(ChosenValues).by_id:
        return
    owner = getattr(f, "__self__", None)
    if isinstance(owner, _CONTAINERS) and f.__name__ not in _TAKING:
        looked_at = (owner, *args) if f.__name__ in ("index", "count", "remove") else args
    elif f is hash or (isinstance(f, type) and issubclass(f, (set, frozenset, dict))):
        looked_at = args
    else:
        return
    if any(map(_by_identity, looked_at)):
        _refuse(f"{f.__name__}()")


def _may_be_one(left: Any, right: Any) -> bool:
    return (is_tensor(left) and is_tensor(right)) or type(left) is type(right)


def _by_identity(value: Any) -> bool:
    """Whether it is compared, or holds what is compared, by the identity of what was chosen."""
    return any(is_chosen(held) and held_by(type(held), "__eq__") is vars(object)["__eq__"] for held in parts(value))


def parts(value: Any) -> Iterator[Any]:
    """A value, and what containers of Python in it hold."""
    waiting, seen = [value], set[int]()
    while waiting:
        held = waiting.pop()
        yield held
        if type(held) in _CONTAINERS and id(held) not in seen:
            seen.add(id(held))
            waiting += (*held, *held.values()) if isinstance(held, dict) else held


def _refuse(what: str) -> None:
    refuse(
        f"{what} asks which one a value is that a branch, a loop or a sort has chosen, and only the run knows; "
        "choose a number beside it, and compare that"
    )
