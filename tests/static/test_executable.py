"""Executables: what they return, what they leave alone, symbolic sizes, refusals, errors at run time, reports."""

from __future__ import annotations

import ast
import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from graphs import TensorSpec
from graphs.errors import ControlFlowError, DTypeError, GraphError, ShapeError
from static.passes import pipeline

EACH_ARENA = pytest.mark.parametrize("arena", [True, False])


def mlp(p: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ p["w1"] + p["b1"])
    return ((hidden @ p["w2"] - y) ** 2).mean()


def mlp_arguments(rows: int = 5) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    p = {"w1": rng.normal(size=(4, 6)), "b1": rng.normal(size=6), "w2": rng.normal(size=(6, 1))}
    return p, rng.normal(size=(rows, 4)), rng.normal(size=(rows, 1))


def assert_same(one: Any, other: Any, rtol: float = 1e-12) -> None:
    for a, b in zip(graphs.tree.leaves(one), graphs.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-14)


# Outputs belong to the caller -----------------------------------------------------------------------------------

CONSTANT = np.arange(6.0).reshape(2, 3)


def all_kinds(x: Any) -> Any:
    """Outputs that are, or look at: an input, a constant, an arena buffer, each other."""
    y = x * 2
    z = y + 1  # stays in the arena: only a view of it is returned
    return {
        "input": x,
        "input view": x.T,
        "constant": CONSTANT + 0 * x[0, 0] if isinstance(x, float) else CONSTANT,
        "computed": y,
        "twice": y,
        "transposed": y.T,
        "part": y[0],
        "flat": y.reshape(6),
        "repeated": graphs.broadcast_to(y, (4, 2, 3)),
        "stopped": graphs.stop_gradient(y),
        "view of arena": z[:, 1:],
        "one view": np.flip(np.exp(x)),
        "number": 3.0,
    }


@EACH_ARENA
def test_outputs_share_memory_with_nothing(arena):
    x = np.ones((2, 3))
    exe = static.compile(all_kinds, x, arena=arena)
    first = exe(x)
    held = [*first.values(), x, CONSTANT]
    for i, one in enumerate(held):
        assert not any(np.shares_memory(one, other) for other in held[:i])
    expected = {name: value.copy() for name, value in first.items()}
    for value in first.values():
        value[...] = -1  # writeable, and seen by nobody
    second = exe(x)
    third = exe(x * 5)
    assert not any(np.shares_memory(a, b) for a, b in zip(second.values(), third.values(), strict=True))
    assert_same(second, expected)
    np.testing.assert_array_equal(x, 1)
    assert CONSTANT.max() == 5


@EACH_ARENA
def test_every_kind_of_output_is_right(arena):
    x = np.arange(6.0).reshape(2, 3)
    exe = static.compile(all_kinds, x, arena=arena)
    eager = all_kinds(dynamic.tensor(x))
    eager = {k: v.numpy() if isinstance(v, dynamic.Tensor) else v for k, v in eager.items()}
    assert_same(exe(x), eager)


@EACH_ARENA
def test_inputs_are_never_changed(arena):
    args = mlp_arguments()
    before = [leaf.copy() for leaf in graphs.tree.leaves(args)]
    for leaf in graphs.tree.leaves(args):
        leaf.flags.writeable = False
    static.compile(static.value_and_grad(mlp), *args, arena=arena)(*args)
    assert_same(args, before)


@EACH_ARENA
def test_layout_of_the_inputs_does_not_matter(arena):
    p, x, y = mlp_arguments()
    exe = static.compile(static.value_and_grad(mlp), p, x, y, arena=arena)
    strided = np.repeat(x, 2, axis=0)[::2]
    for other in (np.asfortranarray(x), strided, x[::-1][::-1], x.astype(">f8").astype("f8")):
        assert_same(exe(p, other, y), exe(p, x, y))


def test_numbers_and_lists_are_taken_where_arrays_are():
    exe = static.compile(lambda x: x * 2, TensorSpec((), "float64"))
    assert exe(3.0) == exe(np.float64(3)) == exe(np.array(3.0)) == 6


