"""Gradients of tensors: `backward` adds them to every `grad`, and `grad_of` returns them.

Both, and the transforms of functions, use `pull_cotangents`: from cotangents of outputs to those of leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from dynamic import grad_mode, inplace, tapes
from dynamic.node import AfterLeaf, Edge, Leaf, turns
from dynamic.tape import History, Way, own_array
from dynamic.tensor import Tensor, goes_back_by, wrap
from graphs import reverse
from graphs.errors import NotDifferentiableError, ShapeError, locate
from graphs.ops.elementwise import add
from graphs.ops.movement import astype, identity

Tensors = Tensor | Sequence[Tensor]
_ONCE = Way()


def backward(
    outputs: Tensors,
    gradients: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of the outputs to the `grad` of every leaf that they depend on, or of `inputs` alone.

    `gradients` are the cotangents of the outputs, one for each; None stands for the 1 of a tensor of one element.
    Raises NotDifferentiableError when an output has no history, when a cotangent is missing or has the wrong shape,
    and when the graph has been freed; InplaceError when a saved value was changed.
    """
    roots = _as_sequence(outputs)
    wanted = None if inputs is None else _edges(_as_sequence(inputs))
    reached = pull_cotangents(
        roots, _seeds(roots, gradients), wanted, retain_graph=retain_graph, create_graph=create_graph
    )
    others = () if inputs is None else [tensor for tensor in _as_sequence(inputs) if not tensor.is_leaf]
    with turns:
        _deposit_all(reached, others)


def _deposit_all(reached: dict[Any, Any], others: Sequence[Tensor]) -> None:
    """Add the cotangents that arrived to the `grad` of every leaf, and of the tensors `others`."""
    handed_out: set[int] = set()
    for edge, cotangent in reached.items():
        leaf = edge.tensor() if type(edge) is Leaf else None
        if leaf is None:
            continue
        if leaf._grad is None and type(cotangent) is np.ndarray:  # what most are, in a training step
            if cotangent.base is not None or id(cotangent) in handed_out or not cotangent.flags.writeable:
                cotangent = own_array(cotangent, handed_out)
            handed_out.add(id(cotangent))
            leaf._grad = wrap(cotangent)
        else:
            _deposit(leaf, cotangent, handed_out)
        for hook in edge.hooks or ():
            if type(hook) is AfterLeaf:
                hook.after(leaf)
    for tensor in others:
        if tensor._edge in reached:
            _deposit(tensor, reached[tensor._edge], handed_out)


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
    """The gradients of the outputs, summed, in each input, leaving every `grad` unchanged: `torch.autograd.grad`.

    `grad_outputs` are the cotangents of the outputs, one for each; None stands for the 1 of a single element. With
    `create_graph` the gradients can be differentiated again. An input that the outputs do not depend on has the
    gradient None if `allow_unused`, and zeros if `materialize_grads`.
    Raises NotDifferentiableError for such an input without either option, and where `backward` does.
    """
    roots, sources = _as_sequence(outputs), _as_sequence(inputs)
    edges = _edges(sources)
    seeds = _seeds(roots, grad_outputs)
    reached = pull_cotangents(roots, seeds, edges, retain_graph=retain_graph, create_graph=create_graph)
    handed_out: set[int] = set()
    return tuple(
        [
            _gradient(reached, i, source, handed_out, allow_unused or False, materialize_grads, create_graph)
            for i, source in enumerate(sources)
        ]
    )


def _gradient(
    reached: dict[Any, Any], number: int, source: Tensor, handed_out: set[int], unused: bool, zeros: bool, again: bool
) -> Tensor | None:
    gradient = reached.get(source._edge)
    if gradient is not None:
        return gradient if issubclass(type(gradient), Tensor) else wrap(own_array(gradient, handed_out))
    if zeros:
        return wrap(np.zeros(source.shape, source.dtype)).requires_grad_(again)
    if unused:
        return None
    raise NotDifferentiableError(
        locate(f"the outputs do not depend on input {number}; leave it out, or pass allow_unused=True")
    )


