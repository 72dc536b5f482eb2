"""A padded graph beside the unpadded one: marks from node to node."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.dispatch import BROKEN_RULES
from graphs.errors import ShapeError
from graphs.ir import CONSTANT, Graph, Node, ancestors
from graphs.op import Op
from graphs.ops import control
from graphs.ops.movement import concat
from graphs.ops.picking import scatter
from graphs.spec import TensorSpec
from static.padding import elementwise, picking, structure
from static.padding.marks import (
    Bools,
    Mark,
    MarkRule,
    Marks,
    Real,
    anything,
    best_fit,
    cut,
    each,
    flat,
    numbered,
    sound,
    specs_of,
    spread,
    unlike,
    unmarked,
    whole,
)

Pair = tuple[Node, Node]  # a node, and the one in its place in the unpadded graph


def follow(graph: Graph, other: Graph, inputs: Sequence[Marks]) -> Pairing:
    """The padded graph beside the unpadded one, for these marks of its inputs. The sizes are numbers.

    Raises ShapeError where what the graphs return is not computed by the same ops.
    """
    beside = Pairing(graph, other, inputs)
    with np.errstate(all="ignore"):
        beside.walk()
    return beside


class Pairing:
    """The nodes of a padded graph and, for each that has one, its partner in the unpadded graph; and their marks.

    The padded graph may do more, as a Python loop over its axis does: what it does alone is followed too, and may
    turn out to stand for a value that has a partner, as a state that a mask has kept.
    """

    def __init__(self, graph: Graph, other: Graph, inputs: Sequence[Marks]) -> None:
        self.graph, self.other = graph, other
        self.marks: dict[Node, Marks] = dict(zip(graph.inputs, inputs, strict=True))
        self.partner = dict(zip(graph.inputs, other.inputs, strict=True))
        self._constants: dict[Pair, Mark] = {}
        self._numbers: dict[Node, npt.NDArray[np.int64]] = {}
        self._starts: list[int] = []  # the first number of each
        self._next = 0

    def walk(self) -> None:
        """Go through both graphs in order."""
        waiting = _computed(self.other)
        ahead = next(waiting, None)
        for node in _computed(self.graph):
            if ahead is not None and self._pair(node, ahead):
                ahead = next(waiting, None)
            else:
                self._alone(node)
        for pair in zip(self.graph.outputs, self.other.outputs, strict=False):
            if not self._are_partners(*pair):
                raise ShapeError("its ops depend on the size, as those of a Python loop over an axis do")

    @property
    def outputs(self) -> list[Marks]:
        """The marks of what the graph returns."""
        return list(map(self.of, self.graph.outputs, self.other.outputs))

    def of(self, node: Node, other: Node) -> Marks:
        """The marks of a node beside another. Numbers that are known may be beside several constants."""
        if node is not other and other.op is CONSTANT and node.op is not CONSTANT:
            return _same_numbers(self.marks[node], other)
        if node.op is not CONSTANT:
            return self.marks[node]
        if (node, other) not in self._constants:
            self._constants[node, other] = _marked(node, other, [])
        return self._constants[node, other]

    def _are_partners(self, node: Node, other: Node) -> bool:
        if other.op is CONSTANT and node.op is not CONSTANT:
            is_certain = all(mark.certain.all() for mark in flat(self.marks[node]))
            return is_certain and node not in self.partner and _is_wider(node.spec, other.spec)
        return node.op is other.op is CONSTANT or self.partner.get(node) is other

    def _pair(self, node: Node, other: Node) -> bool:
        """Mark a node beside another, unless it does or takes something else, as a later step of a loop does."""
        sources = self._sources(node, other) if _are_alike(node, other) else None
        if sources is None:
            return False
        mark = _marked(node, other, sources)
        if node.op.family == "movement" and mark.wrong.all() and repr(node.attrs) != repr(other.attrs):
            return False
        self.marks[node], self.partner[node] = mark, other
        return True

    def _sources(self, node: Node, other: Node) -> list[Marks] | None:
        """The marks of the inputs; None where they are not the partners of the other's."""
        if len(node.inputs) == len(other.inputs) and all(map(self._are_partners, node.inputs, other.inputs)):
            return list(map(self.of, node.inputs, other.inputs))
        paired = [n for n in node.inputs if n in self.partner]
        if node.op is not concat or not paired or [self.partner[n] for n in paired] != list(other.inputs):
            return None
        like, axis = self.marks[paired[0]], node.attrs["axis"]
        return [self.marks[n] if n in self.partner else _added(self.of(n, n), like, axis) for n in node.inputs]

    def _alone(self, node: Node) -> None:
        """Follow a node without a partner, and find whether it only hands on a value that has one."""
        mark = _marked(node, node, [self._whole(source) for source in node.inputs])
        self.marks[node] = mark
        origin = self._origin(node, mark) if isinstance(mark, Mark) else None
        if origin is not None:
            self.partner[node], self.marks[node] = origin

    def _whole(self, node: Node) -> Marks:
        mark = self.of(node, node)
        if node not in self.partner or not isinstance(mark, Mark):
            return each(whole, mark) if node in self.partner else mark
        if node not in self._numbers:
            self._numbers[node] = numbered(self._next, mark.taint)
            self._starts.append(self._next)
            self._next += mark.taint.size
        return whole(mark)._replace(same=self._numbers[node])

    def _origin(self, node: Node, mark: Mark) -> tuple[Node, Mark] | None:
        """The partner and marks of a node whose elements are copies of those of another one."""
        last = bisect.bisect_right(self._starts, mark.copies.max(initial=-1))
        if not last:
            return None
        origin = list(self._numbers)[last - 1]
        if origin.spec.dtype != node.spec.dtype:
            return None
        before = self.marks[origin]
        expected = cut(self._numbers[origin], before.real)
        if expected.ndim != mark.taint.ndim or any(map(int.__gt__, expected.shape, mark.taint.shape)):
            return None
        real, misfits = best_fit(mark.copies < 0, expected.shape, lambda real: cut(mark.copies, real) != expected)
        if misfits.any():
            return None
        taint = spread(cut(before.taint, before.real), real, mark.taint.shape)
        return self.partner[origin], sound(Mark(taint, mark.certain, mark.value, real))


