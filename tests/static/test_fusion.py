"""Fusion: what is grouped, that blocks of any size give the bits of the graph before, and what sums may change."""

import itertools
import warnings

import numpy as np
import optree
import pytest

import graphs as g
import static
from graphs import op as registry
from graphs.errors import GraphError, VerificationError
from graphs.ir import Graph, Node
from static import debug
from static.codegen import groups as blocks
from static.codegen import groups as groups_lowering
from static.passes import fusion, pipeline
from static.passes.fusion import fused, result
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together

X = g.TensorSpec((40, 6), "float64")
FUSED = (*pipeline.SIMPLIFY, fusion.fuse)


@pytest.fixture
def everywhere(monkeypatch):
    """Groups of any size, in blocks of a few rows."""
    monkeypatch.setattr(fusion, "SMALLEST", 2)
    monkeypatch.setattr(fusion, "CACHE_BYTES", -1)
    monkeypatch.setattr(blocks, "CACHE_BYTES", -1)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 14)


def groups(exe: static.Executable) -> list[Node]:
    return [node for graph in exe.graph.nested() for node in graph.nodes if node.op is fused]


def bodies(exe: static.Executable) -> list[list[str]]:
    """The ops of each group, in order."""
    return [[n.op.name for n in node.attrs["body"].calls] for node in groups(exe)]


def same_bits(one, other):
    for a, b in zip(optree.tree_leaves(one), optree.tree_leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def both(f, *args):
    """The executable with groups, after a check that it gives the bits of the one without."""
    exe = static.compile(f, *args, passes=FUSED)
    same_bits(exe(*args), static.compile(f, *args, passes=pipeline.SIMPLIFY)(*args))
    return exe


def values(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


# What is grouped ----------------------------------------------------------------------------------------------


def test_before_and_after(everywhere):
    def f(x, y):
        return g.tanh(x * y) + 1, g.exp(x)

    before = static.trace(f, X, X)
    assert [node.op.name for node in before.nodes][2:] == ["multiply", "tanh", "constant", "add", "exp"]
    after = fusion.fuse(before)
    assert [node.op.name for node in after.nodes][2:] == ["constant", "fused", "result", "result"]
    (group,) = [node for node in after.nodes if node.op is fused]
    assert group.attrs["body"].op_counts() == {"multiply": 1, "tanh": 1, "add": 1, "exp": 1}
    assert [o.op.name for o in after.outputs] == ["result", "result"]
    x, y = values(40, 6), values(40, 6)
    same_bits(after(x, y), before(x, y))


def test_what_fits_the_cache_is_left_alone():
    f = lambda x: g.tanh(x) * 2  # noqa: E731
    assert not groups(static.compile(f, g.TensorSpec((500, 500))))
    assert groups(static.compile(f, g.TensorSpec((3000, 1000))))
    assert groups(static.compile(f, g.TensorSpec(("B", 3))))  # who knows


def test_a_single_kernel_is_no_group(everywhere):
    assert not groups(static.compile(g.tanh, X))
    assert not groups(static.compile(lambda x: g.sum(x, axis=0), X))


def test_softmax_is_one_group(everywhere):
    x = values(3, 20, 7)
    assert bodies(both(lambda x: g.softmax(x, axis=-1), x)) == [["max", "subtract", "exp", "sum", "divide"]]


def test_the_group_ends_where_a_value_needs_all_blocks(everywhere):
    def f(x):
        h = g.exp(x)
        return g.tanh(h - g.max(g.sum(h, axis=0)))

    exe = static.compile(f, X, passes=FUSED)
    assert bodies(exe) == [["exp", "sum"], ["subtract", "tanh"]]
    np.testing.assert_allclose(exe(x := values(40, 6)), np.tanh(np.exp(x) - np.exp(x).sum(0).max()), rtol=1e-13)


def test_no_cycle_through_a_node_outside(everywhere):
    def f(x):
        h = g.exp(x)
        return g.flip(h, axis=0) * h + h

    assert bodies(both(f, values(40, 6))) == [["multiply", "add"]]


def test_a_training_step_is_one_group_with_its_loss(everywhere):
    step = static.value_and_grad(lambda p: g.mean(g.tanh(p["x"] * p["a"]) ** 2))
    params = {"x": values(50), "a": values(50) * 2}
    exe = static.compile(step, params, passes=FUSED)
    assert len(groups(exe)) == 1
    expected = static.compile(step, params, passes=pipeline.SIMPLIFY)(params)
    optree.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13), exe(params), expected)


def test_groups_in_the_bodies_of_loops(everywhere):
    def f(xs):
        return g.scan(lambda h, x: (g.tanh(h * 2 + x), g.exp(h) + x), g.zeros((30,), np.float64), xs)

    exe = both(f, values(5, 30))
    assert bodies(exe) == [["multiply", "add", "tanh", "exp", "add"]]


