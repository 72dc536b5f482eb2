"""The tape: the record of each op that runs on tensors that require gradients.

The tape is no list. Each recorded result points at the node of the op that made it, and each node at the nodes
of its inputs, so that dropping a result frees the nodes that only it needed.

First recording, then the backward pass along the nodes, by the reverse accumulation and the rules that both engines
share.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynamic import grad_mode, inplace
from dynamic.node import AfterNode, Edge, Leaf, Node
from dynamic.tensor import Tensor, wrap
from graphs import dispatch, promotion, reverse
from graphs.blocks import Table
from graphs.errors import GraphError, NotDifferentiableError, locate
from graphs.op import Attrs, Op
from graphs.ops.movement import identity
from graphs.ops.shapes import disagree, lay, run_turned
from graphs.reverse import Ndims, Pullback, pullback
from graphs.spec import spec_of

Maker = Callable[[Op, int, int, Ndims], Pullback]


def _run_kernel(op: Op, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Return the result of an op, laid out as PyTorch's; observers are shown the array that the tensor will have."""
    if op.layout == "ufunc" and disagree(arrays):
        data = dispatch.compute(op, arrays, attrs, functools.partial(run_turned, op.kernel))
    else:
        data = dispatch.compute(op, arrays, attrs)
    if op.layout in ("rows", "inputs"):
        data = lay(data, arrays if op.layout == "inputs" else ())
    if dispatch.observers:
        dispatch.tell(op, arrays, attrs, data)
    return data


