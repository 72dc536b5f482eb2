"""From outputs and their cotangents to the cotangents of leaves: what every kind of gradient is made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from dynamic import inplace, mode, tapes
from dynamic.entry import Edge
from dynamic.tape import History, wrap
from dynamic.tensor import Tensor
from graphs import reverse
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import astype, identity

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
    past = tapes.history(cotangents) if past is None else past
    asked = frozenset(wanted or ())
    useful = None if wanted is None or past.leaves <= asked else _useful(asked, past)
    retain = create_graph if retain_graph is None else retain_graph
    entries = past.entries.copy() if retain else past.entries
    with mode.enable_grad() if create_graph else nullcontext():
        return tapes.walk(entries, cotangents, asked, useful, retain=retain, create_graph=create_graph)


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
        seed = np.ones(data.shape, data.dtype) if data.shape else np.array(1, data.dtype)
    else:
        reverse.check_seed(output, seed)
        seed = seed if isinstance(seed, Tensor) and create_graph else _copy(seed, data.dtype)
    reverse.arrive(cotangents, edge, wrap(seed) if create_graph and type(seed) is not Tensor else seed)


def _useful(wanted: frozenset[Edge], past: History) -> set[Edge]:
    """The wanted edges and every entry from which one is reached.

    An entry that was freed counts as well, for nobody knows where it led.
    """
    useful = set(wanted)
    for entry in past.entries:
        if entry.saved is None or any(edge in useful for edge in entry.edges):
            useful.add(entry)
    return useful


def _copy(seed: Any, dtype: np.dtype[Any]) -> Array:
    array = seed._data if isinstance(seed, Tensor) else np.asarray(seed)
    return identity(array) if array.dtype == dtype else astype(array, dtype)