def test_later_passes_leave_a_group_as_it_is(everywhere):
    f = lambda x: g.sum(g.square(g.tanh(x) * 2), axis=0)  # noqa: E731
    x = values(40, 6)
    exe = static.compile(f, x)
    assert bodies(exe) == [["tanh", "multiply", "square", "sum"]]
    np.testing.assert_allclose(exe(x), f(x), rtol=1e-14)


def test_the_size_of_a_group_is_bounded(everywhere, monkeypatch):
    monkeypatch.setattr(fusion, "MOST_NODES", 10)

    def f(x):
        for _ in range(30):
            x = g.tanh(x)
        return x

    assert [len(ops) for ops in bodies(both(f, values(30)))] == [10, 10, 10]


def test_the_report_says_that_bits_may_change(everywhere):
    report = str(static.compile(lambda x: g.tanh(x) * 2 + x, X, passes=FUSED).report())
    assert "fuse: 5 -> 4 nodes, 5,760 -> 1,920 bytes, may change bits" in report
    assert fusion.fuse in pipeline.INEXACT


# Blocks ------------------------------------------------------------------------------------------------------


BROADCASTS = [
    ((40, 6), (6,), (40, 1)),
    ((40, 6), (), (1, 1)),
    ((5, 8, 6), (8, 6), (5, 1, 6)),
    ((5, 8, 6), (5, 1, 1), (8, 1)),
    ((4, 1, 9), (9,), (4, 1, 1)),
    ((30, 1), (30, 1), (1, 1)),
    ((0, 6), (6,), (0, 1)),
    ((40, 0), (1,), (40, 1)),
    ((1, 1), (1,), ()),
]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("elements", [1, 7, 1000])
def test_operands_broadcast_to_the_space(everywhere, monkeypatch, shapes, elements):
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", elements)
    x, y, z = (values(*shape) for shape in shapes)

    def f(x, y, z):
        h = g.tanh(x * y + z)
        return h * h - y, g.sum(h, axis=-1, keepdims=True) * z, g.max(h + 1, axis=()), h

    both(f, x, y, z)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x[::-1], lambda x: np.repeat(x, 2, 1)[:, ::2]])
def test_operands_of_any_layout(everywhere, layout):
    x = values(40, 6)
    exe = static.compile(lambda x: g.tanh(x) * x + 1, x, passes=FUSED)
    same_bits(exe(layout(x)), exe(np.ascontiguousarray(layout(x))))
    both(lambda x: g.tanh((x @ x.T).T) * 2 + x @ x.T, x)


def test_a_reduction_of_rows_may_drop_its_axis_and_leave(everywhere):
    def f(x):
        h = g.exp(x)
        rows = g.sum(h, axis=(1, 2))
        return h / g.reshape(rows, (8, 1, 1)), rows, g.log(g.max(h, axis=2)), g.any(h > 1, axis=1)

    both(f, values(8, 5, 6))


def test_what_is_broadcast_is_computed_before_it_is_spread(everywhere):
    def f(x):
        rows = g.max(x * 2, axis=1, keepdims=True)
        return g.broadcast_to(rows, (40, 6)) / 3 + x, g.exp(g.broadcast_to(rows, (40, 6)))

    both(f, values(40, 6))


