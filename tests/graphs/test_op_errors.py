"""What a wrong call says: the op, the specs, the rule, the user's line and the remedy, however it is run."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import ControlFlowError, DTypeError, ShapeError
from tests.helpers.together import together


def on_arrays(call):
    call(lambda *shape: np.zeros(shape, np.float32))


def on_tensors(call):
    call(lambda *shape: dynamic.tensor(np.zeros(shape, np.float32)))


def on_symbols(call):
    static.trace(lambda x: call(lambda *shape: g.broadcast_to(x, shape)), np.zeros((), np.float32))


each_way = pytest.mark.parametrize("way", [on_arrays, on_tensors, on_symbols])

# The call, the error, the message up to the line, and the remedy after it.
WRONG = [
    (
        lambda x: g.matmul(x(4, 3), x(5, 3)),
        ShapeError,
        "matmul: inner dimensions differ, f32[4,3] @ f32[5,3]",
        "transpose the second?",
    ),
    (
        lambda x: g.matmul(x(3, 4), x(3, 5)),
        ShapeError,
        "matmul: inner dimensions differ, f32[3,4] @ f32[3,5]",
        "transpose the first?",
    ),
    (lambda x: g.matmul(x(), x(3)), ShapeError, "matmul: needs at least one axis on each side, f32[]", "use multiply"),
    (
        lambda x: g.add(x(2, 3), x(4)),
        ShapeError,
        "add: sizes 3 and 4 do not broadcast, f32[2,3] + f32[4]",
        "make them equal, or one of them 1",
    ),
    (lambda x: g.where(x(2) > 0, x(3), 0), ShapeError, "where: sizes 2 and 3 do not broadcast, bool[2]", "make them"),
    (lambda x: g.sum(x(2, 3), axis=2), ShapeError, "sum: axis 2 is out of range for 2 axes, f32[2,3]", "use -2 to 1"),
    (lambda x: g.sum(x(2, 3), axis=(0, -2)), ShapeError, "sum: axis (0, -2) names an axis twice, f32[2,3]", "once"),
    (
        lambda x: g.mean(x(2, 3), axis=0.5),
        ShapeError,
        "mean: an axis is an int, got 0.5, f32[2,3]",
        "count axes from 0",
    ),
    (lambda x: g.max(x(0, 3), axis=0), ShapeError, "max: reducing over no elements has no value", "check the size"),
    (lambda x: g.argmax(x(0)), ShapeError, "argmax: reducing over no elements has no value", "check the size"),
    (lambda x: g.cumulative_sum(x()), ShapeError, "cumulative_sum: axis -1 is out of range for 0 axes", "expand_dims"),
    (lambda x: g.reshape(x(2, 3), (4,)), ShapeError, "reshape: 6 elements do not fill a shape of (4,), f32[2,3]", "-1"),
    (lambda x: g.reshape(x(2, 3), (-1, 4)), ShapeError, "reshape: 6 elements do not fill a shape of (-1, 4)", "change"),
    (lambda x: g.reshape(x(2, 3), (-1, -1)), ShapeError, "reshape: only one size of a new shape can be -1", "give the"),
    (lambda x: g.permute_dims(x(2, 3), (0, 0)), ShapeError, "permute_dims: axes (0, 0) are no permutation", "once"),
    (
        lambda x: g.broadcast_to(x(2, 3), (3,)),
        ShapeError,
        "broadcast_to: does not broadcast to (3,), f32[2,3]",
        "reshape",
    ),
    (lambda x: g.flip(x(2), axis=1), ShapeError, "flip: axis 1 is out of range for 1 axes, f32[2]", "use -1 to 0"),
    (
        lambda x: g.concat([x(2, 3), x(2, 4)]),
        ShapeError,
        "concat: shapes may differ along axis 0 only, f32[2,3], f32[2,4]",
        "pad or slice",
    ),
    (lambda x: g.concat([]), ShapeError, "concat: needs at least one array", "pass a list"),
    (
        lambda x: g.stack([x(2), x(3)]),
        ShapeError,
        "stack: stacked arrays have one shape, f32[2], f32[3]",
        "broadcast or pad",
    ),
    (
        lambda x: g.pad(x(2, 3), [(1, 1)]),
        ShapeError,
        "pad: pad widths are 0 or more, a pair for each axis, f32[2,3]",
        "(",
    ),
    (
        lambda x: g.take(x(2, 3), x(2)),
        DTypeError,
        "take: indices must be integers, f32[2,3], f32[2]",
        "astype(x, 'int64')",
    ),
    (
        lambda x: g.take_along_axis(x(2, 3), np.zeros((3, 1), int)),
        ShapeError,
        "take_along_axis: indices have the shape of x except along axis 1, f32[2,3], i64[3,1]",
        "broadcast them first",
    ),
    (
        lambda x: g.setitem(x(2, 3), x(4), 0),
        ShapeError,
        "setitem: sizes 4 and 3 do not broadcast, f32[2,3]",
        "make them",
    ),
    (
        lambda x: g.bitwise_and(x(3), x(3)),
        DTypeError,
        "bitwise_and: is not defined for these dtypes, f32[3] & f32[3]",
        "as",
    ),
    (
        lambda x: g.cross_entropy(x(2, 3), x(2)),
        DTypeError,
        "nll_loss: labels must be integers, f32[2,3], f32[2]",
        "astype",
    ),
    (lambda x: g.squeeze(x(2, 3), 0), ShapeError, "squeeze: axis 0 has a size other than 1, f32[2,3]", "reshape"),
    (
        lambda x: g.expand_dims(x(2), 5),
        ShapeError,
        "expand_dims: axis 5 is out of range for 2 axes, f32[2]",
        "use -2 to 1",
    ),
    (
        lambda x: g.matrix_transpose(x(3)),
        ShapeError,
        "matrix_transpose: needs at least 2 axes, got 1, f32[3]",
        "expand_dims",
    ),
    (
        lambda x: g.moveaxis(x(2, 3), 0, 2),
        ShapeError,
        "moveaxis: axis 2 is out of range for 2 axes, f32[2,3]",
        "use -2",
    ),
    (lambda x: g.unstack(x()), ShapeError, "unstack: axis 0 is out of range for 0 axes, f32[]", "expand_dims"),
    (lambda x: g.index(x(2, 3), 2), ShapeError, "getitem: index 2 is out of range for axis 0 of size 2", "use -2 to 1"),
    (lambda x: g.index(x(2, 3), (0, 0, 0)), ShapeError, "index: 3 indices for 2 axes, f32[2,3]", "remove 1"),
    (
        lambda x: g.index(x(2, 3), (..., ...)),
        ShapeError,
        "index: an index holds at most one Ellipsis, f32[2,3]",
        "write",
    ),
    (lambda x: g.index(x(2, 3), 1.5), DTypeError, "take: indices must be integers, f32[2,3], 1.5", "astype"),
    (
        lambda x: g.index(x(3), [True, False]),
        ShapeError,
        "index: a mask of 2 for an axis of size 3, f32[3]",
        "make them",
    ),
    (
        lambda x: g.index(x(2, 3), ([2], [0])),
        ShapeError,
        "flat_index: an index is out of range for an axis of size 2",
        "use -2",
    ),
]


@each_way
@together(("call", "error", "rule", "remedy"), WRONG, ids=[case[2].partition(",")[0] for case in WRONG])
def test_a_wrong_call_names_op_specs_rule_line_and_remedy(way, call, error, rule, remedy):
    with pytest.raises(error) as caught:
        way(call)
    before, semicolon, after = str(caught.value).partition(";")
    assert before.startswith(rule)
    assert before.endswith(f"(test_op_errors.py:{call.__code__.co_firstlineno})")
    assert semicolon
    assert remedy in after


@each_way
def test_errors_are_the_builtin_kinds_too(way):
    with pytest.raises(ValueError, match="do not broadcast"):
        way(lambda x: g.add(x(2), x(3)))
    with pytest.raises(TypeError, match="not defined"):
        way(lambda x: g.bitwise_or(x(2), x(2)))


@pytest.mark.parametrize("other", ["a", None, [1, "b"]])
@each_way
def test_what_is_no_number_is_refused(way, other):
    with pytest.raises(DTypeError, match=r"add: .*test_op_errors.py"):
        way(lambda x: g.add(x(2), other))


@each_way
def test_complex_is_refused(way):
    with pytest.raises(
        DTypeError, match=r"astype: tensors hold bools, ints or floats, not complex64, .*f32\[2\].*; convert"
    ):
        way(lambda x: g.astype(x(2), "complex64"))


@each_way
def test_a_call_with_too_few_inputs_says_how_many(way):
    with pytest.raises(TypeError, match="add takes 2 inputs"):
        way(lambda x: g.add(x(2)))


def test_a_symbolic_mask_says_what_to_write_instead():
    with pytest.raises(ControlFlowError, match=r"\(test_op_errors.py:\d+\); use graphs.where\(mask, x, 0\)"):
        static.trace(lambda x: x[x > 0], np.zeros(3))


@pytest.mark.parametrize("condition", [lambda x: bool(x.sum() > 0), lambda x: float(x.sum()), lambda x: range(x.sum())])
def test_python_asking_a_symbol_for_its_value_names_the_line(condition):
    with pytest.raises(ControlFlowError, match=rf"test_op_errors.py:{condition.__code__.co_firstlineno}"):
        static.trace(condition, np.zeros(3))