def test_no_output_and_no_input():
    assert static.compile(lambda x: None, np.ones(2))(np.ones(2)) is None
    assert static.compile(lambda: graphs.ones(3))().tolist() == [1, 1, 1]
    assert static.compile(lambda x, unused: x, np.ones(2), np.ones(3))(np.ones(2), np.ones(3)).tolist() == [1, 1]


def test_empty_arrays_run():
    exe = static.compile(lambda x, y: (x @ y, x.sum(axis=0), graphs.concat([x, x])), np.ones((0, 3)), np.ones((3, 2)))
    product, total, joined = exe(np.ones((0, 3)), np.ones((3, 2)))
    assert (product.shape, total.tolist(), joined.shape) == ((0, 2), [0, 0, 0], (0, 3))


# The generated code -------------------------------------------------------------------------------------------


@EACH_ARENA
def test_the_code_is_a_straight_line(arena):
    exe = static.compile(static.value_and_grad(mlp), *mlp_arguments(), arena=arena)
    (run,) = ast.parse(exe.source).body
    assert isinstance(run, ast.FunctionDef)
    assert {type(s) for s in run.body} <= {ast.Assign, ast.Expr, ast.Delete, ast.Return}
    forbidden = (ast.For, ast.While, ast.If, ast.Subscript, ast.ListComp, ast.GeneratorExp)
    assert not [n for n in ast.walk(run) if isinstance(n, forbidden)]
    assert {n.attr for n in ast.walk(run) if isinstance(n, ast.Attribute)} <= {"T"}  # of arguments
    calls = [n for n in ast.walk(run) if isinstance(n, ast.Call)]
    at_most = len(list(exe.graph.calls)) + len(exe.graph.outputs)
    assert len(calls) <= at_most


def test_kernels_write_into_the_arena_and_views_cost_no_call():
    def f(x):
        return (np.tanh(x.T @ x).T + 1).sum()

    def into_buffers(exe):
        return [s for s in ast.walk(ast.parse(exe.source)) if isinstance(s, ast.Expr)]

    assert len(into_buffers(static.compile(f, np.ones((3, 3))))) == 3  # matmul, tanh, add; the transposes are made once
    (written,) = into_buffers(static.compile(f, np.ones((3, 3)), arena=False))
    assert "v6" in ast.unparse(written)  # the sum of what lies transposed, which is not to lie so itself


def test_each_kernel_runs_as_often_as_the_graph_says():
    args = mlp_arguments()
    exe = static.compile(static.value_and_grad(mlp), *args, passes=pipeline.REPLAY)
    assert exe.graph.op_counts() == dynamic.record(dynamic.value_and_grad(mlp), *args).op_counts()


# Refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((np.ones((4, 3)), 2), ShapeError, "dimension compiled as 2 is 4"),
        ((np.ones((2, 3, 1)), 2), ShapeError, "x: compiled for f64[2,3], got 3 axes of sizes (2, 3, 1)"),
        ((np.ones((2, 3), "float32"), 2), DTypeError, "x: compiled for f64[2,3], got float32"),
        ((np.ones((2, 3)), 3), ShapeError, "compiled for the static value 2, got 3"),
        ((np.ones((2, 3)), 2.0), ShapeError, "compiled for the static value 2, got 2.0"),
        ((np.ones((2, 3)),), ShapeError, "arguments laid out as (*,), compiled for (*, *) ("),
        (([np.ones((2, 3))], 2), ShapeError, "arguments laid out as"),
        ((np.ones((2, 3)), 2, 3), ShapeError, "arguments laid out as"),
        (("text", 2), GraphError, "text"),
    ],
)
def test_arguments_of_another_kind_are_refused(args, error, words):
    exe = static.compile(lambda x, n: x * n, np.ones((2, 3)), 2)
    with pytest.raises(error) as caught:
        exe(*args)
    assert words in str(caught.value)
    assert "test_executable.py:" in str(caught.value)
    assert exe(np.ones((2, 3)), 2).sum() == 12


def lookup(table: Any, rows: Any) -> Any:
    doubled = table * 2
    return graphs.take(doubled, rows, axis=0).sum()  # here


