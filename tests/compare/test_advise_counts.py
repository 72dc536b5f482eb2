"""What a step of our engines does, counted from its graphs: each with a known answer."""

import numpy as np
import pytest

import graphs as g
import static
from compare.advice import counting
from compare.engines import OWN, cases, find_engine
from compare.engines.graphduel.counting import LANE, BytesTouched, _kernel, counts
from compare.workloads.base import Case
from graphs.spec import TensorSpec
from tests.helpers.fake_workloads import BRANCH
from tests.helpers.prices import MODES, X, costs, square_sum


def of(f, *args, argnum=0, traced_f=None, run=True):
    return counts(f, traced_f or f, args, argnum, run=run)


def kernels(terms):
    return sum(amount for term, amount in terms.items() if term.endswith("kernels") or term == "kernels in blocks")


# Kernels


@pytest.mark.parametrize(
    ("f", "shapes", "terms"),
    [
        (lambda x, y: x + y, [(4, 6), (4, 6)], {"elements": 24, "elementwise flops": 24, "short rows": 0}),
        (lambda x, y: x + y, [(4, 6), (6,)], {"elements": 24, "short rows": 4}),
        (lambda x, y: x + y, [(4, 6), (4, 1)], {"short rows": 4}),
        (lambda x, y: x + y, [(4, 6), ()], {"short rows": 1}),
        (lambda x, y: x + y, [(4, 6, 5), (6, 5)], {"elements": 120, "short rows": 4}),
        (g.exp, [(4, 6)], {"elements": 24, "elementwise flops": 240}),
        (
            lambda x: g.sum(x, axis=1),
            [(128, 32)],
            {"reduction kernels": 1, "reduced elements": 4096, "short lanes": 128 - 4096 / LANE},
        ),
        (lambda x: g.sum(x, axis=0), [(4, 64)], {"reduced elements": 256, "short lanes": 4 - 256 / LANE}),
        (lambda x, y: x @ y, [(2, 3), (3, 5)], {"products": 1, "flops of products": 60, "elements of products": 21}),
        (lambda x, y: x @ y, [(7, 2, 3), (7, 3, 5)], {"product kernels": 1, "products": 7, "flops of products": 420}),
        (lambda x, y: x @ y, [(30, 20), (20,)], {"product kernels": 1, "elements of products with vectors": 600}),
        (lambda x, y: x @ y, [(30,), (30, 20)], {"elements of products with vectors": 600}),
        (lambda x, y: x @ y, [(1, 30), (30, 20)], {"elements of products with vectors": 600}),
        (lambda x: g.astype(x, "float64"), [(10,)], {"movement kernels": 1, "elements that others move": 20}),
        (lambda x: g.take(x, [0, 1]), [(100,)], {"movement kernels": 1, "elements that others move": 2}),
    ],
)
def test_the_terms_of_a_kernel_come_from_its_specs(f, shapes, terms):
    node = next(n for n in static.trace(f, *[TensorSpec(s, "float32") for s in shapes]).calls if _kernel(n))
    counted = _kernel(node)
    assert {term: counted[term] for term in terms} == pytest.approx(terms)


def test_both_engines_share_the_terms_of_kernels():
    step = of(lambda w, x: g.sum(g.log(x @ w)[1:]), np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))
    own = {"dynamic": ("recorded", "new bytes"), "static": ("static", "kernels in blocks")}
    for terms, (first, second) in zip((step.eager, step.compiled), own.values(), strict=True):
        assert any(term.startswith((first, second)) for term in terms)
    assert "flops of products" in set(step.eager) & set(step.compiled)
    assert step.eager["flops of products"] == step.compiled["flops of products"] == 2 * 2 * 4 * 3 * 2


# Steps


def test_the_tape_records_each_op_and_takes_new_memory():
    step = of(square_sum, X)
    graph = static.trace(static.value_and_grad(square_sum), X)
    assert step.ops == step.eager["recorded ops"] == len(list(graph.calls))
    assert step.eager["recorded arrays"] == 3
    assert step.eager["new bytes"] > 0
    assert "new bytes" not in step.compiled


def test_without_gradients_nothing_is_recorded():
    step = of(square_sum, X, argnum=None)
    assert step.eager["forward ops"] == step.ops == 2
    assert not any(term.startswith("recorded") for term in step.eager)


def test_compiling_has_a_term_for_each_node_that_was_traced():
    graph = static.trace(static.value_and_grad(square_sum), X)
    assert of(square_sum, X).compile == {"static compilations": 1.0, "traced nodes": float(len(graph))}


