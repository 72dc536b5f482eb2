"""Backward: cotangents carried along the tape by the rules that both engines share."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any

import numpy as np

from dynamic import inplace, mode
from dynamic.entry import Edge, Entry, Leaf
from dynamic.tape import History, history, wrap
from dynamic.tensor import Tensor
from graphs import dispatch, reverse
from graphs.errors import NotDifferentiableError, ShapeError, located
from graphs.ops.elementwise import add
from graphs.ops.movement import astype, identity
from graphs.spec import spec_of

Array = Any
Tensors = Tensor | Sequence[Tensor]


def backward(
    outputs: Tensors,
    gradients: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of the outputs to the `grad` of every leaf that they depend on, or of `inputs` alone.

    `gradients` are the cotangents of the outputs, one for each; None stands for the 1 of a scalar.
    Raises NotDifferentiableError when an output has no history, when a cotangent is missing or has the wrong shape,
    and when the graph has been freed; InplaceError when a saved value was changed.
    """
    roots = _listed(outputs)
    wanted = None if inputs is None else _edges(_listed(inputs))
    reached = pulled(roots, _seeds(roots, gradients), wanted, retain_graph=retain_graph, create_graph=create_graph)
    given: set[int] = set()
    for edge, cotangent in reached.items():
        leaf = edge.tensor() if type(edge) is Leaf else None
        if leaf is not None:
            _deposit(leaf, cotangent, given)
    for tensor in () if inputs is None else _listed(inputs):
        if not tensor.is_leaf and tensor._edge in reached:
            _deposit(tensor, reached[tensor._edge], given)


