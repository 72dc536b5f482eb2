"""A padded graph beside the unpadded one: marks go from node to node.

Read `follow` and `Pairing` first. The second half pairs branches and bodies of control flow: switches, scans, while
loops.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.dispatch import BROKEN_RULES
from graphs.errors import ShapeError
from graphs.ir import Graph, Node, ancestors
from graphs.ops.movement import concat
from graphs.spec import TensorSpec
from static.padding.marks import (
    Bools,
    Mark,
    Marks,
    Real,
    anything,
    best_fit,
    cut,
    each,
    first,
    flat,
    is_known,
    number_elements,
    sound,
    specs_of,
    spread,
    unlike,
    whole,
)
from static.padding.rules import RULES, PaddingRule

Pair = tuple[Node, Node]  # a node, and the one in its place in the unpadded graph


def follow(graph: Graph, other: Graph, inputs: Sequence[Marks]) -> Pairing:
    """Follow the padded graph beside the unpadded one, for these marks of its inputs. All sizes are numbers.

    Raises ShapeError where the outputs of the graphs are not computed by the same ops.
    """
    beside = Pairing(graph, other, inputs)
    with np.errstate(all="ignore"):
        beside.walk()
    return beside


class Pairing:
    """The nodes of a padded graph, their partners in the unpadded graph where they have one, and their marks.

    The padded graph may have more nodes, as the trace of a Python loop over its axis does. A node without a partner is
    followed too, and may turn out to be a copy of a value that has one, as a state that a mask has kept is.
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
        """Pair and mark the nodes of both graphs in order."""
        waiting = _computed_nodes(self.other)
        ahead = next(waiting, None)
        for node in _computed_nodes(self.graph):
            if ahead is not None and self._pair(node, ahead):
                ahead = next(waiting, None)
            else:
                self._alone(node)
        for pair in zip(self.graph.outputs, self.other.outputs, strict=False):
            if not self._are_partners(*pair):
                raise ShapeError("its ops depend on the size, as those of a Python loop over an axis do")

    @property
    def outputs(self) -> list[Marks]:
        """The marks of the graph's outputs."""
        return list(map(self.of, self.graph.outputs, self.other.outputs))

    def of(self, node: Node, other: Node) -> Marks:
        """Return the marks of a node beside another. Numbers that are known may be beside several constants."""
        if node is not other and other.is_constant and not node.is_constant:
            return _same_numbers(self.marks[node], other)
        if not node.is_constant:
            return self.marks[node]
        if (node, other) not in self._constants:
            self._constants[node, other] = _mark_pair(node, other, [])
        return self._constants[node, other]

    def _are_partners(self, node: Node, other: Node) -> bool:
        if other.is_constant and not node.is_constant:
            is_certain = all(mark.certain.all() for mark in flat(self.marks[node]))
            return is_certain and node not in self.partner and _is_wider(node.spec, other.spec)
        return (node.is_constant and other.is_constant) or self.partner.get(node) is other

    def _pair(self, node: Node, other: Node) -> bool:
        """Mark a node beside another.

        Return False where it is another op or has other inputs, as a later loop step has.
        """
        sources = self._sources(node, other) if _are_alike(node, other) else None
        if sources is None:
            return False
        mark = _mark_pair(node, other, sources)
        if node.op.family == "movement" and mark.wrong.all() and repr(node.attrs) != repr(other.attrs):
            return False
        self.marks[node], self.partner[node] = mark, other
        return True

    def _sources(self, node: Node, other: Node) -> list[Marks] | None:
        """Return the marks of the inputs, None where they are not the partners of the other node's inputs."""
        if len(node.inputs) == len(other.inputs) and all(map(self._are_partners, node.inputs, other.inputs)):
            return list(map(self.of, node.inputs, other.inputs))
        paired = [n for n in node.inputs if n in self.partner]
        if node.op is not concat or not paired or [self.partner[n] for n in paired] != list(other.inputs):
            return None
        like, axis = self.marks[paired[0]], node.attrs["axis"]
        return [self.marks[n] if n in self.partner else _extend_mark(self.of(n, n), like, axis) for n in node.inputs]

    def _alone(self, node: Node) -> None:
        """Mark a node without a partner, and find whether it is a copy of a value that has one."""
        mark = _mark_pair(node, node, [self._whole(source) for source in node.inputs])
        self.marks[node] = mark
        origin = self._origin(node, mark) if isinstance(mark, Mark) else None
        if origin is not None:
            self.partner[node], self.marks[node] = origin

    def _whole(self, node: Node) -> Marks:
        mark = self.of(node, node)
        if node not in self.partner or not isinstance(mark, Mark):
            return each(whole, mark) if node in self.partner else mark
        if node not in self._numbers:
            self._numbers[node] = number_elements(self._next, mark.taint)
            self._starts.append(self._next)
            self._next += mark.taint.size
        return whole(mark)._replace(same=self._numbers[node])

    def _origin(self, node: Node, mark: Mark) -> tuple[Node, Mark] | None:
        """Return the partner and mark of a node whose elements are copies of those of another node, else None."""
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


