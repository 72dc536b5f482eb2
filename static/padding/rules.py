"""The padding rules of ops: which results an element of an operand may reach, as marks.

The order: ops that work element by element (a result is tainted where an operand is, unless a known number decides),
indexing by arrays, ops that move elements; `reductions` has sums and what else goes over an axis. The table `RULES`
is at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphs.ir import Node
from graphs.op import RuleTable
from static.padding.marks import (
    Bools,
    Kernel,
    Mark,
    MarkRule,
    Real,
    anything,
    best_fit,
    cut,
    decide_mark,
    first,
    is_first,
    is_known,
    line_up,
    shape_of,
    sound,
    spread,
    unknown_mark,
    unlike,
)
from static.padding.reductions import (
    along_rule,
    largest,
    least,
    linear_rule,
    reduction_rule,
    running_rule,
    sort_rule,
    sum_rule,
    total_rule,
)


def by_element(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    """Return the mark of a result of any op on the elements of its operands, which broadcast."""
    return _combine_marks(node, *line_up(shape_of(node), sources))


def _combine_marks(node: Node, real: Real, sources: Sequence[Mark]) -> Mark:
    taint = functools.reduce(np.logical_or, [s.taint for s in sources])
    certain = functools.reduce(np.logical_and, [s.certain for s in sources])
    value = (
        node.op.kernel(*[s.value for s in sources], **node.attrs) if certain.any() else np.zeros((), node.spec.dtype)
    )
    return sound(Mark(taint, certain, np.broadcast_to(value, shape_of(node)), real, None, _copies(node, sources)))


_NEUTRAL: RuleTable[tuple[float, tuple[int, ...]]] = RuleTable("neutral numbers", otherwise=(0, ()))
"""The number that leaves the other operand as it is, and the positions of the operands that may be it."""
_NEUTRAL.enter({
    "add": (0, (0, 1)), "subtract": (0, (1,)), "multiply": (1, (0, 1)), "divide": (1, (1,)),
    "maximum": (-np.inf, (0, 1)), "minimum": (np.inf, (0, 1)), "logical_or": (0, (0, 1)), "logical_and": (1, (0, 1)),
})  # fmt: skip


def _copies(node: Node, sources: Sequence[Mark]) -> Any:
    number, positions = _NEUTRAL[node.op]
    if not positions or all(s.same is None for s in sources):
        return None
    copies: Any = np.int64(-1)
    for i in positions:
        others = sources[1 - i].copies
        neutral = sources[i].certain & (sources[i].value == number)
        copies = np.where(neutral & (others >= 0), others, copies)
    return np.broadcast_to(copies, shape_of(node))


Decide = Callable[[Node, Mark, Sequence[Mark]], Mark]


def _deciding_rule(decide: Decide) -> MarkRule:
    """Return the rule of an op in which some operand can decide the result, whatever the others are."""

    def rule(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
        real, marks = line_up(shape_of(node), sources)
        return sound(decide(node, _combine_marks(node, real, marks), marks))

    return rule


def _product(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Decide)
    zero = functools.reduce(np.logical_or, [~s.nonzero for s in sources])
    return decide_mark(result, zero & ~result.certain, 0)  # 0 times infinity, both of them known, is known to be NaN


def _quotient(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    return decide_mark(result, np.broadcast_to(~sources[0].nonzero, shape_of(node)) & ~result.certain, 0)


def _shift_rule(sign_of_other: int, node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    """Decide a sum or difference: an element that is known to be infinite, or the largest float, stays so."""
    x, y = sources
    for mark, sign in ((x, 1), (y, sign_of_other)):
        if mark.extreme.any():
            where = np.broadcast_to(mark.extreme, shape_of(node))
            result = decide_mark(result, where & ~result.certain, sign * mark.value)
    return result


def _equal(otherwise: bool, node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    """Decide a comparison with an extreme element: no other number is as large."""
    where = np.broadcast_to(functools.reduce(np.logical_or, [mark.extreme for mark in sources]), shape_of(node))
    return decide_mark(result, where & ~result.certain, otherwise)


def _either(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    if node.spec.dtype != np.bool_:
        return result
    true = functools.reduce(np.logical_or, [s.certain & ~s.taint & (s.value != 0) for s in sources])
    return decide_mark(result, true, True)


def _where(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
    condition, x, y = sources
    same = x.certain & y.certain & (x.value == y.value)
    yes, no = condition.certain & condition.value, condition.certain & ~condition.value

    def pick(if_yes: Any, if_no: Any, otherwise: Any) -> Any:
        return np.broadcast_to(np.where(yes, if_yes, np.where(no, if_no, otherwise)), shape_of(node))

    taint = pick(x.taint, y.taint, x.taint | y.taint) | (condition.taint & ~same)
    values = pick(x.value, y.value, np.where(same, x.value, result.value)).astype(node.spec.dtype)
    alike = np.where(x.copies == y.copies, x.copies, -1)
    certain, copies = pick(x.certain, y.certain, same), pick(x.copies, y.copies, alike)
    return Mark(taint, certain, values, result.real, None, copies)


def _comparison_rule(least: Callable[[Any, Any], Any], first: int) -> MarkRule:
    """Return the rule of `position < length`: False where the position is known to reach the length's upper bound.

    An extreme element (infinite, or the largest float) is larger than all others.
    """

    def decide(node: Node, result: Mark, sources: Sequence[Mark]) -> Mark:
        position, length = sources[first], sources[1 - first]
        for mark, sign in ((position, -1), (length, 1)):
            if mark.extreme.any():
                where = np.broadcast_to(mark.extreme, shape_of(node))
                result = decide_mark(result, where & ~result.certain, mark.value * sign > 0)
        if length.upper is None:
            return result
        beyond = position.certain & least(position.value, length.upper) & ~length.taint
        beyond, unsure = (np.broadcast_to(flags, shape_of(node)) for flags in (beyond, position.taint))
        settled = decide_mark(result, beyond, False)
        return settled._replace(taint=settled.taint | (beyond & unsure))

    return _deciding_rule(decide)


def _conversion_rule(node: Node, other: Node, sources: Sequence[Mark]) -> Mark:  # noqa: ARG001  (a Rule)
    (x,) = sources
    dtype, before = node.spec.dtype, x.value.dtype
    wide = dtype.kind == "f" or (dtype.kind == before.kind == "i" and dtype.itemsize >= before.itemsize)
    value = np.asarray(node.op.kernel(x.value, **node.attrs))
    return x._replace(value=value, upper=x.upper if wide else None, same=x.same if dtype == before else None)


def _kernels(node: Node, other: Node, index: Mark) -> list[functools.partial[object]]:
    """Return both ops as functions of the other operand, for an index that is known."""
    values = index.value, cut(index.value, index.real)
    return [_at(version, value) for version, value in zip((node, other), values, strict=True)]


def _at(node: Node, index: np.ndarray) -> functools.partial[object]:
    def kernel(x: np.ndarray) -> object:
        return node.op.kernel(x, index, **node.attrs)

    return functools.partial(kernel)


_COUNTS_FORWARD: RuleTable[bool] = RuleTable("padded positions", otherwise=False)
"""Whether the result is positions along an axis, none of them counted from its end."""
_COUNTS_FORWARD.for_op("argsort", "argmax", "argmin")(True)


def _picks_alike(node: Node, size: int, real: Bools) -> bool:
    """Whether an index means the same place padded and unpadded; from the end it does so only for equal sizes."""
    return len(real) == size or (_COUNTS_FORWARD[node.inputs[1].op] and is_first(real))


def _take_rule(along: bool, node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """Mark take and take_along_axis: a result is tainted where the index is, or where the picked element may be."""
    x, index = sources
    axis = node.attrs["axis"]
    if is_known(index):
        try:
            return relocate(node, _kernels(node, other, index), [x])
        except IndexError:
            return unlike(node, other)
    if not _picks_alike(node, int(np.count_nonzero(x.real[axis])), x.real[axis]):
        return unlike(node, other)
    if along and not all(map(np.array_equal, _but(x.real, axis), _but(index.real, axis))):
        return unlike(node, other)
    anywhere = x.wrong.any(axis=axis, keepdims=True)
    before, after = anywhere.shape[:axis], anywhere.shape[axis + 1 :]
    picked = anywhere if along else anywhere.reshape((*before, *(1,) * index.taint.ndim, *after))
    real = index.real if along else (*x.real[:axis], *index.real, *x.real[axis + 1 :])
    taint = np.broadcast_to(picked | _wide(index, axis, picked.ndim), shape_of(node))
    return sound(unlike(node, other)._replace(taint=taint, real=real))


def _wide(index: Mark, axis: int, ndim: int) -> Bools:
    """Return the taint of an index with axes inserted, so that it broadcasts to `ndim` axes from `axis` on."""
    if index.taint.ndim == ndim:
        return index.taint
    return index.taint.reshape((*(1,) * axis, *index.taint.shape, *(1,) * (ndim - axis - index.taint.ndim)))


def _but(real: Real, axis: int) -> Real:
    return (*real[:axis], *real[axis + 1 :])


def _scatter_add_rule(along: bool, node: Node, other: Node, sources: Sequence[Mark]) -> Mark:
    """Mark scatter_add and add_along_axis: an element that is known to be 0 adds nothing, wherever it goes."""
    g, index = sources
    axis = node.attrs["axis"]
    if is_known(index):
        try:
            return sum_rule(node, _kernels(node, other, index), [g])
        except (IndexError, ValueError):
            return unlike(node, other)
    places = first(shape_of(node)[axis : axis + 1], shape_of(other)[axis : axis + 1])
    ndim = index.taint.ndim
    of_index = g.real if along else g.real[axis : axis + ndim]
    if not all(map(np.array_equal, of_index, index.real)) or not _picks_alike(node, shape_of(other)[axis], places[0]):
        return unlike(node, other)
    wrong = g.nonzero & (~g.ignored(0) | _wide(index, axis, g.taint.ndim))
    reduced = (axis,) if along else tuple(range(axis, axis + ndim))
    taint, adds = (np.expand_dims(f.any(axis=reduced), axis) for f in (wrong, g.nonzero))
    beyond = ~places[0].reshape((-1, *(1,) * (taint.ndim - axis - 1)))  # no index of a real element goes there
    taint, zero = (np.broadcast_to(flags, shape_of(node)) for flags in (taint, ~adds | (beyond & ~taint)))
    real = (*g.real[:axis], *places, *g.real[axis + (1 if along else ndim) :])
    return sound(Mark(taint, zero, np.broadcast_to(np.zeros((), node.spec.dtype), shape_of(node)), real))


# Moved ------------------------------------------------------------------------------------------------------------


def movement_rule(node: Node, other: Node, sources: Sequence[Mark], *, fills: bool = False) -> Mark:
    """Mark an op that moves elements by its attributes; one that `fills` puts known elements between them."""
    filled = [{**version.attrs, "value": 0} if "value" in version.attrs else version.attrs for version in (node, other)]
    kernels = [functools.partial(node.op.kernel, **attrs) for attrs in filled]
    fill = float(node.attrs.get("value", 0))
    taint = fill != float(other.attrs.get("value", 0))
    mark = relocate(node, kernels, sources, fill)
    inside = len(sources) == 1 and not fills
    mark = mark._replace(upper=sources[0].upper if inside else None)
    return unlike(node, other) if taint else mark


def relocate(node: Node, kernels: Sequence[Kernel], sources: Sequence[Mark], fill: float = 0) -> Mark:
    """Number each element and let both kernels move the numbers; the number 0 stands for filled-in elements."""
    ends = np.cumsum([1, *(s.taint.size for s in sources)])
    numbers = [np.arange(at, at + s.taint.size).reshape(s.taint.shape) for at, s in zip(ends, sources, strict=False)]
    placed = np.asarray(kernels[0](*numbers))
    expected = np.asarray(kernels[1](*[cut(n, s.real) for n, s in zip(numbers, sources, strict=True)]))
    taint, certain, extra = (
        np.concatenate([[start], *(getattr(s, name).ravel() for s in sources)])
        for start, name in ((False, "taint"), (True, "certain"), (False, "extra"))
    )
    values = np.concatenate([np.array([fill], node.spec.dtype), *(s.value.ravel() for s in sources)], dtype=None)
    copies = np.concatenate([[-1], *(s.copies.ravel() for s in sources)])

    def misfits(real: Real) -> Bools:
        arrived = cut(placed, real)
        sure = certain & ~taint
        return np.asarray(
            (arrived != expected) & ~(sure[arrived] & sure[expected] & (values[arrived] == values[expected]))
        )

    real, misplaced = best_fit(extra[placed], expected.shape, misfits)
    wrong = spread(misplaced | taint[expected], real, placed.shape)
    value = values[placed].astype(node.spec.dtype)
    return sound(Mark(taint[placed] | wrong, certain[placed], value, real, None, copies[placed]))


class PaddingRule(NamedTuple):
    """The rule that marks an op's result; with `own_sizes` it compares both nodes' work, not only their attributes."""

    mark: MarkRule
    own_sizes: bool = False


def _creation_rule(node: Node, other: Node, sources: Sequence[Any]) -> Mark:  # noqa: ARG001  (a Rule)
    return unknown_mark(node.spec.shape, other.spec.shape, node.spec.dtype)


RULES: RuleTable[PaddingRule] = RuleTable(
    "padding",
    otherwise=PaddingRule(anything),
    families={
        "elementwise": PaddingRule(by_element),
        "movement": PaddingRule(movement_rule, own_sizes=True),
        "reduction": PaddingRule(reduction_rule),
        "creation": PaddingRule(_creation_rule, own_sizes=True),
        "source": PaddingRule(_creation_rule, own_sizes=True),
    },
)


def _enter(marks: Mapping[str, MarkRule], *, own_sizes: bool = False) -> None:
    RULES.enter({name: PaddingRule(mark, own_sizes) for name, mark in marks.items()})


_enter({
    **dict.fromkeys(("multiply", "logical_and", "bitwise_and"), _deciding_rule(_product)),
    **dict.fromkeys(("logical_or", "bitwise_or"), _deciding_rule(_either)),
    "add": _deciding_rule(partial(_shift_rule, 1)),
    "subtract": _deciding_rule(partial(_shift_rule, -1)),
    "equal": _deciding_rule(partial(_equal, False)),
    "not_equal": _deciding_rule(partial(_equal, True)),
    "divide": _deciding_rule(_quotient),
    "where": _deciding_rule(_where),
    "less": _comparison_rule(np.greater_equal, 0),
    "less_equal": _comparison_rule(np.greater, 0),
    "greater": _comparison_rule(np.greater_equal, 1),
    "greater_equal": _comparison_rule(np.greater, 1),
    "max": partial(reduction_rule, identity=least),
    "min": partial(reduction_rule, identity=largest),
    "argmax": partial(reduction_rule, identity=least, numbers=True),
    "argmin": partial(reduction_rule, identity=largest, numbers=True),
    "any": partial(reduction_rule, identity=lambda _: 0),
    "all": partial(reduction_rule, identity=lambda _: 1),
    "prod": partial(reduction_rule, identity=lambda _: 1),
    "cumulative_sum": partial(running_rule, 0),
    "cumulative_prod": partial(running_rule, 1),
    "sort": partial(sort_rule, False),
    "argsort": partial(sort_rule, True),
    **dict.fromkeys(("linear_recurrence", "cumulative_argmax", "cumulative_argmin", "logcumsumexp"), along_rule),
})  # fmt: skip
_enter({
    "astype": _conversion_rule,
    **dict.fromkeys(("place", "pad"), partial(movement_rule, fills=True)),
    "take": partial(_take_rule, False),
    "take_along_axis": partial(_take_rule, True),
    "scatter_add": partial(_scatter_add_rule, False),
    "add_along_axis": partial(_scatter_add_rule, True),
    "scatter": anything,
    "sum": total_rule,
    **dict.fromkeys(("matmul", "convolution", "convolution_input", "convolution_weight"), linear_rule),
    **dict.fromkeys(("window_sum", "window_spread"), linear_rule),
}, own_sizes=True)  # fmt: skip
