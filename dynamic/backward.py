"""Backward: cotangents carried along the tape by the rules that both engines share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from dynamic import inplace, mode
from dynamic.tape import Edge, Entry, entries_before, wrap
from dynamic.tensor import Tensor
from graphs import reverse
from graphs.errors import NotDifferentiableError, located
from graphs.op import OUTPUT, Rule
from graphs.ops.elementwise import add
from graphs.ops.movement import astype, identity
from graphs.spec import spec_of

Array = Any


def backward(
    outputs: Sequence[Tensor],
    seeds: Sequence[Any],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradient of the outputs to the `grad` of every leaf that they depend on.

    Raises NotDifferentiableError when an output has no history, when a seed is missing or has the wrong shape,
    and when the graph has been freed; InplaceError when a saved value was changed.
    """
    walk = _Walk(outputs, seeds, create_graph=create_graph, retain=_retained(retain_graph, create_graph))
    given: set[int] = set()
    for leaf, cotangent in walk.run().items():
        if isinstance(leaf, Tensor):
            _deposit(leaf, cotangent, given)


def grad_of(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    seeds: Sequence[Any],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> list[Any]:
    """The gradients of the outputs with respect to the inputs, leaving every `grad` as it is.

    A gradient is None where the outputs do not depend on the input.
    """
    wanted: list[Edge] = [t._entry if t._entry is not None else t for t in inputs]
    walk = _Walk(
        outputs,
        seeds,
        create_graph=create_graph,
        retain=_retained(retain_graph, create_graph),
        wanted=set(wanted),
    )
    reached = walk.run()
    return [reached.get(edge) for edge in wanted]


def _retained(retain_graph: bool | None, create_graph: bool) -> bool:
    return create_graph if retain_graph is None else retain_graph


class _Walk:
    """One pass of cotangents over the tape."""

    def __init__(
        self,
        outputs: Sequence[Tensor],
        seeds: Sequence[Any],
        *,
        create_graph: bool,
        retain: bool,
        wanted: set[Edge] | None = None,
    ) -> None:
        self.create_graph, self.retain, self.wanted = create_graph, retain, wanted
        self.cotangents: dict[Any, Any] = {}
        for output, seed in zip(outputs, seeds, strict=True):
            self._start(output, seed)
        self.entries = entries_before([e for e in self.cotangents if type(e) is Entry])
        self.useful = None if wanted is None else _leading_to(wanted, self.entries)
        self.reached: dict[Any, Any] = {}

    def _start(self, output: Tensor, seed: Any) -> None:
        edge: Edge = output._entry if output._entry is not None else (output if output._requires_grad else None)
        if edge is None:
            raise NotDifferentiableError(
                located("backward from a tensor that needs no gradient; create its inputs with requires_grad=True")
            )
        inplace.check_view(output)
        reverse.check_seed(output, seed)
        cotangent = self._as_cotangent(seed, output)
        held = self.cotangents.get(edge)
        self.cotangents[edge] = cotangent if held is None else add(held, cotangent)

    def _as_cotangent(self, seed: Any, output: Tensor) -> Any:
        if isinstance(seed, Tensor) and self.create_graph:
            return seed
        array = np.ones(output.shape, output.dtype) if seed is None else _copy(seed, output.dtype)
        return wrap(array) if self.create_graph else array

    def run(self) -> dict[Any, Any]:
        """The cotangents that reached leaves and wanted entries."""
        with mode.set_grad_enabled(self.create_graph):
            reverse.accumulate(self._latest_first(), self.cotangents, self._pull)
            self.reached.update((edge, _hooked(edge, g)) for edge, g in self.cotangents.items())
        return self.reached

    def _latest_first(self) -> Iterator[Entry]:
        # Popped, so that an entry is freed as soon as it has been visited.
        self.entries.reverse()
        while self.entries:
            yield self.entries.pop()

    def _pull(self, entry: Entry, cotangent: Any) -> Iterator[tuple[Edge, Any]]:
        if entry.residuals is None:
            raise NotDifferentiableError(
                located(
                    f"{entry.op.name}: backward a second time through a graph that was freed; "
                    "pass retain_graph=True the first time"
                )
            )
        if entry.sequence < inplace.clock.latest:
            inplace.check_saved(entry)
        if entry.hooks:
            cotangent = _hooked(entry, cotangent)
        if self.wanted is not None and entry in self.wanted:
            self.reached[entry] = cotangent
        useful = self.useful
        for index, edge in enumerate(entry.edges):
            if edge is not None and (useful is None or edge in useful):
                yield edge, self._contribution(entry, index, cotangent)
        if not self.retain:
            entry.release()

    def _contribution(self, entry: Entry, index: int, cotangent: Any) -> Any:
        rule = cast("Rule", entry.op.rule(index))  # an edge is only recorded where there is a rule
        residuals = entry.residuals[index]
        if self.create_graph:
            residuals = _as_tensors(entry, rule, residuals)
        contribution = rule.apply(cotangent, *residuals)
        spec = entry.specs and entry.specs[index]
        return reverse.conform(contribution, *spec) if spec else contribution


def _leading_to(wanted: set[Edge], entries: Sequence[Entry]) -> set[Edge]:
    """The wanted edges and every entry from which one of them is reached."""
    useful = set(wanted)
    for entry in reversed(entries):
        if any(edge in useful for edge in entry.edges):
            useful.add(entry)
    return useful


def _as_tensors(entry: Entry, rule: Rule, residuals: Sequence[Any]) -> list[Any]:
    """Residuals as tensors with their history, so that what the rule does with them is recorded."""
    return [_restored(entry, source, value) for source, value in zip(rule.sources, residuals, strict=True)]


def _restored(entry: Entry, source: int | None, value: Any) -> Any:
    if source is None:
        return value
    edge: Edge = entry if source == OUTPUT else entry.edges[source]
    return edge if isinstance(edge, Tensor) else wrap(value, edge)


def _hooked(edge: Edge, cotangent: Any) -> Any:
    """The cotangent after the hooks of a tensor, each of which may replace it."""
    hooks = edge.hooks if type(edge) is Entry else edge._hooks  # type: ignore[union-attr]
    if not hooks:
        return cotangent
    given = cotangent if isinstance(cotangent, Tensor) else wrap(cotangent)
    for hook in list(hooks):
        replaced = hook(given)
        if replaced is not None:
            given = _checked(given, replaced)
    return identity(given if isinstance(cotangent, Tensor) else given._data)  # apart from what a hook may keep


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
    if cotangent.base is not None or id(cotangent) in given or not cotangent.flags.writeable:
        cotangent = identity(cotangent)
    given.add(id(cotangent))
    return cotangent