def _computed_nodes(graph: Graph) -> Iterator[Node]:
    """Yield the nodes that the outputs of a graph are computed from, without sources."""
    needed = ancestors(graph.outputs)
    return (node for node in graph.nodes if node in needed and not node.is_source)


def _are_alike(node: Node, other: Node) -> bool:
    """Whether two nodes have the same op, and results of as many axes, none smaller than the other's."""
    return node.op is other.op and all(map(_is_wider, specs_of(node), specs_of(other)))


def _is_wider(spec: TensorSpec, true: TensorSpec) -> bool:
    if spec.dtype != true.dtype or spec.ndim != true.ndim:
        return False
    return all(int(size) >= int(least) for size, least in zip(spec.shape, true.shape, strict=True))


def _extend_mark(mark: Mark, like: Mark, axis: int) -> Mark:
    """Return the mark of a value that only the padded graph joins to others along an axis: none of it is real."""
    nowhere = np.zeros(mark.taint.shape[axis], bool)
    return sound(mark._replace(real=(*like.real[:axis], nowhere, *like.real[axis + 1 :]), same=None))


def culprit(beside: Pairing, output: Node) -> Node:
    """Return the first node, of those that an output is computed from, that may differ from its partner."""
    needed = ancestors([output])
    reached = (n for n, mark in beside.marks.items() if n in needed and isinstance(mark, Mark) and mark.wrong.any())
    node = next(reached, output)
    return node.inputs[0] if node.is_part else node


