"""Passes: what each does to a small graph, printed before and after, and that no pass changes a bit."""

import itertools

import numpy as np
import optree
import pytest

import graphs as g
import static
from compare import workloads
from compare.engines.cases import traceable_loss
from graphs.ops.elementwise import fmod, sgn
from graphs.ops.special import gelu_gradient, gelu_op, silu_gradient, silu_op
from static.passes import pipeline
from static.passes.simplification import fold_constants, merge_common_subexpressions, remove_dead_code, simplify_algebra
from static.passes.views import eliminate_views
from tests.helpers.backends import BACKENDS
from tests.helpers.printed import node_lines
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together

X = g.TensorSpec((2, 3))


def lines(graph):
    return [line.strip() for line in node_lines(graph)]


def after(one, f, *specs):
    return lines(remove_dead_code(one(static.trace(f, *specs))))


def test_dead_code_goes_and_inputs_stay():
    def f(x, y):
        g.exp(x)
        return x * 2

    assert lines(static.trace(f, X, X)) == [
        "%2: f32[2,3] = exp(%0)",
        "%3: f32[] = constant(value=2.0, dtype=float32)",
        "%4: f32[2,3] = multiply(%0, %3)",
        "return %4",
    ]
    graph = remove_dead_code(static.trace(f, X, X))
    assert lines(graph) == [
        "%2: f32[] = constant(value=2.0, dtype=float32)",
        "%3: f32[2,3] = multiply(%0, %2)",
        "return %3",
    ]
    assert len(graph.inputs) == 2


def test_constants_are_folded():
    def f(x):
        return x * g.pow(g.ones_like(x), 2) - g.sum(x) * x.shape[0]

    b = static.trace(static.grad(g.mean), X)
    assert lines(remove_dead_code(fold_constants(b))) == [
        "%1: f32[] = constant(value=0.1666666716337204, dtype=float32)",
        "%2: f32[2,3] = broadcast_to(%1, shape=(2, 3))",
        "return %2",
    ]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    traced = static.trace(f, X)
    np.testing.assert_array_equal(fold_constants(traced)(values)[0], traced(values)[0])


def test_symbolic_and_large_results_are_not_folded():
    def symbolic(x):
        return x * g.cos(g.ones(x.shape[0], np.float32))

    assert any("cos" in line for line in after(fold_constants, symbolic, g.TensorSpec(("B",))))
    big = np.ones(1 << 15, np.float32)

    def large(x):
        return g.sum(static_cos(x, big)) + x

    def static_cos(x, values):
        return g.cos(g.where(x > 0, values, values)) + 0 * g.take(values, np.array([0]))

    graph = static.trace(large, g.TensorSpec(()))
    assert fold_constants(graph).op_counts()["cos"] == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 1,
        lambda x: 1 * x,
        lambda x: x / 1,
        lambda x: x - 0,
        lambda x: g.reshape(x, (2, 3)),
        lambda x: g.reshape(g.reshape(x, (6,)), (2, 3)),
        lambda x: x.T.T,
        lambda x: g.permute_dims(x, (0, 1)),
        lambda x: g.broadcast_to(x, (2, 3)),
        lambda x: g.astype(x, "float32"),
    ],
)
def test_what_changes_nothing_goes(f):
    assert after(lambda graph: simplify_algebra(eliminate_views(graph)), f, X) == ["return %0"]


@pytest.mark.parametrize(
    ("f", "op"),
    [
        (lambda x: x + 0, "add"),  # -0.0 + 0 is 0.0
        (lambda x: 0 - x, "subtract"),
        (lambda x: 1 / x, "divide"),
        (lambda x: x * g.ones((4, 2, 3), np.float32), "multiply"),  # broadcasts
        (lambda x: x * np.float64(1), "multiply"),  # promotes
        (lambda x: g.reshape(x, (3, 2)), "reshape"),
        (lambda x: x.T, "permute_dims"),
        (lambda x: g.astype(x, "float64"), "astype"),
        (lambda x: g.sum(g.reshape(x, (2, 3, 1)), axis=2), "sum"),  # the sum of -0.0 is 0.0
    ],
)
def test_what_changes_something_stays(f, op):
    assert op in simplify_algebra(eliminate_views(static.trace(f, X))).op_counts()


