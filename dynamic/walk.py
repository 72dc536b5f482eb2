"""The pass back along a tape, by the reverse accumulation and the rules that both engines share."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator, Sequence
from typing import Any

from dynamic import inplace, mode
from dynamic.entry import Edge, Entry, Leaf
from dynamic.tape import wrap
from dynamic.tensor import Tensor
from graphs import reverse
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import identity
from graphs.spec import spec_of


def walk(
    entries: list[Entry],
    cotangents: dict[Any, Any],
    wanted: frozenset[Edge],
    useful: Container[Edge] | None,
    *,
    retain: bool,
    create_graph: bool,
) -> dict[Any, Any]:
    """Visit the entries, the latest first; the cotangents of the leaves, and of the entries that are `wanted`.

    Entries leave the list, and each is freed as soon as it has been visited, unless they are to be retained.
    Inputs that are not `useful` get no cotangent.
    """
    reached: dict[Any, Any] = {}
    pull = functools.partial(
        visit, reached=reached, wanted=wanted, useful=useful, retain=retain, create_graph=create_graph
    )
    reverse.accumulate(_latest_first(entries), cotangents, pull)
    for edge, cotangent in cotangents.items():
        reached[edge] = hooked(edge, cotangent) if edge.hooks else cotangent
    return reached


def _latest_first(entries: list[Entry]) -> Iterator[Entry]:
    while entries:
        yield entries.pop()


def visit(
    entry: Entry,
    cotangent: Any,
    *,
    reached: dict[Any, Any],
    wanted: frozenset[Edge],
    useful: Container[Edge] | None,
    retain: bool,
    create_graph: bool,
) -> Iterator[tuple[Edge, Any]]:
    """Each input of an entry with its contribution."""
    prepare(entry)
    if entry.hooks:
        cotangent = hooked(entry, cotangent)
    if entry in wanted:
        reached[entry] = cotangent
    return carry(entry, cotangent, useful, retain=retain, create_graph=create_graph)


def carry(
    entry: Entry,
    cotangent: Any,
    useful: Container[Edge] | None = None,
    *,
    retain: bool = False,
    create_graph: bool = False,
) -> Iterator[tuple[Edge, Any]]:
    """The same of an entry that is ready. `detect_anomaly` looks for the frames of these two functions."""
    edges, saved = entry.taken(retain)
    values = _as_tensors(entry, edges, saved) if create_graph else list(saved)
    values.append(cotangent)
    del cotangent, saved  # so that each is dropped after its last use
    yield from entry.pullback.pull(edges, values, useful)


def prepare(entry: Entry) -> None:
    """Check what an entry has saved, and fill in what `checkpoint` has dropped. Raises as `backward` does."""
    saved: Any = entry.saved
    inplace.check_saved(entry)
    while saved is not None and type(saved) is not tuple:  # a `checkpoint` hole
        saved.fill()
        saved = entry.saved
    if saved is None:  # released before, or meanwhile by a backward in another thread
        raise entry.freed()


def _as_tensors(entry: Entry, inputs: Sequence[Edge], saved: Sequence[Any]) -> list[Any]:
    """What was saved as tensors with their history, so that what the rules do with them is recorded."""
    edges = [*[None if type(edge) is Leaf and edge.closed else edge for edge in inputs], entry]
    return [
        value if source is None else wrap(value, edges[source])  # `OUTPUT` is the last
        for source, value in zip(entry.pullback.sources, saved, strict=True)
    ]


def hooked(edge: Entry | Leaf, cotangent: Any) -> Any:
    """The cotangent after the hooks of a tensor, each of which may replace it."""
    recorded = isinstance(cotangent, Tensor)
    given = cotangent if recorded else wrap(cotangent)
    with mode.set_grad_enabled(recorded):
        for hook in list(edge.hooks or ()):
            replaced = hook(given)
            if replaced is not None:
                given = _checked(given, replaced)
        return identity(given if recorded else given._data)  # apart from what a hook may keep


def _checked(given: Tensor, replaced: Any) -> Tensor:
    what = spec_of(replaced) if isinstance(replaced, Tensor) else type(replaced).__name__
    if what != spec_of(given):
        raise NotDifferentiableError(
            located(f"a hook returned {what} for a gradient {spec_of(given)}; return None, or a tensor of that spec")
        )
    return replaced