def grad_of(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs, summed, in each input, leaving every `grad` as it is: `torch.autograd.grad`.

    `grad_outputs` are the cotangents of the outputs, one for each; None stands for the 1 of a scalar. With
    `create_graph` the gradients can be differentiated again. An input that the outputs do not depend on has the
    gradient None if `allow_unused`, and zeros if `materialize_grads`.
    Raises NotDifferentiableError where it has neither, and as `backward` does.
    """
    roots, sources = _listed(outputs), _listed(inputs)
    edges = _edges(sources)
    seeds = _seeds(roots, grad_outputs)
    reached = pulled(roots, seeds, edges, retain_graph=retain_graph, create_graph=create_graph)
    given: set[int] = set()
    return tuple(
        [
            _gradient(reached, i, source, given, allow_unused or False, materialize_grads)
            for i, source in enumerate(sources)
        ]
    )


def _gradient(
    reached: dict[Any, Any], number: int, source: Tensor, given: set[int], unused: bool, zeros: bool
) -> Tensor | None:
    found = reached.get(source._edge)
    if found is not None:
        return found if isinstance(found, Tensor) else wrap(owned(found, given))
    if zeros:
        return wrap(np.zeros(source.shape, source.dtype))
    if unused:
        return None
    raise NotDifferentiableError(
        located(f"the outputs do not depend on input {number}; leave it out, or pass allow_unused=True")
    )


def _listed(tensors: Tensors) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _edges(inputs: Sequence[Tensor]) -> list[Edge]:
    for number, source in enumerate(inputs):
        if source._edge is None:
            raise NotDifferentiableError(
                located(f"input {number} requires no gradient; create it with requires_grad=True")
            )
    return [source._edge for source in inputs]


def _seeds(outputs: Sequence[Tensor], gradients: Any) -> Sequence[Any]:
    if gradients is None:
        return [None] * len(outputs)
    seeds = list(gradients) if isinstance(gradients, (list, tuple)) else [gradients]
    if len(seeds) != len(outputs):
        raise ShapeError(located(f"{len(seeds)} cotangents for {len(outputs)} outputs; give one for each, or None"))
    return seeds


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
    useful = None if wanted is None else _useful(wanted, past)
    visited = _NONE if wanted is None or Entry not in map(type, wanted) else {e for e in wanted if type(e) is Entry}
    retain = create_graph if retain_graph is None else retain_graph
    entries = past.entries.copy() if retain else past.entries
    if create_graph and not mode.is_grad_enabled():
        with mode.enable_grad():
            reached = walk(entries, cotangents, visited, useful, retain=retain, create_graph=create_graph)
    else:
        reached = walk(entries, cotangents, visited, useful, retain=retain, create_graph=create_graph)
    for edge, cotangent in cotangents.items():
        reached[edge] = _hooked(edge, cotangent) if edge.hooks else cotangent
    return reached


_NONE: frozenset[Entry] = frozenset()


def _start(cotangents: dict[Any, Any], output: Tensor, seed: Any, create_graph: bool) -> None:
    edge = output._edge
    if edge is None:
        raise NotDifferentiableError(
            located("backward from a tensor that needs no gradient; create its inputs with requires_grad=True")
        )
    if edge.sequence < inplace.clock.rewritten:
        inplace.check_view(output)
    if seed is not None or output._data.shape != ():  # a tensor that needs a gradient is floating
        reverse.check_seed(output, seed)
    reverse.arrive(cotangents, edge, _as_cotangent(seed, output, create_graph))


def _as_cotangent(seed: Any, output: Tensor, create_graph: bool) -> Any:
    if isinstance(seed, Tensor) and create_graph:
        return seed
    if seed is None:
        array = np.empty_like(output._data)
        array.fill(1)
    else:
        array = _copy(seed, output.dtype)
    return wrap(array) if create_graph else array


def _useful(wanted: Collection[Edge], past: History) -> set[Edge] | None:
    """The wanted edges and every entry from which one is reached; None where that is all of them.

    An entry that was freed counts as well, for nobody knows where it led.
    """
    if past.leaves.issubset(wanted):
        return None
    useful = set(wanted)
    for entry in past.entries:
        if entry.saved is None or any(edge in useful for edge in entry.edges):
            useful.add(entry)
    return useful


def walk(
    entries: list[Entry],
    cotangents: dict[Any, Any],
    wanted: Container[Entry],
    useful: Container[Edge] | None,
    *,
    retain: bool,
    create_graph: bool,
) -> dict[Any, Any]:
    """Visit the entries, the latest first, until `cotangents` holds those of the leaves; those of `wanted` entries.

    Each entry is freed as soon as it has been visited, unless they are to be retained.
    """
    reached = {}
    clock, detours = inplace.clock, dispatch.detours
    by_rules = create_graph or useful is not None
    while entries:
        entry = entries.pop()
        if entry not in cotangents:
            continue
        saved = entry.saved
        if saved is None:
            raise NotDifferentiableError(_freed(entry))
        if entry.sequence < clock.latest:
            inplace.check_saved(entry)
        if entry.hooks or type(saved) is not tuple:
            _attend(entry, cotangents)
        if entry in wanted:
            reached[entry] = cotangents[entry]
        del saved
        if by_rules or detours:
            _pull(entry, cotangents, useful, retain, create_graph)
        else:
            entry.pullback.apply(entry, cotangents.pop(entry), retain, cotangents)
    return reached


def _attend(entry: Entry, cotangents: dict[Any, Any]) -> None:
    """Fill in what `checkpoint` let go of, and call hooks."""
    while type(entry.saved) is not tuple:
        entry.saved.fill()  # type: ignore[union-attr]
    if entry.hooks:
        cotangents[entry] = _hooked(entry, cotangents.pop(entry))


def _pull(
    entry: Entry, cotangents: dict[Any, Any], useful: Container[Edge] | None, retain: bool, create_graph: bool
) -> None:
    """Carry a cotangent to the inputs of an entry by the rules of its op."""
    edges, values = entry.edges, _as_tensors(entry) if create_graph else list(entry.saved or ())
    values.append(cotangents.pop(entry))
    if not retain:
        entry.release()
    entry.pullback.pull(edges, values, cotangents, useful)


def _freed(entry: Entry) -> str:
    return located(
        f"{entry.op.name}: backward a second time through a graph that was freed; pass retain_graph=True the first time"
    )


def _as_tensors(entry: Entry) -> list[Any]:
    """What was saved as tensors with their history, so that what the rules do with them is recorded."""
    edges = [*[None if type(edge) is Leaf and edge.closed else edge for edge in entry.edges], entry]
    return [
        value if source is None else wrap(value, edges[source])  # `OUTPUT` is the last
        for source, value in zip(entry.pullback.sources, entry.saved or (), strict=True)
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


def _deposit(leaf: Tensor, cotangent: Any, given: set[int]) -> None:
    """Accumulate into `grad`, which owns its memory: two leaves never share one array."""
    held = leaf.grad
    if isinstance(cotangent, Tensor):
        leaf.grad = identity(cotangent) if held is None else add(held, cotangent)
    elif held is None:
        leaf.grad = wrap(owned(cotangent, given))
    elif held.requires_grad:
        leaf.grad = add(held, wrap(cotangent))
    else:
        inplace.assign(held, wrap(add(held._data, cotangent)))  # whoever holds the gradient sees the sum


def _copy(seed: Any, dtype: np.dtype[Any]) -> Array:
    array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
    return identity(array) if array.dtype == dtype else astype(array, dtype)


def owned(cotangent: Array, given: set[int]) -> Array:
    """An array nobody else sees: a copy when it is a view, read-only or was handed out before."""
    shared = cotangent.base is not None and inplace.is_view(cotangent)
    if shared or id(cotangent) in given or not cotangent.flags.writeable:
        cotangent = identity(cotangent)
    given.add(id(cotangent))
    return cotangent