@EACH_ARENA
def test_a_kernel_error_names_op_specs_and_the_line_of_the_model(arena):
    exe = static.compile(static.value_and_grad(lookup), np.ones((3, 2)), np.array([0, 1]), arena=arena)
    lines, start = inspect.getsourcelines(lookup)
    here = start + next(i for i, line in enumerate(lines) if "# here" in line)
    with pytest.raises(GraphError) as caught:
        exe(np.ones((3, 2)), np.array([0, 7]))
    for words in ("take", "f64[3,2], i64[2]", f"(test_executable.py:{here})", "index 7 is out of bounds"):
        assert words in str(caught.value)
    value, gradient = exe(np.ones((3, 2)), np.array([2, 2]))  # nothing is left over from the failed call
    assert value == 8
    assert gradient.tolist() == [[0, 0], [0, 0], [4, 4]]


# Symbolic sizes -----------------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 9))
def test_one_graph_for_every_size(rows, columns):
    _, x, y = mlp_arguments()
    rng = np.random.default_rng(rows * 10 + columns)
    p = {"w1": rng.normal(size=(columns, 6)), "b1": rng.normal(size=6), "w2": rng.normal(size=(6, 1))}
    x, y = rng.normal(size=(rows, columns)), rng.normal(size=(rows, 1))
    assert_same(SYMBOLIC(p, x, y), dynamic.value_and_grad(mlp)(p, x, y), rtol=1e-9)


SYMBOLIC = static.compile(
    static.value_and_grad(mlp),
    {"w1": TensorSpec(("D", 6), "f8"), "b1": TensorSpec((6,), "f8"), "w2": TensorSpec((6, 1), "f8")},
    TensorSpec(("B", "D"), "f8"),
    TensorSpec(("B", 1), "f8"),
)


@pytest.mark.parametrize(("b", "t"), [(0, 3), (3, 0), (0, 0), (1, 1), (1, 5), (4, 1), (2, 3)])
def test_sizes_zero_and_one_and_expressions_of_sizes(b, t):
    def f(x: Any) -> Any:
        rows, columns = x.shape
        flat = x.reshape(rows * columns)
        longer = graphs.concat([flat, flat, graphs.zeros(1, "float64")])
        return flat * 2, longer.reshape(2 * rows * columns + 1), x.sum(axis=0), x.T @ x, flat.reshape(rows, columns)

    exe = static.compile(f, TensorSpec(("B", "T"), "float64"))
    x = np.random.default_rng(0).normal(size=(b, t))
    assert_same(exe(x), f(x))
    assert [str(o.spec) for o in exe.graph.outputs][:2] == ["f64[B*T]", "f64[2*B*T+1]"]


