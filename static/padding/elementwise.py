"""Ops that work element by element: tainted where an operand is, unless something known decides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs.ir import Node
from graphs.op import Op
from graphs.ops import elementwise, movement
from static.padding.marks import Bools, Mark, MarkRule, Real, decided, shape_of, sound


def lined_up(shape: Sequence[int], sources: Sequence[Mark]) -> tuple[Real, list[Mark]]:
    """The real places of the result of operands that broadcast.

    An operand whose real places are others, so that its elements meet those of others than in the unpadded function,
    is taken for one of which nothing is known.
    """
    axes = [
        next(mark.real[axis] for mark in sources if -axis <= len(mark.real) and len(mark.real[axis]) == size)
        for axis, size in zip(range(-len(shape), 0), shape, strict=True)
    ]
    return tuple(axes), [mark if _fits(mark, axes) else _lost(mark, axes) for mark in sources]


def _expected(mark: Mark, axes: Sequence[Bools]) -> Real:
    of_mark = axes[len(axes) - len(mark.real) :]
    pairs = zip(mark.real, of_mark, strict=True)
    return tuple([axis if len(own) == len(axis) else np.ones(1, bool) for own, axis in pairs])


def _fits(mark: Mark, axes: Sequence[Bools]) -> bool:
    return all(map(np.array_equal, mark.real, _expected(mark, axes)))


def _lost(mark: Mark, axes: Sequence[Bools]) -> Mark:
    everywhere = np.ones(mark.taint.shape, bool)
    return Mark(everywhere, ~everywhere, mark.value, _expected(mark, axes))


def by_element(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    """The marks of the result of any op on the elements of its operands, which broadcast."""
    return _combined(node, *lined_up(shape_of(node), sources))


def _combined(node: Node, real: Real, sources: Sequence[Mark]) -> Mark:
    taint = functools.reduce(np.logical_or, [s.taint for s in sources])
    certain = functools.reduce(np.logical_and, [s.certain for s in sources])
    value = (
        node.op.kernel(*[s.value for s in sources], **node.attrs) if certain.any() else np.zeros((), node.spec.dtype)
    )
    return sound(Mark(taint, certain, np.broadcast_to(value, shape_of(node)), real, None, _copies(node, sources)))


# What leaves the other operand as it is: the number, and which operands may be it.
_NEUTRAL: dict[Op, tuple[float, tuple[int, ...]]] = {
    elementwise.add: (0, (0, 1)),
    elementwise.subtract: (0, (1,)),
    elementwise.multiply: (1, (0, 1)),
    elementwise.divide: (1, (1,)),
    elementwise.maximum: (-np.inf, (0, 1)),
    elementwise.minimum: (np.inf, (0, 1)),
    elementwise.logical_or: (0, (0, 1)),
    elementwise.logical_and: (1, (0, 1)),
}


def _copies(node: Node, sources: Sequence[Mark]) -> Any:
    if node.op not in _NEUTRAL or all(s.same is None for s in sources):
        return None
    number, positions = _NEUTRAL[node.op]
    copies: Any = np.int64(-1)
    for i in positions:
        others = sources[1 - i].copies
        neutral = sources[i].certain & (sources[i].value == number)
        copies = np.where(neutral & (others >= 0), others, copies)
    return np.broadcast_to(copies, shape_of(node))


Decide = Callable[[Node, Mark, Sequence[Mark]], Mark]


def _with(decide: Decide) -> MarkRule:
    """The rule of an op of which some operands decide, whatever the others are."""

    def rule(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
        real, marks = lined_up(shape_of(node), sources)
        return sound(decide(node, _combined(node, real, marks), marks))

    return rule


def _product(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Decide)
    zero = functools.reduce(np.logical_or, [~s.nonzero for s in sources])
    return decided(result, zero & ~result.certain, 0)  # 0 times infinity, both of them known, is known to be NaN


def _quotient(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    return decided(result, np.broadcast_to(~sources[0].nonzero, shape_of(node)) & ~result.certain, 0)


def _shifted(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    """A sum or difference: what is known to be infinite, or as large as numbers get, stays so."""
    x, y = sources
    for mark, sign in ((x, 1), (y, -1 if node.op is elementwise.subtract else 1)):
        if mark.extreme.any():
            where = np.broadcast_to(mark.extreme, shape_of(node))
            result = decided(result, where & ~result.certain, sign * mark.value)
    return result


def _equal(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    """A comparison: no other number is as large."""
    where = np.broadcast_to(functools.reduce(np.logical_or, [mark.extreme for mark in sources]), shape_of(node))
    return decided(result, where & ~result.certain, node.op is elementwise.not_equal)


def _either(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    if node.spec.dtype != np.bool_:
        return result
    true = functools.reduce(np.logical_or, [s.certain & ~s.taint & (s.value != 0) for s in sources])
    return decided(result, true, True)


def _where(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    condition, x, y = sources
    same = x.certain & y.certain & (x.value == y.value)
    yes, no = condition.certain & condition.value, condition.certain & ~condition.value

    def picked(if_yes: Any, if_no: Any, otherwise: Any) -> Any:
        return np.broadcast_to(np.where(yes, if_yes, np.where(no, if_no, otherwise)), shape_of(node))

    taint = picked(x.taint, y.taint, x.taint | y.taint) | (condition.taint & ~same)
    values = picked(x.value, y.value, np.where(same, x.value, result.value)).astype(node.spec.dtype)
    alike = np.where(x.copies == y.copies, x.copies, -1)
    certain, copies = picked(x.certain, y.certain, same), picked(x.copies, y.copies, alike)
    return Mark(taint, certain, values, result.real, None, copies)


def _compared(least: Callable[[Any, Any], Any], first: int) -> MarkRule:
    """`position < length`, which is False where the position is known to be no less than any length can be.

    What is as large as numbers get is larger than all others.
    """

    def decide(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
        position, length = sources[first], sources[1 - first]
        for mark, sign in ((position, -1), (length, 1)):
            if mark.extreme.any():
                where = np.broadcast_to(mark.extreme, shape_of(node))
                result = decided(result, where & ~result.certain, mark.value * sign > 0)
        if length.upper is None:
            return result
        beyond = position.certain & least(position.value, length.upper) & ~length.taint
        beyond, unsure = (np.broadcast_to(flags, shape_of(node)) for flags in (beyond, position.taint))
        settled = decided(result, beyond, False)
        return settled._replace(taint=settled.taint | (beyond & unsure))

    return _with(decide)


def _converted(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    (x,) = sources
    dtype, before = node.spec.dtype, x.value.dtype
    wide = dtype.kind == "f" or (dtype.kind == before.kind == "i" and dtype.itemsize >= before.itemsize)
    value = np.asarray(node.op.kernel(x.value, **node.attrs))
    return x._replace(value=value, upper=x.upper if wide else None, same=x.same if dtype == before else None)


RULES: dict[Op, MarkRule] = {
    **dict.fromkeys((elementwise.multiply, elementwise.logical_and, elementwise.bitwise_and), _with(_product)),
    **dict.fromkeys((elementwise.logical_or, elementwise.bitwise_or), _with(_either)),
    **dict.fromkeys((elementwise.add, elementwise.subtract), _with(_shifted)),
    **dict.fromkeys((elementwise.equal, elementwise.not_equal), _with(_equal)),
    elementwise.divide: _with(_quotient),
    elementwise.where: _with(_where),
    elementwise.less: _compared(np.greater_equal, 0),
    elementwise.less_equal: _compared(np.greater, 0),
    elementwise.greater: _compared(np.greater_equal, 1),
    elementwise.greater_equal: _compared(np.greater, 1),
    movement.astype: _converted,
}