def _mark_pair(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    rule = RULES[node.op]
    if node.op.family == "control":
        return rule.mark(node, other, sources)
    if not rule.own_sizes and repr(node.attrs) != repr(other.attrs):
        return unlike(node, other)
    mark: Any = rule.mark(node, other, sources)
    if not node.op.effect and all(map(is_known, sources)):
        mark = _constant(node, other, mark, sources)
    return mark if tuple(map(np.count_nonzero, mark.real)) == other.spec.shape else unlike(node, other)


def _constant(node: Node, other: Node, mark: Mark, sources: Sequence[Mark]) -> Mark:
    """Return the mark of an op on known numbers, computed with both the padded and the unpadded ones."""
    try:
        computed = np.asarray(node.op.kernel(*[s.value for s in sources], **node.attrs))
        expected = np.asarray(other.op.kernel(*[cut(s.value, s.real) for s in sources], **other.attrs))
    except BROKEN_RULES:  # such as the inverse of zeros, in a branch that is not taken
        return unlike(node, other)
    return _numbers(computed, expected, mark)


def _same_numbers(mark: Mark, constant: Node) -> Mark:
    """Return the mark of a value with known numbers beside a constant."""
    return _numbers(mark.value, np.asarray(constant.op.kernel(**constant.attrs)), mark)


def _numbers(computed: npt.NDArray[Any], expected: npt.NDArray[Any], mark: Mark) -> Mark:
    """Return the mark of known numbers beside expected ones; `mark` tells which elements may be extra."""

    def misfits(real: Real) -> Bools:
        kept = cut(computed, real)
        return np.asarray((kept != expected) & ~((kept != kept) & (expected != expected)))  # NaN is NaN

    real, wrong = best_fit(mark.extra, expected.shape, misfits)
    return sound(
        Mark(spread(wrong, real, computed.shape), np.ones(computed.shape, bool), computed, real, None, mark.same)
    )


def _pair_subgraphs(graph: Graph, other: Graph) -> Callable[[Sequence[Any]], list[Marks]]:
    """Return a function from the marks of a pair of subgraphs' inputs to the marks of its outputs."""

    def outputs(inputs: Sequence[Any]) -> list[Marks]:
        beside = Pairing(graph, other, inputs)
        beside.walk()
        return beside.outputs

    return outputs


def _join_marks(mark: Marks, other: Marks) -> Marks:
    """Return the mark that holds for either of two values."""
    if not isinstance(mark, Mark):
        return tuple(map(_join_marks, mark, other))
    same = mark.certain & other.certain & (mark.value == other.value)
    copies = np.where(mark.copies == other.copies, mark.copies, -1)
    apart = not all(map(np.array_equal, mark.real, other.real))
    return sound(Mark(mark.taint | other.taint | apart, same, mark.value, mark.real, None, copies))


def _taint(mark: Mark) -> Mark:
    return mark._replace(taint=np.ones_like(mark.taint), certain=np.zeros_like(mark.certain), upper=None, same=None)


def _switch(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    index, *operands = sources
    both = list(zip(node.attrs["branches"], other.attrs["branches"], strict=True))
    if is_known(index):
        return tuple(_pair_subgraphs(*both[min(max(int(index.value), 0), len(both) - 1)])(operands))
    joined = functools.reduce(_join_marks, [tuple(_pair_subgraphs(*pair)(operands)) for pair in both])
    return each(_undecided_mark, joined) if index.taint.any() else joined


def _undecided_mark(mark: Mark) -> Mark:
    """Return the mark of a branch's result when the two calls may take different branches."""
    return mark._replace(taint=mark.taint | ~mark.certain)


# Scans ------------------------------------------------------------------------------------------------------------


def _scan(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    """Follow a scan step by step: a step of the unpadded scan beside its own, any other beside doing nothing."""
    body, carry, xs, length = (node.attrs[key] for key in ("body", "carry", "xs", "length"))
    real = _steps(length, other.attrs["length"], sources[carry : carry + xs])
    sequences = [_in_step(x, real) for x in sources[carry : carry + xs]]
    outer, state = sources[carry + xs :], tuple(sources[:carry])
    step, alone = _pair_subgraphs(body, other.attrs["body"]), _pair_subgraphs(body, body)
    carried: Sequence[Node] = node.inputs[:carry]
    rows: dict[int, tuple[Mark, ...]] = {}
    for t in reversed(range(length)) if node.attrs["reverse"] else range(length):
        inputs = [*state, *(x.at(t) for x in sequences), *outer]
        entered = _apart(inputs, carried)
        results = step(inputs) if real[t] else alone(entered)
        rows[t] = (*results[carry:], *(state if node.attrs["save"] else ()))
        state = tuple(results[:carry]) if real[t] else tuple(map(_check_extra_step, state, results, entered))
        carried = body.outputs[:carry] if real[t] else carried
    if not rows:
        return (*state, *anything(node, other, ())[carry:])
    stacks = zip(*[rows[t] for t in range(length)], strict=True)
    return (*state, *map(functools.partial(_stack_marks, real), stacks, specs_of(other)[carry:]))


def _steps(length: int, true: int, sequences: Sequence[Mark]) -> Bools:
    """Return which steps the unpadded scan has too; any choice will do, since the state is compared step by step."""
    fitting = (x.real[0] for x in sequences if np.count_nonzero(x.real[0]) == true)
    return next(fitting, np.arange(length) < true)


def _in_step(x: Mark, real: Bools) -> Mark:
    """Return a sequence's mark, tainted all over where its rows go to other steps than in the unpadded scan."""
    return x if np.array_equal(x.real[0], real) else _taint(x)._replace(real=(real, *x.real[1:]))


def _apart(inputs: Sequence[Marks], carried: Sequence[Node]) -> list[Marks]:
    """Return the inputs of a step without a partner: all real, and the elements of the state numbered.

    `carried` are the nodes that the state comes from: states from one node have the same numbers.
    """
    all_real = [each(whole, mark) for mark in inputs]
    starts = np.cumsum([0, *(mark.taint.size for mark in inputs[: len(carried)])])
    for i, node in enumerate(carried):
        same = number_elements(int(starts[carried.index(node)]), inputs[i].taint)
        all_real[i] = all_real[i]._replace(same=same)
    return all_real


def _check_extra_step(before: Mark, after: Mark, entered: Mark) -> Mark:
    """Return the state after a step that the unpadded scan does not take, tainted where it differs from before."""
    equal = before.certain & after.certain & (before.value == after.value)
    same = (after.copies == entered.copies) | equal
    upper = before.upper if same.all() else None
    return sound(Mark(before.taint | ~same, after.certain, after.value, before.real, upper))


def _stack_marks(real: Bools, marks: Sequence[Mark], spec: TensorSpec) -> Mark:
    """Return the mark of stacked rows; the rows of real steps are real."""
    rows = [mark for mark, is_real in zip(marks, real, strict=True) if is_real]
    inner = rows[0].real if rows else first(marks[0].taint.shape, spec.shape[1:])
    apart = [is_real and not all(map(np.array_equal, m.real, inner)) for m, is_real in zip(marks, real, strict=True)]
    taint, certain, value = (
        np.stack(parts) for parts in zip(*((m.taint, m.certain, m.value) for m in marks), strict=True)
    )
    wrong = np.reshape(apart, (-1, *(1,) * (taint.ndim - 1)))
    return sound(Mark(taint | wrong, certain, value, (real, *inner)))


# Loops of unknown length -------------------------------------------------------------------------------------------


def _fixpoint(step: Callable[[tuple[Marks, ...]], Sequence[Marks]], state: tuple[Marks, ...]) -> tuple[Marks, ...]:
    """Return the marks of a state that hold after any number of steps."""
    while True:
        after = tuple(map(_join_marks, state, step(state)))
        if all(map(_alike, flat(state), flat(after))):
            return after
        state = after


def _alike(mark: Mark, other: Mark) -> bool:
    return all(map(np.array_equal, (mark.taint, mark.certain, mark.copies), (other.taint, other.certain, other.copies)))


def _while(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    carry = node.attrs["carry"]
    start, outer = tuple(_join_marks(s, s) for s in sources[:carry]), sources[carry:]
    step, goes_on = (_pair_subgraphs(node.attrs[key], other.attrs[key]) for key in ("body", "condition"))
    state = _fixpoint(lambda s: step([*s, *outer])[:carry], start)
    if goes_on([*state, *outer])[0].taint.any():
        state = each(_taint, state)
    return (*state, state) if node.attrs["save"] else state


def _while_gradient(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    history, carry = sources[0], node.attrs["carry"]
    start, outer = tuple(_join_marks(s, s) for s in sources[1 : 1 + carry]), sources[1 + carry :]
    step = _pair_subgraphs(node.attrs["step"], other.attrs["step"])
    state = _fixpoint(lambda s: step([*s, *history, *outer]), start)
    return each(_taint, state) if all(m.taint.all() for m in flat(history)) else state


RULES.enter(
    {
        "part": PaddingRule(lambda node, other, sources: sources[0][node.attrs["number"]]),  # noqa: ARG005  (a Rule)
        "switch": PaddingRule(_switch),
        "scan": PaddingRule(_scan),
        "while_loop": PaddingRule(_while),
        "while_loop_gradient": PaddingRule(_while_gradient),
    }
)
