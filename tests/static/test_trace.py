"""Tracing: what becomes part of the graph, and what Python may not ask of a value that is not there yet."""

from __future__ import annotations

import functools
import inspect
import statistics
from typing import Any

import numpy as np
import pytest

import graphs
import static
from graphs import TensorSpec
from graphs.errors import ControlFlowError, DTypeError, GraphError, ResultError, ShapeError
from tests.helpers.programs import program
from tests.helpers.together import together

X = np.ones(3)


def line_with(function: Any, text: str) -> str:
    """`test_trace.py:12`, the line of a function on which some text stands."""
    lines, start = inspect.getsourcelines(function)
    return f"test_trace.py:{start + next(i for i, line in enumerate(lines) if text in line)}"


# Values that are not there ------------------------------------------------------------------------------------


def branch(x):
    if x.sum() > 0:  # here
        return x * 2
    return x - 2


@together(
    "row,use,instead",
    [
        ("if x.sum() > 0: return x * 2 | x - 2", "Python `if`", "graphs.where(condition, a, b)"),
        ("while x.sum() < 10: x = x * 2 | x", "`while`", "graphs.where"),
        ("x.sum() > 0 and x.max() < 1", "`and` or `or`", "graphs.where"),
        ("assert (x > 0).all() | x", "Python `if`", "graphs.where"),
        ("x * float(x.sum())", "float()", "keep it a tensor"),
        ("x * math.sqrt(x.sum())", "float()", "keep it a tensor"),
        ("int(x.sum())", "int()", "static argument"),
        ("sum(x * i for i in range(graphs.astype(x.sum(), 'int64')))", "range()", "static argument"),
        ("[1, 2, 3][graphs.argmax(x)]", "an index", "graphs.take"),
        ("x * x.sum().item()", "item()", "keep it a tensor"),
        ("x.tolist()", "item()", "keep it a tensor"),
        ("np.asarray(x) + 1", "a NumPy array", "functions in graphs"),
        ("np.zeros(3).__setitem__(slice(None), x)", "a NumPy array", "functions in graphs"),
        ("f'{x.sum():.3f}'", "the format '.3f'", "as an output"),
        ("3 in x", "Python `if`", "graphs.where"),
        ("max(x)", "Python `if`", "graphs.where"),
        ("x[x > 0]", "x[mask]", "graphs.where(mask, x, 0)"),
    ],
)
def test_asking_for_a_value_names_the_line_and_what_to_write(row, use, instead):
    f = program(row)
    with pytest.raises(ControlFlowError) as caught:
        static.compile(f, X)
    message = str(caught.value)
    assert use in message
    assert instead in message
    assert f"{f.__code__.co_filename}:2" in message


@pytest.mark.parametrize("convert", [False, True])
def test_the_line_is_the_users_where_pythons_own_library_asks(convert):
    def middle(x):
        return statistics.median([x.sum(), 3])  # here

    with pytest.raises(ControlFlowError) as caught:
        static.compile(middle, X, convert=convert)
    assert line_with(middle, "# here") in str(caught.value)
    assert ("median is a function of a library, which is not converted" in str(caught.value)) == convert


def test_the_same_holds_inside_a_gradient_and_a_jit():
    for run in (lambda: static.grad(lambda x: branch(x).sum())(X), lambda: static.jit(branch)(X)):
        with pytest.raises(ControlFlowError, match="where") as caught:
            run()
        assert line_with(branch, "# here") in str(caught.value)


def test_python_on_shapes_static_values_and_containers_is_fine():
    def f(x, mode, layers):
        for i in range(x.shape[0]):
            x = x + i if i % 2 else x * 2
        for w in layers:
            x = x @ w
        return (x, len(x)) if mode == "pair" else x

    exe = static.compile(f, X, "pair", [np.eye(3), 2 * np.eye(3)])
    result, length = exe(X, "pair", [np.eye(3), np.eye(3)])
    np.testing.assert_array_equal(result, (((X * 2) + 1) * 2))
    assert length == 3


