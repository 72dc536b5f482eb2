"""Running the ops of a group as one: for each family a rule from inputs with a new first axis to such a result.

A second way needs no rule: an op that treats each row (each index of the first axis) alike runs unchanged on the rows
of all inputs together, whose numbers of rows may then differ: `row_roles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dynamic.tensor import Tensor
from graphs.op import Attrs, Op, RuleTable
from graphs.ops.elementwise import negative
from graphs.ops.indexing import take, take_along_axis
from graphs.ops.linalg import matmul
from graphs.ops.movement import broadcast_to, expand_dims, permute_dims, reshape, stack
from graphs.ops.reductions import mean

Shape = tuple[int, ...]


class Form(NamedTuple):
    """One input of all ops in a group: its shape, and whether it is stacked on a new first axis or shared by all."""

    shape: Shape
    stacked: bool


Roles = tuple[bool, ...]
Runner = Callable[[Sequence[Tensor], int], Tensor]
"""`run(tensors, count)`: the results of `count` ops on a first axis."""
RunnerRule = Callable[[Op, Sequence[Form], Attrs], Runner]
"""`rule(op, forms, attrs)`: how to run the op on inputs of these forms, of which some are stacked."""
RowTest = Callable[[Sequence[Shape], Roles, Attrs, Shape], Roles | None]


def runner(op: Op, attrs: Attrs, forms: Sequence[Form], rule: RunnerRule | None) -> Runner:
    """The runner for equal ops on inputs of these forms: once if all inputs are shared, one by one without a rule."""
    if not any(form.stacked for form in forms):
        return plain(op, attrs)
    return _one_by_one(op, forms, attrs) if rule is None else rule(op, forms, attrs)


def plain(op: Op, attrs: Attrs) -> Runner:
    """The runner that applies the op unchanged."""
    if attrs or (op.prepare is not None and op is not matmul):
        return lambda tensors, _count: op.apply(tensors, attrs)
    return lambda tensors, _count: op(*tensors)


def _one_by_one(op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        rows = [[t[i] if form.stacked else t for t, form in zip(tensors, forms, strict=True)] for i in range(count)]
        return stack([op.apply(row, attrs) for row in rows])

    return run


class BatchingRule(NamedTuple):
    """How equal ops run as one.

    stacked  the rule for inputs of which some have a new first axis; None if the ops run one by one
    rows     for an op that treats each row alike: which inputs have rows
    offset   the first element of the result in the first input, if the result is a run of its elements
    joins    whether the result is the inputs one after the other, along the first axis
    """

    stacked: RunnerRule | None = None
    rows: RowTest | None = None
    offset: Callable[[Shape, Attrs], int | None] | None = None
    joins: bool = False


def stacked_rule(op: Op, attrs: Attrs) -> RunnerRule | None:
    """The rule to run an op on stacked inputs; None for ops that run one by one."""
    if not all(isinstance(e, (int, slice, type(None))) for e in attrs.get("key", ())):
        return None
    if "axis" in attrs and attrs["axis"] is None:
        return None
    return RULES[op].stacked


def view_offset(op: Op, shape: Shape, attrs: Attrs) -> int | None:
    """The first element of the result in the input, if the result is a run of its elements; else None."""
    offset = RULES[op].offset
    return offset(shape, attrs) if offset else None


def _first_of_run(shape: Shape, attrs: Attrs) -> int | None:
    """The first element that a key selects, if the selected elements are successive; else None.

    They are successive if the key selects one index of each axis, then successive indices of one more, then all of the
    remaining axes.
    """
    chosen = [_selected_indices(entry, size) for entry, size in zip(_of_axes(attrs["key"]), shape, strict=True)]
    if not all(chosen):
        return 0  # no elements
    offset, narrowed = 0, True
    for indices, size in zip(chosen, shape, strict=True):
        count = len(indices)
        if (count > 1 and indices.step != 1) or (count < size and not narrowed):
            return None
        offset = offset * size + indices[0]
        narrowed = narrowed and count == 1
    return offset


def _of_axes(key: Sequence[Any]) -> list[Any]:
    """The entries of a key that select from an axis, without None, which adds one."""
    return [entry for entry in key if entry is not None]


def _selected_indices(entry: int | slice, size: int) -> range:
    """The indices that an entry selects from an axis, in order."""
    return range(size)[entry] if isinstance(entry, slice) else range(size)[entry % size :][:1]


def full(tensor: Tensor, form: Form, count: int) -> Tensor:
    """The stacked input; a shared input is broadcast along a new first axis."""
    return tensor if form.stacked else broadcast_to(tensor, (count, *form.shape))


def _alignment(form: Form, ndim: int) -> Shape | None:
    """The `ndim`-axis shape that makes a stacked input broadcast behind the first axis; None if it does already."""
    missing = ndim - len(form.shape)
    return (1,) * missing + form.shape if form.stacked and missing > 0 else None


def _with_aligned_inputs(shapes: Sequence[Shape | None], then: Runner) -> Runner:
    """Wrap a runner to reshape inputs to these shapes behind the first axis; None leaves an input unchanged."""
    if not any(shape is not None for shape in shapes):
        return then

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        pairs = zip(tensors, shapes, strict=True)
        return then([t if shape is None else reshape(t, (count, *shape)) for t, shape in pairs], count)

    return run


def _elementwise(op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    ndim = max(len(form.shape) for form in forms)
    return _with_aligned_inputs([_alignment(form, ndim) for form in forms], plain(op, attrs))


def _same(op: Op, _forms: Sequence[Form], attrs: Attrs) -> Runner:
    return plain(op, attrs)


def _next_axis(op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    """Run the op with its axis, or axes, moved one place behind the new first axis."""
    axis = attrs["axis"]
    moved = axis + 1 if isinstance(axis, int) else tuple(a + 1 for a in axis)
    return _all_stacked(forms, plain(op, {**attrs, "axis": moved}))


def _all_stacked(forms: Sequence[Form], then: Runner) -> Runner:
    if all(form.stacked for form in forms):
        return then
    return lambda tensors, count: then([full(t, form, count) for t, form in zip(tensors, forms, strict=True)], count)


def _with_attributes(**change: Callable[[Any], Any]) -> RunnerRule:
    """Make a rule that runs the op with some attributes changed for the new first axis."""
    return lambda op, _forms, attrs: plain(op, attrs | {name: f(attrs[name]) for name, f in change.items()})


def _broadcast_to(op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    shape = attrs["shape"]
    return _with_aligned_inputs(
        [_alignment(forms[0], len(shape))], lambda tensors, count: op.apply(tensors, {"shape": (count, *shape)})
    )


def _setitem(op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    x, value = forms
    key = attrs["key"]
    ndim = len(x.shape) - sum(isinstance(e, int) for e in key) + key.count(None)
    moved = {"key": (slice(None), *key)}

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        return op.apply([full(tensors[0], x, count), tensors[1]], moved)

    return _with_aligned_inputs([None, _alignment(value, ndim)], run)


def _matmul(op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    x, y = forms
    if not y.stacked and len(y.shape) == 2:  # one product of all rows together
        return plain(op, attrs) if len(x.shape) == 1 else _all_rows(x.shape, y.shape)
    if not x.stacked and len(x.shape) == 2 and len(y.shape) == 1:
        return lambda tensors, _count: matmul(tensors[1], permute_dims(tensors[0]))
    ndim = max(len(x.shape), len(y.shape), 2)
    left, right = (_as_matrix(form, at) for form, at in ((x, -1), (y, -2)))
    matrix_shapes = [_matrix_shape(form, matrix, ndim) for form, matrix in ((x, left), (y, right))]
    dropped = [at for form, at in ((x, -2), (y, -1)) if len(form.shape) == 1]

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        u, v = [
            t if shape is None else reshape(t, (count, *shape) if form.stacked else shape)
            for t, shape, form in zip(tensors, matrix_shapes, forms, strict=True)
        ]
        return _without(matmul(u, v), dropped)

    return run


def _all_rows(x: Shape, y: Shape) -> Runner:
    """The runner for a stacked x of two axes or more times one shared matrix y."""
    *before, inner = x
    rows = math.prod(before)

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        product = matmul(reshape(tensors[0], (count * rows, inner)), tensors[1])
        return reshape(product, (count, *before, y[-1]))

    return run


def _as_matrix(form: Form, vector_axis: int) -> Shape:
    """The shape of a vector as a row (`vector_axis` -1) or a column (-2); other shapes unchanged."""
    if len(form.shape) > 1:
        return form.shape
    return (*form.shape, 1) if vector_axis == -2 else (1, *form.shape)


def _matrix_shape(form: Form, matrix: Shape, ndim: int) -> Shape | None:
    """The shape that an operand is reshaped to behind its first axis, if it has one; None if it needs no reshape."""
    aligned = (1,) * (ndim - len(matrix)) + matrix if form.stacked else matrix
    return None if aligned == form.shape else aligned


def _without(x: Tensor, axes: Sequence[int]) -> Tensor:
    dropped = {a % x.ndim for a in axes}
    return reshape(x, [s for a, s in enumerate(x.shape) if a not in dropped]) if dropped else x


def _take(_op: Op, forms: Sequence[Form], attrs: Attrs) -> Runner:
    x, indices = forms
    axis = attrs["axis"]
    if not indices.stacked:
        return lambda tensors, _count: take(tensors[0], tensors[1], axis=axis + 1)
    if not x.stacked:
        order = [axis, *(a for a in range(len(x.shape) + len(indices.shape)) if a != axis)]
        return lambda tensors, _count: permute_dims(take(tensors[0], tensors[1], axis=axis), order)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    flat = (*(1,) * axis, math.prod(indices.shape), *(1,) * len(after))
    shape = (*before, *indices.shape, *after)

    def run(tensors: Sequence[Tensor], count: int) -> Tensor:
        picked = take_along_axis(tensors[0], reshape(tensors[1], (count, *flat)), axis=axis + 1)
        return reshape(picked, (count, *shape))

    return run


def _nll_loss(_op: Op, forms: Sequence[Form], _attrs: Attrs) -> Runner:
    axes = range(1, len(forms[0].shape) + 1)

    def run(tensors: Sequence[Tensor], _count: int) -> Tensor:
        return negative(mean(take_along_axis(tensors[0], expand_dims(tensors[1], -1), axis=-1), axis=axes))

    return _all_stacked(forms, run)


# The other way: ops on rows ----------------------------------------------------------------------------------------


def row_roles(op: Op, shapes: Sequence[Shape], constant: Roles, attrs: Attrs, out: Shape) -> Roles | None:
    """For an op that treats each row alike: which inputs have rows (True), and which are the same for every row.

    None for any other op, and where an input would have to be repeated for each row.
    """
    test = RULES[op].rows
    return test(shapes, constant, attrs, out) if test and out else None


def _elementwise_rows(shapes: Sequence[Shape], constant: Roles, _attrs: Attrs, out: Shape) -> Roles | None:
    roles = tuple(not c for c in constant)
    right = [
        len(s) == len(out) and s[0] == out[0] if rows else len(s) < len(out)
        for s, rows in zip(shapes, roles, strict=True)
    ]
    return roles if all(right) and any(roles) and len(out) > 1 else None


def _matmul_rows(shapes: Sequence[Shape], constant: Roles, _attrs: Attrs, _out: Shape) -> Roles | None:
    x, y = shapes
    return (True, False) if len(x) > 1 and len(y) == 2 and constant == (False, True) else None


def _take_rows(shapes: Sequence[Shape], constant: Roles, attrs: Attrs, _out: Shape) -> Roles | None:
    return (False, True) if constant[0] and attrs["axis"] == 0 and shapes[1] else None


def _rows_unless(touched: Callable[[Attrs], bool]) -> Callable[..., Roles | None]:
    """Make the row test of ops whose inputs all have rows, unless the attributes say the first axis is `touched`."""

    def test(shapes: Sequence[Shape], _constant: Roles, attrs: Attrs, _out: Shape) -> Roles | None:
        return None if min(map(len, shapes)) < 2 or touched(attrs) else (True,) * len(shapes)

    return test


def _along_rows(attrs: Attrs) -> bool:
    axis = attrs["axis"]
    return axis is None or axis == 0 or (isinstance(axis, tuple) and 0 in axis)


# Table --------------------------------------------------------------------------------------------------------------

RULES: RuleTable[BatchingRule] = RuleTable(
    "batching", otherwise=BatchingRule(), families={"elementwise": BatchingRule(_elementwise, _elementwise_rows)}
)
_ALONG = BatchingRule(_next_axis, _rows_unless(_along_rows))
RULES.for_op(
    *("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumulative_sum", "cumulative_prod"),
    *("linear_recurrence", "sort", "argsort", "flip", "roll", "take_along_axis", "softmax", "log_softmax"),
    *("softmax_gradient", "log_softmax_gradient", "logcumsumexp", "cumulative_argmax", "cumulative_argmin"),
    "extreme_along_axis",
)(_ALONG)
RULES.for_op("concat", "stack")(_ALONG._replace(joins=True))
RULES.for_op("astype", "identity", "stop_gradient")(BatchingRule(_same, _rows_unless(lambda _: False)))
# Ops on matrices along the last two axes of one operand; each matrix of a batch is computed by itself.
RULES.for_op("inv", "pinv", "det", "cofactor", "slogdet", "cholesky", "eigh", "svd", "qr", "complement")(
    BatchingRule(_same)
)
RULES.enter(
    {
        "solve": BatchingRule(_elementwise),  # batches broadcast, and each operand is of matrices
        "broadcast_to": BatchingRule(_broadcast_to),
        "reshape": BatchingRule(offset=lambda _shape, _attrs: 0),
        "permute_dims": BatchingRule(
            _with_attributes(axes=lambda axes: (0, *(a + 1 for a in axes))),
            _rows_unless(lambda attrs: attrs["axes"][0] != 0),
        ),
        "pad": BatchingRule(
            _with_attributes(pad_width=lambda widths: ((0, 0), *widths)),
            _rows_unless(lambda attrs: attrs["pad_width"][0] != (0, 0)),
        ),
        "getitem": BatchingRule(
            _with_attributes(key=lambda key: (slice(None), *key)),
            _rows_unless(lambda attrs: attrs["key"][0] != slice(None)),
            _first_of_run,
        ),
        "setitem": BatchingRule(_setitem),
        "matmul": BatchingRule(_matmul, _matmul_rows),
        "take": BatchingRule(_take, _take_rows),
        "flat_index": BatchingRule(_elementwise, _elementwise_rows),
        "nll_loss": BatchingRule(_nll_loss),
    }
)