def _as_sequence(tensors: Tensors) -> Sequence[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _edges(inputs: Sequence[Tensor]) -> list[Edge]:
    for number, source in enumerate(inputs):
        if source._edge is None:
            raise NotDifferentiableError(
                locate(f"input {number} requires no gradient; create it with requires_grad=True")
            )
    return [source._edge for source in inputs]


def _seeds(outputs: Sequence[Tensor], gradients: Any) -> Sequence[Any]:
    if gradients is None:
        return [None] * len(outputs)
    seeds = list(gradients) if isinstance(gradients, (list, tuple)) else [gradients]
    if len(seeds) != len(outputs):
        raise ShapeError(locate(f"{len(seeds)} cotangents for {len(outputs)} outputs; give one for each, or None"))
    return seeds


def _deposit(leaf: Tensor, cotangent: Any, handed_out: set[int]) -> None:
    """Add a cotangent to `grad`, which owns its memory: two leaves never share one array."""
    held = leaf._grad
    if issubclass(type(cotangent), Tensor):
        leaf._grad = identity(cotangent) if held is None else add(held, cotangent)
    elif held is None:
        leaf._grad = wrap(own_array(cotangent, handed_out))
    elif held.requires_grad:
        leaf._grad = add(held, wrap(cotangent))
    else:
        inplace.assign(held, wrap(add(held._data, cotangent)))  # whoever holds the gradient sees the sum


def pull_cotangents(
    outputs: Sequence[Tensor],
    seeds: Sequence[Any],
    wanted: Collection[Edge] | None = None,
    past: History | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> dict[Any, Any]:
    """The cotangents of all leaves that the outputs depend on, or only of the `wanted` edges, leaves or not.

    `past` is the history of the outputs, or of more, where the caller has it. Nodes that are not retained leave it.
    """
    cotangents: dict[Any, Any] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        _start(cotangents, output, seed, create_graph)
    past = tapes.history(cotangents) if past is None else past
    if wanted is None and not (retain_graph or create_graph):  # a training step
        return tapes.walk(past.nodes, cotangents, _ONCE)
    asked = frozenset(wanted or ())
    useful = None if wanted is None or past.leaves <= asked else _useful(asked, past)
    retain = create_graph if retain_graph is None else bool(retain_graph)
    nodes = past.nodes.copy() if retain else past.nodes
    with grad_mode.enable_grad() if create_graph else nullcontext():
        return tapes.walk(nodes, cotangents, Way(asked, useful, retain, create_graph))


def _start(cotangents: dict[Any, Any], output: Tensor, seed: Any, create_graph: bool) -> None:
    edge = output._edge
    if edge is None:
        raise NotDifferentiableError(
            locate("backward from a tensor that needs no gradient; create its inputs with requires_grad=True")
        )
    inplace.check_view(output)
    data = output._data
    if seed is None and data.size == 1:  # a tensor that needs a gradient is floating
        seed = np.ones(data.shape, data.dtype) if data.shape else np.array(1, data.dtype)
    else:
        reverse.check_seed(output, seed)
        seed = seed if issubclass(type(seed), Tensor) and create_graph else _copy(seed, data.dtype)
    reverse.arrive(cotangents, edge, wrap(seed) if create_graph and type(seed) is not Tensor else seed)


def _useful(wanted: frozenset[Edge], past: History) -> set[Edge]:
    """The wanted edges and every node that leads to one.

    A freed node counts as well, as its inputs are no longer known.
    """
    useful = set(wanted)
    for node in past.nodes:
        if node.saved is None or any(edge in useful for edge in node.edges):
            useful.add(node)
    return useful


def _copy(seed: Any, dtype: np.dtype[Any]) -> Any:
    array = seed._data if issubclass(type(seed), Tensor) else np.asarray(seed)
    return identity(array) if array.dtype == dtype else astype(array, dtype)


goes_back_by(backward)
