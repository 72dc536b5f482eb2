"""The pass back: cotangents carried along the tape by the rules that both engines share."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any

import numpy as np

from dynamic import inplace, mode, native
from dynamic.entry import Edge, Entry, Leaf
from dynamic.sample import Typed
from dynamic.tape import History, history, wrap
from dynamic.tensor import Tensor
from graphs import dispatch, reverse
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import astype, identity
from graphs.spec import spec_of

Array = Any


def pulled(
    outputs: Sequence[Tensor],
    seeds: Sequence[Any],
    wanted: Collection[Edge] | None = None,
    past: History | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> dict[Any, Any]:
    """The cotangents of all leaves that the outputs depend on; or of what is `wanted`, leaves or not, and no others.

    `past` is the history of the outputs, or of more, if somebody knows it. Entries that are not retained leave it.
    """
    cotangents: dict[Any, Any] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        _start(cotangents, output, seed, create_graph)
    past = history(cotangents) if past is None else past
    asked = frozenset(wanted or ())
    useful = None if wanted is None or past.leaves <= asked else _useful(asked, past)
    retain = create_graph if retain_graph is None else retain_graph
    entries = past.entries.copy() if retain else past.entries
    if create_graph and not mode.is_grad_enabled():
        with mode.enable_grad():
            reached = walk(entries, cotangents, asked, useful, retain=retain, create_graph=create_graph)
    else:
        reached = walk(entries, cotangents, asked, useful, retain=retain, create_graph=create_graph)
    return reached


def _start(cotangents: dict[Any, Any], output: Tensor, seed: Any, create_graph: bool) -> None:
    edge = output._edge
    if edge is None:
        raise NotDifferentiableError(
            located("backward from a tensor that needs no gradient; create its inputs with requires_grad=True")
        )
    if edge.sequence < inplace.clock.rewritten:
        inplace.check_view(output)
    data = output._data
    if seed is None and data.size == 1:  # a tensor that needs a gradient is floating
        seed = np.ones(data.shape, data.dtype) if data.shape else ONES[data.dtype.num].copy()
    else:
        reverse.check_seed(output, seed)
        seed = seed if isinstance(seed, Tensor) and create_graph else _copy(seed, data.dtype)
    reverse.arrive(cotangents, edge, wrap(seed) if create_graph and type(seed) is not Tensor else seed)


ONES = Typed(1.0)


def _useful(wanted: frozenset[Edge], past: History) -> set[Edge]:
    """The wanted edges and every entry from which one is reached.

    An entry that was freed counts as well, for nobody knows where it led.
    """
    useful = set(wanted)
    for entry in past.entries:
        if entry.saved is None or any(edge in useful for edge in entry.edges):
            useful.add(entry)
    return useful


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

    Each entry is freed as soon as it has been visited, unless they are to be retained.
    """
    reached: dict[Any, Any] = {}
    loops = None if create_graph or useful is not None else native.loops
    if loops is not None and loops.walk(
        entries, cotangents, reached, wanted, bool(retain), _attend, _hooked, _by_rules
    ):
        return reached
    clock, detours = inplace.clock, dispatch.detours
    by_rules = create_graph or useful is not None
    while entries:
        entry = entries.pop()
        if entry in cotangents:
            if type(entry.saved) is not tuple or entry.sequence < clock.latest or entry.hooks:
                _attend(entry, cotangents)
            if entry in wanted:
                reached[entry] = cotangents[entry]
            if by_rules or detours:
                _pull(entry, cotangents, useful, retain, create_graph)
            else:
                entry.pullback.apply(entry, retain, cotangents)
    for edge, cotangent in cotangents.items():
        reached[edge] = _hooked(edge, cotangent) if edge.hooks else cotangent
    return reached


def _attend(entry: Entry, cotangents: dict[Any, Any]) -> None:
    """Check what was saved, fill in what `checkpoint` let go of, and call hooks."""
    if entry.saved is None:
        raise entry.freed()
    inplace.check_saved(entry)
    while type(entry.saved) is not tuple:
        entry.saved.fill()  # type: ignore[attr-defined]  # a `checkpoint` hole
    if entry.hooks:
        cotangents[entry] = _hooked(entry, cotangents.pop(entry))


def _pull(
    entry: Entry, cotangents: dict[Any, Any], useful: Container[Edge] | None, retain: bool, create_graph: bool
) -> None:
    """Carry a cotangent to the inputs of an entry by the rules of its op."""
    edges, saved = entry.taken(retain)
    values = _as_tensors(entry, edges, saved) if create_graph else list(saved)
    del saved
    values.append(cotangents.pop(entry))
    entry.pullback.pull(edges, values, cotangents, useful)


def _by_rules(entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
    """Carry all of a cotangent to the inputs of an entry, where it can be observed."""
    _pull(entry, cotangents, None, keep, create_graph=False)


def _as_tensors(entry: Entry, inputs: Sequence[Edge], saved: Sequence[Any]) -> list[Any]:
    """What was saved as tensors with their history, so that what the rules do with them is recorded."""
    edges = [*[None if type(edge) is Leaf and edge.closed else edge for edge in inputs], entry]
    return [
        value if source is None else wrap(value, edges[source])  # `OUTPUT` is the last
        for source, value in zip(entry.pullback.sources, saved, strict=True)
    ]


def _hooked(edge: Entry | Leaf, cotangent: Any) -> Any:
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


def _copy(seed: Any, dtype: np.dtype[Any]) -> Array:
    array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
    return identity(array) if array.dtype == dtype else astype(array, dtype)