# Symbols that leave their trace -------------------------------------------------------------------------------


def test_a_symbol_that_leaked_is_refused_wherever_it_turns_up():
    leaked = []
    static.trace(lambda x: leaked.append(x) or x * 2, X)
    (symbol,) = leaked
    uses = [
        lambda: symbol + 1,
        lambda: graphs.sum(symbol),
        lambda: static.trace(lambda x: x + symbol, X),
        lambda: static.trace(lambda x: symbol, X),
        lambda: static.trace(lambda x: graphs.concat([x, symbol]), X),
        lambda: static.grad(lambda x: symbol.sum())(X),
        lambda: static.compile(lambda x: x, X)(symbol),
    ]
    for use in uses:
        with pytest.raises(ControlFlowError, match=r"trace had ended|another trace|unknown while"):
            use()


def test_an_outer_symbol_in_an_inner_compile_is_refused():
    def outer(x):
        return static.jit(lambda y: y + x)(np.ones(3))

    with pytest.raises(ControlFlowError, match="another trace"):
        static.trace(outer, X)


def test_a_failed_trace_leaves_none_open():
    with pytest.raises(ControlFlowError):
        static.trace(branch, X)
    assert len(static.trace(lambda x: x * 2, X)) == 3


# Constants --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 1000])
def test_captured_arrays_are_constants_by_value(size):
    captured = np.ones(size)
    exe = static.compile(lambda x: x + captured, np.ones(size))
    captured[:] = 100
    np.testing.assert_array_equal(exe(np.ones(size)), np.full(size, 2.0))


@pytest.mark.parametrize("size", [3, 1000])
def test_an_array_changed_during_the_trace_is_two_constants(size):
    def f(x):
        scratch = np.ones(size)
        y = x + scratch
        scratch[:] = 10
        return y * scratch

    np.testing.assert_array_equal(static.compile(f, np.ones(size))(np.ones(size)), f(np.ones(size)))


def test_python_numbers_take_the_dtype_they_meet():
    graph = static.trace(lambda x: (x + 1) * 2.5, np.ones(2, np.float32))
    assert {str(node.spec.dtype) for node in graph.nodes} == {"float32"}
    for engine_like in (lambda x: 300 + x, lambda x: x * -1):
        with pytest.raises(graphs.DTypeError, match="does not fit uint8"):
            static.trace(engine_like, np.ones(2, np.uint8))


# Errors before any data -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "specs", "words"),
    [
        (lambda a, b: a @ b, [(4, 3), (5, 2)], "matmul: inner dimensions differ, f32[4,3] @ f32[5,2]"),
        (lambda a, b: a + b, [(4, 3), (2, 3)], "add: sizes 4 and 2 do not broadcast, f32[4,3] + f32[2,3]"),
        (lambda a, b: a.reshape(5), [(4,), (1,)], "reshape: 4 elements"),
        (lambda a, b: a[7], [(4,), (1,)], "index 7 is out of range for axis 0 of size 4"),
        (lambda a, b: a.sum(axis=2), [(4,), (1,)], "axis 2 is out of range"),
        (lambda a, b: a & b, [(4,), (4,)], "bitwise_and: is not defined for these dtypes"),
        (lambda a, b: a + b, [("B", 3), ("T", 3)], "sizes B and T do not broadcast"),
        (lambda a, b: a @ b, [("B", "T"), (3, 4)], "inner dimensions differ, f32[B,T] @ f32[3,4]"),
    ],
)
def test_errors_of_shape_and_dtype_come_from_specs_alone(f, specs, words):
    with pytest.raises(GraphError) as caught:
        static.compile(f, *(TensorSpec(s, "float32") for s in specs))
    assert words in str(caught.value)
    assert f"test_trace.py:{f.__code__.co_firstlineno}" in str(caught.value)