def interpreter(pullback: Maker) -> dispatch.Interpreter:
    """Make the interpreter that runs an op on tensors at once, and records it when a gradient will need it.

    `pullback` makes the pullback of a node; the compiled tape has its own.
    """

    def run(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        for arg in args:
            if type(arg) is not Tensor and (other := dispatch.interpreter_of(arg)) is not None:
                return other(op, args, attrs)
        try:
            arrays = [arg._data if type(arg) is Tensor else promotion.weak_to_array(arg, args) for arg in args]
        except GraphError as error:
            raise dispatch.explain_error(op, args, error) from None
        edges = [arg._edge if type(arg) is Tensor else None for arg in args]
        data = _run_kernel(op, arrays, attrs)
        if not op.rules or not grad_mode.now().recording or data.dtype.kind != "f" or not any(edges):
            return wrap(data)
        wanted = _differentiable_inputs(op, args, edges)
        if not wanted:
            return wrap(data)
        node = Node()
        node.pullback = pullback(op, wanted, len(edges), _ndims(op, args, arrays))
        node.attrs = attrs
        node.edges = tuple([edge if wanted >> i & 1 else None for i, edge in enumerate(edges)])
        node.saved = node.pullback.save(arrays, data, attrs)
        node.shape = data.shape
        node.dtype = data.dtype
        node.sequence = inplace.clock.tick()
        node.hooks = None
        return wrap(data, node)

    def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        return (dispatch.by_detours(run) if dispatch.detours else run)(op, args, attrs)

    return bind


bind = interpreter(pullback)


def _differentiable_inputs(op: Op, args: Sequence[Any], edges: Sequence[Edge]) -> int:
    """The inputs that get a gradient, as a bit set: those with an edge and a rule."""
    wanted = 0
    for i, edge in enumerate(edges):
        if edge is None:
            continue
        inplace.check_view(args[i])
        if op.rule(i) is not None:
            wanted |= 1 << i
    return wanted


def _ndims(op: Op, args: Sequence[Any], arrays: Sequence[Any]) -> Ndims:
    """The `ndims` of a pullback for these inputs; None where no rule depends on them."""
    if op.family != "elementwise":
        return tuple([_ndim(arg, array.ndim) for arg, array in zip(args, arrays, strict=True)])
    if all(type(a) is Tensor for a in args):
        return None
    # Only whether an input has an axis matters, and fewer kinds of pullbacks are fewer to compile.
    return tuple([_ndim(arg, min(array.ndim, 1)) for arg, array in zip(args, arrays, strict=True)])


def _ndim(arg: Any, ndim: int) -> int | None:
    return None if promotion.is_scalar(arg) else ndim if type(arg) is Tensor else ~ndim


def own_array(array: np.ndarray[Any, Any], handed_out: set[int]) -> np.ndarray[Any, Any]:
    """An array in memory of its own: a copy if the array is a view, read-only or was handed out before."""
    shared = inplace.is_view(array)
    if shared or id(array) in handed_out or not array.flags.writeable:
        array = identity(array)
    handed_out.add(id(array))
    return array


def zeros(edge: Node | Leaf) -> np.ndarray[Any, Any]:
    """The zero cotangent of an edge that no gradient has reached."""
    return np.zeros(edge.shape, edge.dtype)


class History(NamedTuple):
    """The history of some tensors: nodes, the latest last, and leaves."""

    nodes: list[Node]
    leaves: set[Leaf]


def history(roots: Iterable[Edge]) -> History:
    """Every node and leaf that led to the roots. Iterative, since a tape may be deeper than the stack."""
    nodes: list[Node] = []
    leaves: set[Leaf] = set()
    seen: set[Edge] = {None}
    pending: list[Iterable[Edge]] = [roots]
    for edges in pending:  # which grows meanwhile
        for edge in edges:
            if edge not in seen:
                seen.add(edge)
                if type(edge) is Node:
                    nodes.append(edge)
                    pending.append(edge.edges)
                else:
                    leaves.add(edge)  # type: ignore[arg-type]  # the only other edge
    nodes.sort(key=_SEQUENCE)
    return History(nodes, leaves)


_SEQUENCE = operator.attrgetter("sequence")


class Way(NamedTuple):
    """The options of a backward pass.

    wanted         nodes whose cotangents are asked for, beside those of leaves
    useful         the only inputs that get a cotangent; all inputs if None
    retain         whether nodes keep their saved values; else each is freed as soon as it has been visited
    create_graph   whether the pass is itself recorded
    """

    wanted: frozenset[Edge] = frozenset()
    useful: Container[Edge] | None = None
    retain: bool = False
    create_graph: bool = False


def walk(nodes: list[Node], cotangents: dict[Any, Any], way: Way) -> dict[Any, Any]:
    """Visit the nodes, the latest first; returns the cotangents of the leaves, and of the nodes that are `wanted`.

    Visited nodes are removed from the list.
    """
    reached: dict[Any, Any] = {}
    latest_first = (nodes.pop() for _ in range(len(nodes)))
    reverse.accumulate(latest_first, cotangents, functools.partial(visit, reached=reached, way=way))
    for edge, cotangent in cotangents.items():
        reached[edge] = apply_hooks(edge, cotangent) if edge.hooks else cotangent
    return reached


def visit(node: Node, cotangent: Any, reached: dict[Any, Any], way: Way) -> Iterator[tuple[Edge, Any]]:
    """Visit one node: check it, apply its hooks, and return its inputs with their contributions."""
    prepare(node)
    if node.hooks:
        cotangent = apply_hooks(node, cotangent)
    if node in way.wanted:
        reached[node] = cotangent
    return carry(node, cotangent, way)


def carry(node: Node, cotangent: Any, way: Way) -> Iterator[tuple[Edge, Any]]:
    """The inputs of a prepared node with their contributions. `detect_anomaly` looks for frames of this and `visit`."""
    edges, saved = node.taken(way.retain)
    values = _as_tensors(node, edges, saved) if way.create_graph else list(saved)
    values.append(cotangent)
    if node.hooks or arrivals:
        yield from _after_hooks(node, cotangent, edges, node.pullback.pull(edges, values, way.useful))
        return
    del cotangent, saved  # so that each is dropped after its last use
    yield from node.pullback.pull(edges, values, way.useful)


arrivals: Table[Callable[[Node, Sequence[Any]], None]] = {}
"""Called with each node that has passed a gradient back, and the gradient of each input, None where there is none."""


def _after_hooks(
    node: Node, cotangent: Any, edges: Sequence[Edge], contributions: Iterator[tuple[Edge, Any]]
) -> Iterator[tuple[Edge, Any]]:
    """The contributions of a node after its hooks of `register_hook`, once `arrivals` have seen them."""
    gradients: list[Any] = [None] * len(edges)
    start = 0
    for edge, contribution in contributions:  # in the order of the inputs
        start = edges.index(edge, start)
        gradients[start], start = reverse.whole(contribution), start + 1
    for watch in tuple(arrivals.values()):
        watch(node, gradients)
    recorded = issubclass(type(cotangent), Tensor)
    with grad_mode.recording(recorded):
        for hook in list(node.hooks or ()):
            if type(hook) is AfterNode:
                tensors = [g if g is None or recorded else wrap(g) for g in gradients]
                replaced = hook.after(tuple(tensors), (cotangent if recorded else wrap(cotangent),))
                if replaced is not None:
                    gradients = [g if recorded or g is None else g._data for g in replaced]
    yield from [(edge, g) for edge, g in zip(edges, gradients, strict=True) if g is not None and edge is not None]


def prepare(node: Node) -> None:
    """Check the saved values of a node, and restore those that `checkpoint` has dropped. Raises as `backward` does."""
    saved: Any = node.saved
    inplace.check_saved(node)
    while saved is not None and type(saved) is not tuple:  # a `checkpoint` hole
        saved.fill()
        saved = node.saved
    if saved is None:  # released before, or meanwhile by a backward in another thread
        raise node.freed()


def _as_tensors(node: Node, inputs: Sequence[Edge], saved: Sequence[Any]) -> list[Any]:
    """The saved values as tensors with their history, so that ops of the rules on them are recorded."""
    edges = [*[None if type(edge) is Leaf and edge.closed else edge for edge in inputs], node]
    return [
        value if source is None else wrap(value, edges[source])  # `OUTPUT` is the last
        for source, value in zip(node.pullback.sources, saved, strict=True)
    ]


def apply_hooks(edge: Node | Leaf, cotangent: Any) -> Any:
    """The cotangent after the hooks of a tensor, each of which may replace it."""
    recorded = issubclass(type(cotangent), Tensor)
    gradient = cotangent if recorded else wrap(cotangent)
    with grad_mode.recording(recorded):
        for hook in list(edge.hooks or ()):
            replaced = hook(gradient)
            if replaced is not None:
                gradient = _check_hook_result(gradient, replaced)
        return identity(gradient if recorded else gradient._data)  # apart from what a hook may keep


def _check_hook_result(gradient: Tensor, replaced: Any) -> Tensor:
    what = spec_of(replaced) if issubclass(type(replaced), Tensor) else type(replaced).__name__
    if what != spec_of(gradient):
        raise NotDifferentiableError(
            locate(f"a hook returned {what} for a gradient {spec_of(gradient)}; return None, or a tensor of that spec")
        )
    return replaced