def test_a_size_may_be_given_as_an_expression():
    t = graphs.dim("T")
    exe = static.compile(lambda x, y: x[1:] + y, TensorSpec((t + 1,)), TensorSpec((t,)))
    assert exe(np.ones(5, "f4"), np.ones(4, "f4")).shape == (4,)
    only = static.compile(lambda x: x.reshape(x.shape[0] // 2, 2), TensorSpec((2 * t,)))
    assert only(np.ones(6, "f4")).shape == (3, 2)
    for exe, size, words in ((only, 7, "no T >= 0 makes the dimension 2*T equal 7"), (only, 1, "2*T equal 1")):
        with pytest.raises(ShapeError) as caught:
            exe(np.ones(size, "f4"))
        assert words in str(caught.value)


def test_a_contradiction_names_the_dimension_and_both_values():
    exe = static.compile(lambda x, y: x + y, TensorSpec(("B", 2)), TensorSpec(("B", 2)))
    with pytest.raises(ShapeError, match=r"dimension B is 3 from the other inputs, but 4 here"):
        exe(np.ones((3, 2), "f4"), np.ones((4, 2), "f4"))
    assert exe(np.ones((3, 2), "f4"), np.ones((3, 2), "f4")).sum() == 12


def test_a_size_that_no_input_fixes_is_named():
    b, t = graphs.dim("B"), graphs.dim("T")
    exe = static.compile(lambda x: x * 2, TensorSpec((b * t,)))
    with pytest.raises(ShapeError, match="no input fixes the dimension B, T"):
        exe(np.ones(4, "f4"))


def test_a_size_takes_part_in_arithmetic():
    exe = static.compile(lambda x: x.sum() / x.shape[0] + graphs.arange(x.shape[0]).sum(), TensorSpec(("B",), "f8"))
    for n in (1, 4, 7):
        assert exe(np.full(n, 3.0)) == 3 + n * (n - 1) / 2


def test_all_sizes_share_the_arena_of_the_largest():
    exe = static.compile(lambda x: ((x + 1) * 2).sum(), TensorSpec(("B",), "f8"))
    for n in [*range(150, 0, -1), *range(1, 151)]:
        assert exe(np.ones(n)) == 4 * n
        assert exe.plan.peak <= exe.arena_bytes
    assert exe.plan.peak == exe.arena_bytes > 150 * 8


def test_a_larger_size_gets_an_arena_of_its_own():
    exe = static.compile(lambda x: ((x + 1) * 2).sum(), TensorSpec(("B",), "f8"))
    peaks = []
    for n in (3, 40, 20, 3, 40):
        assert exe(np.ones(n)) == 4 * n
        peaks.append(exe.plan.peak)
    assert exe.arena_bytes == peaks[0] + peaks[1]


# Reports ------------------------------------------------------------------------------------------------------


def test_the_report_counts():
    weights = np.ones((64, 8), np.float32)
    exe = static.compile(lambda x: np.tanh((x @ weights) * 2).sum(), np.ones((4, 64), np.float32))
    report = exe.report()
    assert report.nodes == len(exe.graph) == 7
    assert report.constant_bytes == weights.nbytes + 4
    assert report.structure_bytes > 0
    assert report.plan == exe.plan
    assert report.plan.lower_bound == 4 * 8 * 4  # each result over its operand
    assert report.arena_bytes == report.plan.peak >= report.plan.lower_bound
    assert [step.name for step in report.steps] == [one.__name__ for one in pipeline.DEFAULT]
    assert "7 nodes" in str(report)
    assert "live at once" in str(report)


def test_a_symbolic_graph_has_a_plan_once_it_has_met_numbers():
    exe = static.compile(lambda x: ((x * 2) + 1).sum(), TensorSpec(("B",)), passes=pipeline.SIMPLIFY)
    assert exe.report().plan is None
    with pytest.raises(GraphError, match="call it once first"):
        _ = exe.plan
    exe(np.ones(96, "f4"))
    assert exe.plan.lower_bound == 96 * 4
    assert exe.report().plan == exe.plan


def test_dead_code_is_removed_and_the_inputs_stay():
    def f(x: Any, unused: Any) -> Any:
        np.exp(x)
        return x * 2

    traced, exe = static.trace(f, np.ones(2), np.ones(3)), static.compile(f, np.ones(2), np.ones(3))
    assert "exp" in traced.op_counts()
    assert exe.graph.op_counts() == {"multiply": 1}
    assert len(exe.graph.inputs) == 2
    assert repr(exe).startswith("<executable f(f64[2], f64[3])")


def test_the_arena_is_used_again_by_the_next_call_not_grown():
    exe = static.compile(static.value_and_grad(mlp), *mlp_arguments())
    before = exe.arena_bytes
    for _ in range(5):
        exe(*mlp_arguments())
    assert exe.arena_bytes == before == exe.plan.peak


def test_two_executables_in_two_threads():
    args = mlp_arguments()
    expected = dynamic.value_and_grad(mlp)(*args)
    wrong = []

    def work() -> None:
        exe = static.compile(static.value_and_grad(mlp), *args)
        for _ in range(50):
            value, _ = exe(*args)
            if not np.isclose(value, expected[0]):
                wrong.append(value)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_executable_inside_a_trace_is_refused():
    inner = static.compile(lambda x: x * 2, np.ones(2))
    with pytest.raises(ControlFlowError, match="test_executable"):
        static.compile(lambda x: inner(x), np.ones(2))  # noqa: PLW0108


@pytest.mark.parametrize("f", [graphs.log, lambda x: graphs.sum(graphs.sqrt(graphs.log(x) * 2))])
def test_a_warning_of_a_kernel_is_numpys(f: Callable[..., Any]) -> None:
    x = np.array([0.0, -1.0, 2.0] * 400, np.float32)
    executable = static.compile(f, x)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        executable(x)
    assert {warning.category for warning in seen} == {RuntimeWarning}