@pytest.mark.parametrize("axis", [None, 0, (0, 1), (0, 2), 1])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("reduce", [g.sum, g.mean])
def test_sums_along_the_blocks(everywhere, reduce, axis, keepdims):
    x = values(9, 5, 6)
    f = lambda x: reduce(g.exp(x) + x, axis=axis, keepdims=keepdims)  # noqa: E731
    exe = static.compile(f, x, passes=FUSED)
    assert len(groups(exe)) == 1
    expected = {g.sum: np.sum, g.mean: np.mean}[reduce](np.exp(x) + x, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(exe(x), expected, rtol=1e-14)
    np.testing.assert_allclose(exe(x * 2), f(x * 2), rtol=1e-14)  # nothing is left of the call before


def test_sums_of_nothing(everywhere):
    empty = np.zeros((0, 3))
    assert static.compile(lambda x: g.sum(g.exp(x) + x, axis=0), empty, passes=FUSED)(empty).tolist() == [0, 0, 0]
    with np.errstate(invalid="ignore"):
        assert np.isnan(static.compile(lambda x: g.mean(g.exp(x) + x), empty, passes=FUSED)(empty))


def test_a_float16_sum_is_left_to_its_own_kernel(everywhere):
    x = np.full(4000, 30, np.float16)
    exe = both(lambda x: g.mean(x * 2 + x), x)
    assert float(exe(x)) == 90
    rows = np.arange(12).reshape(4, 3)
    both(lambda x: [g.mean(y * 2, axis=1) + g.mean(y * 2, axis=0)[0] for y in (x, g.astype(x, "float16"))], rows)


@pytest.mark.parametrize("size", [0, 1, 2, 13, 14, 15, 28, 29, 1000])
def test_symbolic_sizes(everywhere, size):
    spec = g.TensorSpec(("B", 3), "float64")
    f = lambda x, y: (g.softmax(x * y, axis=1), g.sum(x + y, axis=0), g.exp(x) * 2)  # noqa: E731
    exe = static.compile(f, spec, spec, passes=FUSED)
    x, y = values(size, 3), values(size, 3) * 2
    for a, b in zip(exe(x, y), f(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert len(groups(exe)) == 1


def test_small_sizes_of_a_symbolic_graph_take_one_block():
    exe = static.compile(lambda x: g.tanh(x) * 2 + x, g.TensorSpec(("B", 100)), passes=FUSED)
    (lowered,) = exe.program.inner.values()
    assert blocks.cut(lowered, {"B": 1000}).rows == 1000 * 100
    assert blocks.cut(lowered, {"B": 100_000}).rows < 1000 * 100


@pytest.mark.parametrize("arena", [True, False])
def test_results_are_the_callers(everywhere, arena):
    f = lambda x: (g.tanh(x) * 2, g.exp(x) + x, g.cos(x @ x.T) + 1 - g.sin(x @ x.T))  # noqa: E731
    exe = static.compile(f, X, passes=FUSED, arena=arena)
    first = exe(x := values(40, 6))
    kept = [a.copy() for a in first]
    exe(x * 3)
    same_bits(first, kept)
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(first, 2))


# Every op, random graphs -------------------------------------------------------------------------------------


ELEMENTWISE = sorted(name for name, op in registry.registered_ops().items() if op.family == "elementwise")


@together("name", ELEMENTWISE, quick=30)
def test_every_elementwise_op_gives_the_same_bits(everywhere, name):
    op = registry.get(name)
    ran = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype, shapes in itertools.product(["float32", "float64", "int32", "bool"], [((11, 3), (3,), (11, 1))]):
            given = [(abs(values(*s)) * 1.5).astype(dtype) for s in shapes[: op.arity]]

            def f(*xs):
                h = op(*xs)
                return h, g.equal(h, h)

            try:
                expected = f(*given)
            except GraphError:
                continue
            same_bits(static.compile(f, *given, passes=(fusion.fuse,))(*given), expected)
            ran += 1
    assert ran


@pytest.mark.parametrize("seed", mostly_slow(range(30), 4))
def test_random_programs(everywhere, seed):
    program = random_program(seed)
    step = static.value_and_grad(program)
    inputs = list(program.inputs)
    before = static.compile(step, inputs, passes=pipeline.SIMPLIFY)(inputs)
    exe = static.compile(step, inputs, passes=FUSED)
    loose = (
        {"rtol": 1e-12, "atol": 1e-12} if all(x.dtype == np.float64 for x in inputs) else {"rtol": 2e-4, "atol": 2e-4}
    )
    for a, b, c in zip(*map(optree.tree_leaves, (exe(inputs), before, exe.graph(*inputs))), strict=True):
        np.testing.assert_allclose(a, b, **loose)
        np.testing.assert_allclose(c, b, **loose)


# Debugging ----------------------------------------------------------------------------------------------------


def test_an_error_in_a_block_names_the_op_and_the_line(everywhere):
    def f(x, n):
        y = x + 1
        return g.pow(y, n) * 2  # the line

    x = np.arange(40)
    exe = static.compile(f, x, x, passes=FUSED)
    assert len(groups(exe)) == 1
    with pytest.raises(GraphError, match=r"pow.*negative integer powers.*test_fusion.py"):
        exe(x, x - 5)


def test_debugging_steps_through_the_graph_as_it_was_traced(everywhere):
    exe = static.compile(lambda x: g.log(x - 1) * 2, X, passes=FUSED)
    with pytest.raises(GraphError, match=r"log.*test_fusion.py"):
        debug.check(exe, np.zeros((40, 6)))
    assert [step.node.op.name for step in debug.steps(exe, np.full((40, 6), 3.0))] == ["subtract", "log", "multiply"]


def test_a_saved_group_runs_as_before(everywhere, tmp_path):
    exe = static.compile(lambda x: (g.softmax(x), g.sum(x * 2)), X, passes=FUSED)
    exe.save(tmp_path / "f.graph")
    loaded = static.load(tmp_path / "f.graph")
    assert bodies(loaded) == bodies(exe)
    same_bits(loaded(x := values(40, 6)), exe(x))


def test_groups_are_verified(everywhere):
    graph = fusion.fuse(static.trace(lambda x: g.tanh(x) * 2, X))
    (group,) = [node for node in graph.nodes if node.op is fused]
    with pytest.raises(VerificationError, match="there is no result 1"):
        Graph("f", graph.inputs, [*graph.nodes, Node(result, [group], {"number": 1}, X)], graph.outputs)
    with pytest.raises(GraphError, match="the body takes"):
        Node.of(fused, group.inputs[:1] * 2, group.attrs)
    with pytest.raises(GraphError, match="does not lie in the space"):
        groups_lowering.lower(group.attrs["body"], (7,))
