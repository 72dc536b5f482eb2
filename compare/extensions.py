"""Extensions: the engines, workloads and claims that other distributions add by entry points, by name.

Entry points in the groups `graphduel.engines`, `graphduel.workloads` and `graphduel.claims` name an `Engine`, a
`Workload` and a `Claim`. Our own are in lists of this package, so that a checkout that is not installed has them, and
`--help` does not wait for a search.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from compare.errors import InputsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Extension(NamedTuple, Generic[T]):
    """The object that an entry point names, and its source, `module:attribute`."""

    value: T
    source: str


def load_extensions(what: str, kind: type[T], ours: Collection[str]) -> dict[str, Extension[T]]:
    """Load the objects of all entry points in the group `graphduel.WHAT`, by name.

    A class is called without arguments. An entry point that cannot be used is left out, with a line on stderr that
    names it, its distribution and the reason.
    """
    extensions: dict[str, Extension[T]] = {}
    for point in _points(f"graphduel.{what}"):
        try:
            extensions[point.name] = Extension(
                _value(point, kind, {*ours, *extensions}), f"{point.module}:{point.attr}"
            )
        except InputsError as error:
            _tell(point, str(error))
        except Exception as error:  # noqa: BLE001  (code of other distributions may raise anything)
            _tell(point, f"{type(error).__name__}: {error}")
    return extensions


def _value(point: EntryPoint, kind: type[T], taken: Collection[str]) -> T:
    """Load the object of an entry point. Raises InputsError if its type or name is wrong, and any error of loading."""
    if point.name in taken:
        raise InputsError(f"the name {point.name!r} is taken")
    loaded: Any = point.load()
    value = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(value, kind):
        raise InputsError(f"it is of type {type(value).__name__}, and no {kind.__name__}")
    name = getattr(value, "name", None) or getattr(value, "id", None)
    if name != point.name:
        raise InputsError(f"it calls itself {name!r}")
    return value


@cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, sorted by name; of equal ones, that of the first distribution on the path."""
    from importlib.metadata import entry_points  # imported here, since it takes a tenth of a second to load

    points = {(point.name, point.value): point for point in reversed(tuple(entry_points(group=group)))}
    return tuple(sorted(points.values()))


@cache
def _tell(point: EntryPoint, reason: str) -> None:
    """Print on stderr, once per process, that an entry point is left out."""
    owner = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    print(f"left out: {point.group} {point.name} = {point.value}{owner}: {reason}", file=sys.stderr)  # noqa: T201