def test_numpy_functions_without_an_op_are_refused():
    with pytest.raises(TypeError, match=r"np\.unwrap has no counterpart.*test_trace"):
        static.trace(lambda x: np.unwrap(x), X)  # noqa: PLW0108  (the line must be this file's)


def named(x):
    return {"name": "squares", "value": graphs.sum(x * x)}


@functools.wraps(named)
def wrapped(x):
    return named(x), object()


@pytest.mark.parametrize(("f", "what"), [(named, "'squares'"), (wrapped, "'squares'"), (lambda x: object(), "object")])
@pytest.mark.parametrize("call", [lambda f: static.jit(f)(X), lambda f: static.compile(f, X)], ids=["jit", "compile"])
def test_text_and_objects_in_a_result_are_refused_with_the_line_of_the_function(f, what, call):
    with pytest.raises(ResultError) as caught:
        call(f)
    rule, remedy = str(caught.value).split("; ")
    assert rule.startswith("tensors hold bools, ints or floats, not ")
    line = inspect.getsourcelines(inspect.unwrap(f))[1]
    assert what in rule
    assert rule.endswith(f"is in the result of {f.__name__} (test_trace.py:{line})")
    assert remedy == "return tensors and numbers, and add the rest outside"


@pytest.mark.parametrize("call", [lambda f, *args: static.jit(f)(*args), static.compile], ids=["jit", "compile"])
def test_an_array_of_text_is_refused_by_the_name_of_its_argument(call):
    batch = {"x": X, "ids": np.array(["a", "b"])}
    with pytest.raises(
        DTypeError, match=r"the argument batch\['ids'\]: .*, not <U1 \(test_trace.py:\d+\); convert first"
    ):
        call(lambda batch: batch["x"] * 2, batch)


# The graph --------------------------------------------------------------------------------------------------


def test_a_graph_prints_with_the_users_lines():
    def model(w, x):
        hidden = np.tanh(x @ w)  # hidden
        return hidden.sum()  # loss

    text = str(static.trace(model, TensorSpec((3, 2)), TensorSpec(("B", 3))))
    assert "graph model(%0 w: f32[3,2], %1 x: f32[B,3]) -> f32[]" in text
    for op, mark in (("matmul", "# hidden"), ("tanh", "# hidden"), ("sum", "# loss")):
        (line,) = [line for line in text.splitlines() if f"= {op}(" in line]
        assert line.endswith(line_with(model, mark))


def test_the_backward_pass_is_in_the_graph():
    graph = static.trace(static.value_and_grad(lambda w, x: np.tanh(x @ w).sum()), X, np.ones((2, 3)))
    counts = graph.op_counts()
    assert counts["tanh"] == 1
    assert counts["matmul"] >= 2
    assert [str(o.spec) for o in graph.outputs] == ["f64[]", "f64[3]"]


def test_only_what_is_asked_for_is_differentiated():
    """A cotangent nobody asked for is never computed (one rule per input)."""
    f = lambda w, x: (x @ w).sum()  # noqa: E731
    specs = TensorSpec((3, 2)), TensorSpec((4, 3))
    one, both = (static.trace(static.grad(f, argnums), *specs).op_counts() for argnums in (0, (0, 1)))
    assert both["matmul"] == one["matmul"] + 1


def test_symbolic_sizes_take_part_in_shapes():
    graph = static.trace(lambda x: (x.reshape(-1), x.reshape(x.shape[1], x.shape[0])), TensorSpec(("B", "T")))
    assert [str(o.spec) for o in graph.outputs] == ["f32[B*T]", "f32[T,B]"]


def test_python_on_a_symbolic_size_is_refused():
    for f in (lambda x: x[: len(x) // 2], lambda x: sum(range(x.shape[0])), lambda x: x if x.shape[0] > 3 else -x):
        with pytest.raises(ControlFlowError, match=r"test_trace\.py:\d+"):
            static.trace(f, TensorSpec(("B",)))
    with pytest.raises(ShapeError, match="identifiers"):
        TensorSpec(("B+1",))
