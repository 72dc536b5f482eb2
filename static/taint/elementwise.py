"""Ops that work element by element: tainted where an operand is, unless something known decides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs.ir import Node
from graphs.op import Op
from graphs.ops import elementwise, movement
from static.taint.marks import Bools, Mark, Rule, decided, shape_of, sound


def by_element(node: Node, sources: Sequence[Mark]) -> Mark:
    """The marks of the result of any op on the elements of its operands, which broadcast."""
    taint = functools.reduce(np.logical_or, [s.taint for s in sources])
    certain = functools.reduce(np.logical_and, [s.known for s in sources])
    extra = functools.reduce(np.logical_or, map(_places, sources))
    value = (
        node.op.kernel(*[s.value for s in sources], **node.attrs) if certain.any() else np.zeros((), node.spec.dtype)
    )
    return sound(Mark(taint, certain, np.broadcast_to(value, shape_of(node)), extra))


def _places(mark: Mark) -> Bools:
    """Where a value has elements too many. A value that is extra as a whole, an entry of a step, adds no places."""
    return mark.extra & ~np.asarray(mark.extra.all())


def _product(node: Node, sources: Sequence[Mark]) -> Mark:
    zero = functools.reduce(np.logical_or, [~s.nonzero for s in sources])
    return decided(by_element(node, sources), zero, 0)


def _quotient(node: Node, sources: Sequence[Mark]) -> Mark:
    zero = np.broadcast_to(~sources[0].nonzero, shape_of(node))
    return decided(by_element(node, sources), zero, 0)


def _shifted(node: Node, sources: Sequence[Mark]) -> Mark:
    """A sum or difference: what is known to be infinite, or as large as numbers get, stays so."""
    x, y = sources
    result = by_element(node, sources)
    for mark, sign in ((x, 1), (y, -1 if node.op is elementwise.subtract else 1)):
        if mark.extreme.any():
            where = np.broadcast_to(mark.extreme, shape_of(node))
            result = decided(result, where & ~result.known, sign * mark.value)
    return result


def _equal(node: Node, sources: Sequence[Mark]) -> Mark:
    """A comparison: no other number is as large."""
    result = by_element(node, sources)
    where = np.broadcast_to(functools.reduce(np.logical_or, [mark.extreme for mark in sources]), shape_of(node))
    return decided(result, where & ~result.known, node.op is elementwise.not_equal)


def _either(node: Node, sources: Sequence[Mark]) -> Mark:
    result = by_element(node, sources)
    if node.spec.dtype != np.bool_:
        return result
    true = functools.reduce(np.logical_or, [s.known & (s.value != 0) for s in sources])
    return decided(result, true, True)


def _where(node: Node, sources: Sequence[Mark]) -> Mark:
    condition, x, y = sources
    both = by_element(node, sources)
    same = x.known & y.known & (x.value == y.value)
    first, second = condition.known & condition.value, condition.known & ~condition.value
    parts = [(x.taint, y.taint, both.taint & ~same), (x.known, y.known, both.known | same)]
    taint, certain = (np.where(first, a, np.where(second, b, c)) for a, b, c in parts)
    values = np.where(condition.known, np.where(condition.value, x.value, y.value), np.where(same, x.value, both.value))
    return sound(Mark(taint, certain, np.broadcast_to(values, shape_of(node)), both.extra))


def _compared(least: Callable[[Any, Any], Any], first: int) -> Rule:
    """`position < length`, which is False where the position is known to be no less than any length can be."""

    def rule(node: Node, sources: Sequence[Mark]) -> Mark:
        position, length = sources[first], sources[1 - first]
        result = by_element(node, sources)
        if length.upper is None:
            return result
        beyond = np.broadcast_to(position.known & least(position.value, length.upper), shape_of(node))
        return decided(result, beyond & ~np.broadcast_to(length.taint, shape_of(node)), False)

    return rule


def _converted(node: Node, sources: Sequence[Mark]) -> Mark:
    (x,) = sources
    return x._replace(value=np.asarray(node.op.kernel(x.value, **node.attrs)))


RULES: dict[Op, Rule] = {
    **dict.fromkeys((elementwise.multiply, elementwise.logical_and, elementwise.bitwise_and), _product),
    **dict.fromkeys((elementwise.logical_or, elementwise.bitwise_or), _either),
    **dict.fromkeys((elementwise.add, elementwise.subtract), _shifted),
    **dict.fromkeys((elementwise.equal, elementwise.not_equal), _equal),
    elementwise.divide: _quotient,
    elementwise.where: _where,
    elementwise.less: _compared(np.greater_equal, 0),
    elementwise.less_equal: _compared(np.greater, 0),
    elementwise.greater: _compared(np.greater_equal, 1),
    elementwise.greater_equal: _compared(np.greater, 1),
    movement.astype: _converted,
}
