"""Fused groups: one node for elementwise ops and reductions over one iteration space, run in blocks of it.

    rows, rest = blocks of the first axis of the space, everything else of it
    %9: (f32[N,64], f32[64]) = fused(%3, %4, %5; body, space=(N, 64))
    %10: f32[N,64] = result(%9, number=0)

The body is an ordinary graph on whole arrays, which can be run without blocks. Where each
of its values lies in the space is worked out here, for the pass that makes groups and the backend that runs them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import dims
from graphs.cost import graph_cost
from graphs.dims import Shape, Size
from graphs.errors import ShapeError
from graphs.ir import Graph, Node
from graphs.op import Op
from graphs.ops import movement, reductions
from graphs.ops.control import outputs_of
from graphs.rules import RuleTable
from graphs.spec import TensorSpec, TupleSpec

CACHE_BYTES = 6 << 20  # of all that a group reads, holds and writes: less stays in the caches without blocks

Position = tuple[bool, ...]  # for each axis of the space, whether a value varies along it


def _infer(*specs: TensorSpec, body: Graph, **_: Shape) -> TensorSpec:
    wanted = tuple(node.spec for node in body.inputs)
    if specs != wanted:
        raise ShapeError(f"the body takes {wanted}, and is given {specs}")
    return TupleSpec(outputs_of(body))


def _cost(*_: TensorSpec, body: Graph, **__: Any) -> Size:
    return graph_cost(body).flops


fused = Op(
    "fused",
    lambda *arrays, body, **_: body(*arrays),
    _infer,
    prepare=lambda *args, **attrs: (args, attrs),
    cost=_cost,
    family="control",
    arity=None,
    doc="Elementwise ops and reductions over one iteration space, computed block by block.",
)


def _result(group: Sequence[Any], *, number: int, out: Any = None) -> Any:
    """One of the tensors that a fused group computed."""
    if out is None:
        return group[number]
    np.copyto(out, group[number])
    return out


def _infer_result(group: TensorSpec, *, number: int) -> TensorSpec:
    if not isinstance(group, TupleSpec) or not 0 <= number < len(group.items):
        raise ShapeError(f"there is no result {number}")
    return group.items[number]


# Not `part`: that is a view of what a loop returns, while this is memory of its own that the group writes into.
result = Op(
    "result",
    _result,
    _infer_result,
    prepare=lambda x, /, number: ((x,), {"number": number}),
    cost=lambda *_, **__: 0,
    family="control",
)


def is_group(node: Node) -> bool:
    """Whether a node is a fused group."""
    return node.op is fused


def is_result(node: Node) -> bool:
    """Whether a node is one of the tensors that a fused group computes."""
    return node.op is result


class InSpace(NamedTuple):
    """What an op is to an iteration space; one that is nothing of this stays outside of groups.

    view        the same numbers at the same place in the space
    pointwise   it works element by element
    reduces     blocks can do the reduction, and where it `adds` up, also parts of it
    """

    view: bool = False
    pointwise: bool = False
    reduces: bool = False
    adds: bool = False


_IN_SPACE: RuleTable[InSpace] = RuleTable(
    "iteration space", otherwise=InSpace(), families={"elementwise": InSpace(pointwise=True)}
)
_IN_SPACE.for_op("reshape", "broadcast_to", "stop_gradient")(InSpace(view=True))
_IN_SPACE.for_op("astype")(InSpace(pointwise=True))
_IN_SPACE.for_op("sum", "mean")(InSpace(reduces=True, adds=True))
_IN_SPACE.for_op("max", "min", "any", "all")(InSpace(reduces=True))


def is_view(node: Node) -> bool:
    """Whether a node of a body is another name for its input: the same numbers at the same place in the space."""
    return _IN_SPACE[node.op].view


def is_pointwise(node: Node) -> bool:
    """Whether the op works element by element."""
    return _IN_SPACE[node.op].pointwise


def is_fusible(node: Node) -> bool:
    """Whether the op works element by element, or is a reduction that blocks can do."""
    role = _IN_SPACE[node.op]
    return role.pointwise or role.reduces


@functools.lru_cache(maxsize=4096)  # a graph has few shapes, and asks for each node
def aligned(shape: Shape, space: Shape) -> Position | None:
    """Where an array of this shape lies when it broadcasts to the space; None when it does not."""
    missing = len(space) - len(shape)
    if missing < 0:
        return None
    varying = [False] * missing
    for size, whole in zip(shape, space[missing:], strict=True):
        varies = not dims.same(size, 1)
        if varies and not dims.same(size, whole):
            return None
        varying.append(varies)
    return tuple(varying)


def first_axis(space: Shape) -> int:
    """The axis that blocks go along: the first that is not of size 1. Raises StopIteration when there is none."""
    return next(a for a, size in enumerate(space) if not dims.same(size, 1))


def position(node: Node, group: Mapping[Node, Position], space: Shape) -> Position | None:
    """Where the value of a node lies, or None when it cannot be computed block by block.

    `group` are the values of the group; any other input is an operand, which broadcasts to the space.
    """
    shapes = [aligned(source.spec.shape, space) for source in node.inputs]
    places = [group.get(source, shape) for source, shape in zip(node.inputs, shapes, strict=True)]
    if _IN_SPACE[node.op].reduces:
        return _reduced(node, places[0], shapes[0], space)
    whole = aligned(node.spec.shape, space)
    if whole is None or any(place is None for place in places):
        return None
    if node.op is movement.reshape:
        return whole if places[0] == whole else None
    # A value may lie in less than its shape says: one that was broadcast is computed before it is spread.
    if any(shape is None or not _within(place, shape) for place, shape in zip(places, shapes, strict=True)):
        return None
    return tuple(any(varies) for varies in zip(*(place for place in places if place is not None), strict=True))


def _reduced(node: Node, place: Position | None, shape: Position | None, space: Shape) -> Position | None:
    if place is None or place != shape or (node.op is reductions.mean and not _is_plain(node)):
        return None
    missing = len(space) - len(node.inputs[0].spec.shape)
    over = {axis + missing for axis in node.attrs["axis"]}
    kept = tuple(varies and axis not in over for axis, varies in enumerate(place))
    return kept if kept[first_axis(space)] or (_IN_SPACE[node.op].adds and _is_plain(node)) else None


def _is_plain(node: Node) -> bool:
    """Whether a sum is made in the dtype of what it sums, and that is no narrow one: parts of it can be added up."""
    return node.spec.dtype == node.inputs[0].spec.dtype and node.spec.dtype.itemsize >= 4


def _within(place: Position | None, shape: Position) -> bool:
    return place is not None and all(s or not p for p, s in zip(place, shape, strict=True))


def positions(body: Graph, space: Shape) -> dict[Node, Position]:
    """Where each value of a body lies. Raises ShapeError when one cannot be computed in blocks."""
    places: dict[Node, Position] = {}
    for node in body.nodes:
        place = position(node, places, space) if node.inputs else aligned(node.spec.shape, space)
        if place is None:
            raise ShapeError(f"{node.op.name} {node.spec} does not lie in the space {space}")
        places[node] = place
    return places


def merged(places: Sequence[Position], space: Shape) -> list[tuple[int, ...]]:
    """The axes of the space in runs that every value either varies along or not; axes of size 1 are left out."""
    runs: list[tuple[int, ...]] = []
    last: Any = None
    for axis, size in enumerate(space):
        if dims.same(size, 1):
            continue
        column = [place[axis] for place in places]
        if column == last:
            runs[-1] = (*runs[-1], axis)
        else:
            runs.append((axis,))
        last = column
    return runs