def test_reshapes_and_permutations_are_composed():
    graph = remove_dead_code(eliminate_views(static.trace(lambda x: g.reshape(g.reshape(x, (6,)), (3, 2)), X)))
    assert graph.op_counts() == {"reshape": 1}
    cube = g.TensorSpec((2, 3, 4))
    f = lambda x: g.permute_dims(g.permute_dims(x, (1, 2, 0)), (1, 0, 2))  # noqa: E731
    graph = remove_dead_code(eliminate_views(static.trace(f, cube)))
    assert graph.op_counts() == {"permute_dims": 1}
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(graph(values)[0], f(values))


def test_equal_computations_are_merged():
    def f(x):
        return g.exp(x) + g.sum(g.exp(x), axis=0) + g.sum(g.exp(x), axis=1, keepdims=True)

    counts = remove_dead_code(merge_common_subexpressions(static.trace(f, X))).op_counts()
    assert counts == {"exp": 1, "sum": 2, "add": 2}


def test_one_and_true_are_different_attributes():
    def f(x):
        return g.pad(x, 1, value=1), g.pad(x, 1, value=True)

    assert merge_common_subexpressions(static.trace(f, X)).op_counts() == {"pad": 2}


def test_a_result_returned_twice_is_two_arrays():
    exe = static.compile(lambda x: (g.exp(x), g.exp(x)), X)
    first, second = exe(np.ones((2, 3), np.float32))
    assert len(list(exe.graph.calls)) == 1
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("name", mostly_slow(workloads.names(), 2))
def test_every_exact_rung_gives_the_same_bits(name):
    workload = workloads.get(name)
    case = workload.case("small")
    step = static.value_and_grad(traceable_loss(case))
    example = case.examples[0]
    rungs = [((), False), (pipeline.REPLAY, False), (pipeline.REPLAY, True), (pipeline.SIMPLIFY, False)]
    rungs += [(pipeline.SIMPLIFY, True), (pipeline.SIMPLIFY * 2, True)]
    modes = [static.compile(step, case.params, *example, passes=passes, arena=arena) for passes, arena in rungs]
    expected, *others = [optree.tree_leaves(exe(case.params, *example)) for exe in modes]
    for other in others:
        for a, b in zip(expected, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_passes_reach_into_the_bodies_of_loops():
    def f(xs):
        def body(state, x):
            g.exp(x)  # nobody reads it
            return state * 1 + g.cos(x) + g.cos(x), ()

        return g.scan(body, g.zeros((), np.float32), xs)[0]

    (inner,) = next(n for n in static.trace(f, g.TensorSpec((4,))).nodes if n.subgraphs).subgraphs
    assert inner.op_counts() == {"exp": 1, "multiply": 1, "cos": 2, "add": 2}
    exe = static.compile(f, g.TensorSpec((4,)), passes=pipeline.SIMPLIFY)
    (inner,) = next(n for n in exe.graph.nodes if n.subgraphs).subgraphs
    assert inner.op_counts() == {"cos": 1, "add": 2}
    xs = np.linspace(0, 1, 4, dtype=np.float32)
    np.testing.assert_array_equal(exe(xs), static.compile(f, g.TensorSpec((4,)), passes=())(xs))


HARD = {
    "f": [-np.inf, -7.5, -2, -0.0, 0.0, 1e-30, 0.5, 3, np.inf, np.nan],
    "i": [-128, -7, -2, -1, 0, 1, 3, 127],
    "u": [0, 1, 3, 128, 255],
}


@pytest.mark.parametrize("backend", BACKENDS)
@together("op,dtype", itertools.product((sgn, fmod), ("f2", "f4", "f8", "i1", "i8", "u1")))
def test_the_parts_of_an_op_give_its_bits(op, dtype, backend):
    pairs = np.array([*itertools.product(HARD[dtype[0]], repeat=2)]).astype(dtype)
    args = [np.ascontiguousarray(column) for column in pairs.T[: op.arity]]
    with np.errstate(all="ignore"):
        expected = np.asarray(op.kernel(*args))
        result = static.compile(op, *args, backend=backend)(*args)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    numbers = expected == expected
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(expected)[numbers])


@together("op,dtype", itertools.product((gelu_op, gelu_gradient, silu_op, silu_gradient), ("f4", "f8")))
def test_the_parts_of_an_activation_give_its_bits(op, dtype):
    values = np.array([-7.5, -2, -0.0, 0.0, 1e-30, 0.5, 3, np.nan], dtype)
    args = [grid.reshape(-1) for grid in np.meshgrid(*(values,) * op.arity)]
    result = static.compile(op, *args, passes=(pipeline.decompose,))(*args)
    np.testing.assert_array_equal(result, op.kernel(*args), strict=True)