def test_a_fused_group_runs_its_ops_once_for_each_block():
    step = of(lambda x: g.tanh(x * 2 + 1) * x, np.ones((2048, 2048), np.float32), argnum=None)
    blocks = step.compiled["kernels in blocks"] / 4
    assert blocks == round(blocks) > 8
    assert step.compiled["elements"] == 4 * 2048 * 2048


def doubling(x):
    while g.sum(x) < 100:
        x = x * 2
    return g.sum(x)


def static_doubling(x):
    return g.sum(g.while_loop(lambda x: g.sum(x) < 100, lambda x: x * 2, x))


def test_a_loop_is_counted_as_often_as_dynamic_turned():
    starts = (1.0, 10.0, 20.0)
    steps = [of(doubling, np.full(4, s, np.float32), argnum=None, traced_f=static_doubling) for s in starts]
    turns = [kernels(step.compiled) for step in steps]
    assert turns == sorted(turns, reverse=True)
    assert turns[0] > turns[-1]
    assert all((step.control, step.ran) == ("in the graph", True) for step in steps)


def test_what_is_not_run_turns_ten_times():
    step = of(doubling, X, argnum=None, traced_f=static_doubling, run=False)
    assert step.ran is False
    assert kernels(step.compiled) >= 20
    assert "10 turns of a loop whose length only a run knows" in step.remarks[0]


def test_a_call_of_equal_shapes_is_counted_once():
    case = Case(lambda w, x: g.sum(x @ w), np.ones((3, 2), np.float32), ((np.ones((4, 3), np.float32),),) * 3, (1,) * 3)
    first, second, third = find_engine(OWN).ops.counts(MODES, case)
    assert first is second is third


def test_what_static_refuses_is_said():
    program = counting.count_programs(find_engine(OWN), MODES, "a branch", [BRANCH.case("small")])
    assert program.counts == []
    assert "ControlFlowError" in program.refused


def test_terms_without_a_price_cost_nothing():
    step = of(square_sum, X)
    assert costs().of(step.eager) == pytest.approx(kernels(step.eager) * 1e-6)


# Memory


def chain(depth):
    def f(x):
        for _ in range(depth):
            x = g.tanh(x)
        return g.sum(x)

    return f


def test_a_tape_holds_what_backward_reads():
    spec = TensorSpec((1000,), "float32")
    touched = BytesTouched.by(static.trace(static.value_and_grad(chain(10)), spec))
    # ten results, the cotangent, and the factor of one step while it is made
    assert 11 * 4000 <= touched.held <= 13 * 4000
    assert BytesTouched.by(static.trace(chain(10), spec)).held == 8000


def test_what_was_touched_last_is_near_and_what_the_tape_kept_is_far():
    graph = static.trace(lambda x: g.tanh(g.tanh(x)) * x, TensorSpec((100,), "float32"))
    touched = BytesTouched.by(graph)
    first, second, product = graph.calls
    whole = 400 * 3  # what the step holds at most, with its input
    assert touched.by_op[first] == [(400, whole), (400, whole)]  # both were touched in the step before
    assert touched.by_op[second] == [(400, 0), (400, whole)]
    assert touched.by_op[product] == [
        (400, 0),
        (400, 800),
        (400, 0),
    ]  # into the memory of the first, which was freed just before


def test_a_view_is_memory_of_what_it_shows():
    graph = static.trace(lambda x: g.sum((x * 2)[:10]), TensorSpec((100,), "float32"))
    *_, total = graph.calls
    assert BytesTouched.by(graph).by_op[total][0] == (40, 0)


def test_bytes_that_have_left_a_cache_are_counted_by_its_size():
    (node,) = (graph := static.trace(g.tanh, TensorSpec((1 << 20,), "float32"))).calls
    assert BytesTouched.by(graph).far(node) == {
        "bytes from beyond 256 KiB": 2 << 22, "bytes from beyond 2 MiB": 2 << 22, "bytes from beyond 16 MiB": 0,
    }  # fmt: skip


def test_a_large_step_gives_its_memory_back():
    small, large = (of(chain(10), np.ones(n, np.float32)) for n in (1000, 100_000))
    assert "bytes held by a large step" not in small.eager
    assert large.eager["bytes held by a large step"] > 10 * 400_000
    assert large.eager["new bytes of large arrays"] > 0
    assert "new bytes of large arrays" not in small.eager


def test_calls_are_told_apart_by_shape_and_dtype_whatever_the_arrays_are_of():
    class Tensor:
        def __init__(self, dtype):
            self.shape, self.dtype = (2,), dtype  # a dtype of a framework has a name, and nothing else of NumPy's

    signatures = [cases.signature((Tensor(dtype),)) for dtype in (float, float, int)]
    assert signatures[0] == signatures[1] != signatures[2]
