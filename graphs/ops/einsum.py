"""einsum: products summed over named axes, as permutations, reshapes and matrix products."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphs import dims
from graphs.dims import Size
from graphs.errors import DTypeError, GraphError, ShapeError, add_context, locate
from graphs.op import Array
from graphs.ops.dtypes import result_type
from graphs.ops.elementwise import multiply
from graphs.ops.linalg import diagonal, matmul
from graphs.ops.movement import broadcast_to, cast, moveaxis, permute_dims, reshape
from graphs.ops.reductions import sum
from graphs.ops.shapes import as_operand, dtype_of, shape_of
from graphs.spec import spec_of

__all__ = ["einsum"]

Label = str | int  # a letter, or the number of an axis that the ellipsis stands for, counted from the last


class Term(NamedTuple):
    """An array and the label of each of its axes."""

    array: Array
    labels: tuple[Label, ...]

    def size(self, label: Label) -> Size:
        """The size of the axis with this label; 1 when there is none."""
        return shape_of(self.array)[self.labels.index(label)] if label in self.labels else 1


def einsum(subscripts: str, /, *operands: Array) -> Array:
    """Products summed over the labels that the output leaves out: `einsum("bij,bjk->bik", x, y)` is `x @ y`.

    A label repeated in one operand takes its diagonal, `...` stands for axes that broadcast, and without `->` the
    output has the labels that occur once, in alphabetical order. More than two operands are multiplied in pairs, those
    with the smallest product first. Raises ShapeError when subscripts and shapes do not fit, and DTypeError for
    subscripts that are no string.
    """
    if not isinstance(subscripts, str):
        raise DTypeError(locate(f"einsum: subscripts are a string, not {type(subscripts).__name__}; write 'ij,jk->ik'"))
    values = [as_operand(o) for o in operands]
    try:
        inputs, output = _parse_subscripts(subscripts, [len(shape_of(v)) for v in values])
        dtype = result_type(*values)
        terms = [_without_repeats(Term(cast(v, dtype), labels)) for v, labels in zip(values, inputs, strict=True)]
        _check_sizes(terms)
        while len(terms) > 1:
            i, j = _cheapest_pair(terms, output)
            first, second, rest = terms[i], terms[j], [t for n, t in enumerate(terms) if n not in (i, j)]
            wanted = set(output).union(*(term.labels for term in rest))
            first, second = _sum_out(first, wanted | set(second.labels)), _sum_out(second, wanted | set(first.labels))
            terms = [*rest, _product(first, second, wanted)]
        last = _sum_out(terms[0], set(output))
        return _order_axes(last.array, [last.labels.index(label) for label in output])
    except GraphError as error:
        raise add_context(error, "einsum", ", ".join([repr(subscripts), *(repr(spec_of(v)) for v in values)])) from None


# Reading the subscripts -----------------------------------------------------------------------------------------


def _parse_subscripts(subscripts: str, ndims: Sequence[int]) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """The labels of each input and of the output."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(ndims):
        raise ShapeError(f"{len(parts)} subscripts for {len(ndims)} operands; write one for each, with commas between")
    inputs = [_labels(part, ndim) for part, ndim in zip(parts, ndims, strict=True)]
    dots = sorted({label for labels in inputs for label in labels if isinstance(label, int)})
    if not arrow:
        once = Counter(label for labels in inputs for label in labels if isinstance(label, str))
        return inputs, (*dots, *sorted(label for label, count in once.items() if count == 1))
    output = _labels(right, len(right.replace("...", "")) + len(dots))
    unknown = [label for label in output if not any(label in labels for labels in inputs)]
    if unknown or len(set(output)) < len(output):
        raise ShapeError(
            f"the output {right!r} has a label twice, or one that no input has; name each input label once"
        )
    return inputs, output


def _labels(part: str, ndim: int) -> tuple[Label, ...]:
    before, dots, after = part.partition("...")
    letters = before + after
    if not all(letter.isalpha() for letter in letters):
        raise ShapeError(f"labels are letters, got {part!r}; write the axes as in 'ij,jk->ik'")
    hidden = ndim - len(letters)
    if hidden < 0 or (hidden and not dots):
        raise ShapeError(f"{part!r} names {len(letters)} axes of an operand with {ndim}; name each, or write ...")
    return (*before, *range(-hidden, 0), *after)


def _without_repeats(term: Term) -> Term:
    """Take the diagonal over every label that occurs twice. Raises ShapeError for two sizes."""
    while len(set(term.labels)) < len(term.labels):
        label = next(label for label, count in Counter(term.labels).items() if count > 1)
        first = term.labels.index(label)
        second = term.labels.index(label, first + 1)
        sizes = [shape_of(term.array)[a] for a in (first, second)]
        if not dims.same(*sizes):
            raise ShapeError(f"{label!r} names axes of sizes {sizes[0]} and {sizes[1]} of one operand; make them equal")
        others = tuple(other for a, other in enumerate(term.labels) if a not in (first, second))
        term = Term(diagonal(moveaxis(term.array, (first, second), (-2, -1))), (*others, label))
    return term