def _computed(graph: Graph) -> Iterator[Node]:
    """The nodes that are computed for what a graph returns."""
    needed = ancestors(graph.outputs)
    return (node for node in graph.nodes if node in needed and node.op.family != "source")


def _are_alike(node: Node, other: Node) -> bool:
    """Whether it is the same op, with results of as many axes, none smaller."""
    return node.op is other.op and all(map(_is_wider, specs_of(node), specs_of(other)))


def _is_wider(spec: TensorSpec, true: TensorSpec) -> bool:
    if spec.dtype != true.dtype or spec.ndim != true.ndim:
        return False
    return all(int(size) >= int(least) for size, least in zip(spec.shape, true.shape, strict=True))


def _added(mark: Mark, like: Mark, axis: int) -> Mark:
    """What only the padded graph joins to others along an axis."""
    nowhere = np.zeros(mark.taint.shape[axis], bool)
    return sound(mark._replace(real=(*like.real[:axis], nowhere, *like.real[axis + 1 :]), same=None))


def culprit(beside: Pairing, output: Node) -> Node:
    """The first node, of those that an output is computed from, that may differ from its partner."""
    needed = ancestors([output])
    reached = (n for n, mark in beside.marks.items() if n in needed and isinstance(mark, Mark) and mark.wrong.any())
    node = next(reached, output)
    return node.inputs[0] if node.op is control.part else node


def _marked(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    rule = RULES.get(node.op)
    if node.op.family == "control":
        return (rule or anything)(node, other, sources)
    if not _has_own_sizes(node) and repr(node.attrs) != repr(other.attrs):
        return unlike(node, other)
    mark = (rule or _FAMILIES.get(node.op.family, anything))(node, other, sources)
    if not node.op.effect and all(map(is_constant, sources)):
        mark = _constant(node, other, mark, sources)
    return mark if tuple(map(np.count_nonzero, mark.real)) == other.spec.shape else unlike(node, other)


def _has_own_sizes(node: Node) -> bool:
    """Whether its rule compares what both nodes do, and not only their options."""
    compares = node.op in structure.BY_VALUE or node.op in picking.RULES
    return compares or node.op.family in ("movement", "creation", "source")


def is_constant(mark: Mark) -> bool:
    """Whether it is the same numbers in every call, padded and unpadded."""
    return bool(mark.certain.all() and not mark.wrong.any())


def _constant(node: Node, other: Node, mark: Mark, sources: Sequence[Mark]) -> Mark:
    """An op on numbers that are known, so that it can be done on both."""
    try:
        computed = np.asarray(node.op.kernel(*[s.value for s in sources], **node.attrs))
        expected = np.asarray(other.op.kernel(*[cut(s.value, s.real) for s in sources], **other.attrs))
    except BROKEN_RULES:  # such as the inverse of zeros, in a branch that is not taken
        return unlike(node, other)
    return _numbers(computed, expected, mark)


def _same_numbers(mark: Mark, constant: Node) -> Mark:
    """What is known of a value beside a constant."""
    return _numbers(mark.value, np.asarray(constant.op.kernel(**constant.attrs)), mark)


def _numbers(computed: npt.NDArray[Any], expected: npt.NDArray[Any], mark: Mark) -> Mark:
    """Numbers that are known beside those that are expected; `mark` tells which may be extra."""

    def misfits(real: Real) -> Bools:
        kept = cut(computed, real)
        return np.asarray((kept != expected) & ~((kept != kept) & (expected != expected)))  # NaN is NaN

    real, wrong = best_fit(mark.extra, expected.shape, misfits)
    return sound(
        Mark(spread(wrong, real, computed.shape), np.ones(computed.shape, bool), computed, real, None, mark.same)
    )


def _created(node: Node, other: Node, sources: Sequence[Any]) -> Mark:  # noqa: ARG001  (a Rule)
    return unmarked(node.spec.shape, other.spec.shape, node.spec.dtype)


RULES: dict[Op, MarkRule] = {
    **elementwise.RULES,
    **structure.RULES,
    **structure.BY_VALUE,
    **picking.RULES,
    scatter: anything,
}
_FAMILIES: dict[str, MarkRule] = {
    "elementwise": elementwise.by_element,
    "movement": structure.moved,
    "reduction": structure.reduced,
    "creation": _created,
    "source": _created,
}