def _check_sizes(terms: Sequence[Term]) -> None:
    for label in {label for term in terms for label in term.labels}:
        sizes = [term.size(label) for term in terms if not dims.same(term.size(label), 1)]
        for size in sizes[1:]:
            if not dims.same(size, sizes[0]):
                raise ShapeError(f"{label!r} has sizes {sizes[0]} and {size}; make them equal")


# Contracting ----------------------------------------------------------------------------------------------------


def _cheapest_pair(terms: Sequence[Term], output: tuple[Label, ...]) -> tuple[int, int]:
    """The pair whose product is smallest compared with its operands; the first pair when a size is symbolic."""
    pairs = list(itertools.combinations(range(len(terms)), 2))
    if len(pairs) == 1 or not all(isinstance(size, int) for term in terms for size in shape_of(term.array)):
        return pairs[0]

    def growth(pair: tuple[int, int]) -> Any:
        first, second = (terms[i] for i in pair)
        others = set(output).union(*(term.labels for i, term in enumerate(terms) if i not in pair))
        kept = others.intersection({*first.labels, *second.labels})
        product = dims.product(_joint_size(label, first, second) for label in kept)
        return product - dims.product(shape_of(first.array)) - dims.product(shape_of(second.array))

    return min(pairs, key=growth)


def _sum_out(term: Term, wanted: set[Label]) -> Term:
    """Sum the term over the labels that are not in `wanted`."""
    axes = tuple(a for a, label in enumerate(term.labels) if label not in wanted)
    return Term(_sum(term.array, axes), tuple(label for label in term.labels if label in wanted)) if axes else term


def _sum(array: Array, axes: tuple[int, ...]) -> Array:
    """Sum and keep the dtype, as matrix products do, where `sum` would widen small integers."""
    dtype = dtype_of(array)
    return sum(array, axis=axes) if dtype.kind == "f" else sum(array, axis=axes, dtype=dtype)


def _product(first: Term, second: Term, wanted: set[Label]) -> Term:
    """Multiply two terms, and sum over the labels that no other term needs."""
    shared = [label for label in first.labels if label in second.labels]
    summed = [label for label in shared if label not in wanted]
    batch = [label for label in shared if label in wanted]
    rows = [label for label in first.labels if label not in shared]
    columns = [label for label in second.labels if label not in shared]
    if summed and (rows or columns):
        # [batch, rows, summed] @ [batch, summed, columns]: each group of labels is one axis, each batch label its own.
        inner = [_joint_size(label, first, second) for label in summed]
        left = _group_axes(_stretch(first, summed, inner), batch, rows, summed)
        right = _group_axes(_stretch(second, summed, inner), batch, summed, columns)
        sizes = [_joint_size(label, first, second) for label in (*batch, *rows, *columns)]
        return Term(_reshape_if_needed(matmul(left, right), sizes), (*batch, *rows, *columns))
    labels = (*batch, *rows, *columns, *summed)
    product = multiply(_align_axes(first, labels), _align_axes(second, labels))
    kept = len(labels) - len(summed)
    return Term(_sum(product, tuple(range(kept, len(labels)))) if summed else product, labels[:kept])


def _joint_size(label: Label, first: Term, second: Term) -> Size:
    size = first.size(label)
    return second.size(label) if dims.same(size, 1) else size


def _stretch(term: Term, labels: list[Label], sizes: list[Size]) -> Term:
    """The term with axes of size 1 stretched along labels that are summed with a longer axis."""
    joint = dict(zip(labels, sizes, strict=True))
    shape = tuple(joint.get(label, term.size(label)) for label in term.labels)
    return term if dims.same_shape(shape, shape_of(term.array)) else Term(broadcast_to(term.array, shape), term.labels)


def _group_axes(term: Term, batch: list[Label], *groups: list[Label]) -> Array:
    """The axes of the batch, then one for each group; a vector when there is no batch and a group is empty."""
    order = [term.labels.index(label) for label in (*batch, *(label for group in groups for label in group))]
    array = _order_axes(term.array, order)
    filled = groups if batch else [group for group in groups if group]
    merged = [dims.product(term.size(label) for label in group) for group in filled]
    return _reshape_if_needed(array, [*(term.size(label) for label in batch), *merged])


def _align_axes(term: Term, labels: Sequence[Label]) -> Array:
    """The term with its axes in the order of `labels`, and size 1 for labels it does not have."""
    order = [term.labels.index(label) for label in labels if label in term.labels]
    return _reshape_if_needed(_order_axes(term.array, order), [term.size(label) for label in labels])


def _order_axes(array: Array, order: list[int]) -> Array:
    return array if order == list(range(len(order))) else permute_dims(array, order)


def _reshape_if_needed(array: Array, shape: Sequence[Size]) -> Array:
    return array if dims.same_shape(shape_of(array), shape) else reshape(array, shape)
