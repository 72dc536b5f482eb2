"""The pipeline: what it reports, that the verifier catches broken passes, and that every pass computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
import static
from graphs import Graph, Node, TensorSpec, VerificationError, ir
from graphs.op import registered_ops
from graphs.testing import samples
from static import clock
from static.passes import pipeline
from static.passes.simplification import remove_dead_code
from tests.helpers.printed import agree
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together

X = TensorSpec((2, 3))
PASSES = tuple(dict.fromkeys(pipeline.DEFAULT))

each_pass = pytest.mark.parametrize("one", PASSES, ids=lambda one: one.__name__)


# What passes compute ----------------------------------------------------------------------------------------------


def run(graph, inputs):
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in graph(*inputs)]


def signs(values):
    """The sign bits, of zeros too; the kernels do not agree on the sign of a NaN."""
    return np.signbit(values) & ~np.isnan(values) if values.dtype.kind == "f" else values


@each_pass
@pytest.mark.parametrize("block", mostly_slow(range(8), 1))
def test_random_programs_compute_the_same_after_a_pass(one, block):
    for seed in range(block, 60, 8):
        program = random_program(seed)
        point = list(program.inputs)
        graph = static.trace(static.value_and_grad(program), point)
        expected, found = run(graph, point), run(pipeline.apply(one, graph), point)
        tolerance = 1e-3 if any(x.dtype == np.float32 for x in point) else 1e-9
        for a, b in zip(expected, found, strict=True):
            assert a.dtype == b.dtype, seed
            if one in pipeline.INEXACT:
                scale = 1 + np.max(np.abs(a), initial=0)
                np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * scale, err_msg=f"seed {seed}")
            else:
                np.testing.assert_array_equal(b, a, err_msg=f"seed {seed}")
                np.testing.assert_array_equal(signs(b), signs(a), err_msg=f"seed {seed}")


@together("name", registered_ops(), quick=50)
def test_every_op_computes_the_same_bits_after_all_exact_passes(name):
    try:
        calls = samples(name)
    except g.GraphError:
        return  # control flow, and ops that other tests define
    for sample in calls:
        graph = static.trace(lambda *arrays, sample=sample: sample(*arrays), *sample.arrays)
        after, _ = pipeline.run(graph, pipeline.SIMPLIFY)
        for a, b in zip(run(graph, sample.arrays), run(after, sample.arrays), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), sample
            np.testing.assert_array_equal(a, b, err_msg=str(sample))


def normed(params, x):
    """Most of what passes have rules for: products of stacks, a softmax, a normalisation, a mean square."""
    h = x @ params["w"] + params["b"]
    h = g.softmax(h, axis=-1) @ g.matrix_transpose(params["w"])
    centred = h - g.mean(h, axis=-1, keepdims=True)
    return g.mean((centred / g.sqrt(g.mean(centred * centred, axis=-1, keepdims=True) + 1e-3) * 2.0) ** 2)


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("steps", [1, 4])
def test_symbolic_sizes_compute_the_same_after_all_passes(batch, steps):
    params = {"w": TensorSpec((3, 4)), "b": TensorSpec((4,))}
    graph = static.trace(static.value_and_grad(normed), params, TensorSpec(("B", "T", 3)))
    after, _ = pipeline.run(graph)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s).astype("f4") for s in ((4,), (3, 4), (batch, steps, 3))]
    sized = static.trace(static.value_and_grad(normed), {"w": values[1], "b": values[0]}, values[2])
    step = static.compile(static.value_and_grad(normed), params, TensorSpec(("B", "T", 3)))
    found = g.tree.leaves(step({"w": values[1], "b": values[0]}, values[2]))
    assert len(after) < len(graph)
    for a, b in zip(run(sized, values), found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_a_pass_that_has_nothing_to_do_returns_the_graph():
    graph = static.trace(lambda x, y: g.exp(x @ y.T), X, X)
    assert all(one(graph) is graph for one in PASSES)


def test_exact_and_inexact_passes_are_told_apart():
    assert not pipeline.INEXACT & {*pipeline.REPLAY, *pipeline.SIMPLIFY}
    assert {*pipeline.RESTRUCTURE} - {*pipeline.SIMPLIFY} <= pipeline.INEXACT


# Reports ----------------------------------------------------------------------------------------------------------


def test_the_report_says_what_each_pass_did():
    exe = static.compile(lambda x, w: g.sum((x * 1).T.T @ w, axis=0), TensorSpec((8, 4, 3)), TensorSpec((3, 3)))
    text = str(exe.report())
    steps = {step.name: step for step in reversed(exe.report().steps) if step.changed}
    assert "  eliminate_views: 8 -> 7 nodes, 816 bytes; again 9 -> 9 nodes, 432 bytes\n" in text
    assert "  simplify_algebra: 7 -> 6 nodes, 816 -> 432 bytes\n" in text
    assert "  flatten_products: 4 -> 6 nodes, 432 bytes, may change bits\n" in text
    assert not steps["flatten_products"].exact
    assert steps["eliminate_views"].exact
    assert "\n  nothing to do for decompose, push_broadcasts, fold_constants," in text
    assert [step.name for step in exe.report().steps] == [one.__name__ for one in pipeline.DEFAULT]


def test_the_report_counts_what_is_in_loops():
    def f(xs):
        def body(state, x):
            g.exp(x)  # nobody reads it
            return state * 1 + g.cos(x), ()

        return g.scan(body, g.zeros(3, np.float32), xs)[0]

    _, steps = pipeline.run(static.trace(f, TensorSpec((4, 3))), [remove_dead_code])
    assert steps == [("remove_dead_code", 11, 10, 60, 48, True, True)]


def test_the_bytes_of_symbolic_sizes_are_symbolic():
    _, (step,) = pipeline.run(static.trace(lambda x: g.exp(x) * 2, TensorSpec(("B", 3))), [remove_dead_code])
    assert str(step) == "remove_dead_code: 4 -> 4 nodes, 24*B bytes"


# The verifier -----------------------------------------------------------------------------------------------------


def f(x):
    return g.exp(g.tanh(x)) + g.sum(x, axis=0)


def remade(graph, **changes):
    """The graph with the spec, inputs, attributes or op of one node, by the name of its op, replaced in place."""
    made = {}
    for node in graph.nodes:
        change = changes.get(node.op.name, {})
        inputs = change.get("inputs", [made[s] for s in node.inputs])
        attrs, spec = change.get("attrs", node.attrs), change.get("spec", node.spec)
        made[node] = Node(change.get("op", node.op), inputs, attrs, spec) if node.inputs else node
    return Graph(graph.name, graph.inputs, made.values(), [made[n] for n in graph.outputs])


def reversed_order(graph):
    return Graph(graph.name, graph.inputs, reversed(graph.nodes), graph.outputs)


def forgotten(graph):
    return Graph(graph.name, graph.inputs, [n for n in graph.nodes if n.op is not g.tanh], graph.outputs)


def twice(graph):
    return Graph(graph.name, graph.inputs, [*graph.nodes, graph.nodes[-1]], graph.outputs)


def without_its_input(graph):
    return Graph(graph.name, (), graph.nodes, graph.outputs)


def of_another_graph(graph):
    return Graph(graph.name, graph.inputs, graph.nodes, [static.trace(f, X).outputs[0]])


BROKEN = {
    "a shape": lambda graph: remade(graph, exp={"spec": TensorSpec((3, 2))}),
    "a dtype": lambda graph: remade(graph, tanh={"spec": TensorSpec((2, 3), "float64")}),
    "a shape that the next node's depends on": lambda graph: remade(graph, sum={"spec": TensorSpec((2,))}),
    "options": lambda graph: remade(graph, sum={"attrs": {"axis": (1,), "keepdims": False}}),
    "missing options": lambda graph: remade(graph, sum={"attrs": {}}),
    "an op of more inputs": lambda graph: remade(graph, exp={"op": g.multiply}),
    "no inputs": lambda graph: remade(graph, exp={"inputs": []}),
    "an input of another graph": lambda graph: remade(graph, exp={"inputs": [static.trace(f, X).nodes[1]]}),
    "the order": reversed_order,
    "a node forgotten": forgotten,
    "a node twice": twice,
    "an input forgotten": without_its_input,
    "an output of another graph": of_another_graph,
}


def looked_at_anew(graph, monkeypatch):
    """What the verifier says when it looks at every node again, seen before or not."""
    monkeypatch.setattr(ir, "verify", lambda graph: None)
    broken = graph()
    monkeypatch.undo()
    for node in broken.nodes:
        ir._set_verified(node, False)
    with pytest.raises(VerificationError) as caught:
        ir.verify(broken)
    return str(caught.value)


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_pass_is_caught_as_if_every_node_were_looked_at(what, monkeypatch):
    graph = static.trace(f, X)
    ir.verify(graph)
    assert all(node.verified for node in graph.nodes)
    with pytest.raises(VerificationError) as caught:
        pipeline.run(graph, [BROKEN[what]])
    assert str(caught.value) == looked_at_anew(lambda: BROKEN[what](static.trace(f, X)), monkeypatch)


def test_a_broken_pass_is_caught_in_the_body_of_a_loop():
    graph = static.trace(lambda xs: g.scan(lambda s, x: (s + f(x), ()), xs[0], xs)[0], TensorSpec((4, 2, 3)))

    def broken(inner):
        return BROKEN["a shape"](inner) if "exp" in inner.op_counts() else inner

    with pytest.raises(VerificationError, match="exp: the spec says"):
        pipeline.run(graph, [broken])


@pytest.mark.parametrize("field", ["op", "inputs", "attrs", "spec", "source", "verified"])
def test_a_node_that_was_looked_at_can_not_be_changed(field):
    node = static.trace(f, X).nodes[-1]
    with pytest.raises(AttributeError, match=f"a node cannot be changed, and so not its {field}"):
        setattr(node, field, None)


def test_the_spec_of_a_node_is_looked_at_once(monkeypatch):
    graph = static.trace(f, X)
    asked = []
    monkeypatch.setattr(ir, "infer", lambda op, inputs, attrs: asked.append(op.name) or TensorSpec((2, 3)))
    again = Graph(graph.name, graph.inputs, graph.nodes, graph.outputs)
    assert asked == []
    Graph(graph.name, graph.inputs, [*again.nodes, Node(g.sin, [graph.nodes[0]], {}, X)], graph.outputs)
    assert asked == ["sin"]


def test_passes_agree_with_each_other_on_a_program_of_all_kinds():
    graph = static.trace(
        static.value_and_grad(normed), {"w": TensorSpec((3, 4)), "b": TensorSpec((4,))}, TensorSpec((2, 5, 3))
    )
    agree(graph, pipeline.run(graph, pipeline.SIMPLIFY)[0], exact=True)
    agree(graph, pipeline.run(graph, pipeline.SIMPLIFY + pipeline.RESTRUCTURE)[0], exact=False)
    agree(graph, pipeline.run(graph)[0], exact=False)


def test_a_compilation_goes_forward_and_enters_each_phase_once(monkeypatch):
    entered: list[str] = []
    enter = clock.phase.__enter__

    def noted(self: clock.phase) -> None:
        entered.append(self._name)
        enter(self)

    monkeypatch.setattr(clock.phase, "__enter__", noted)
    static.compile(static.value_and_grad(lambda w, x: g.mean(g.tanh(x @ w) ** 2)), np.ones((3, 2)), np.ones((4, 3)))
    passes = [one.__name__ for one in pipeline.DEFAULT]
    assert entered == ["trace", "differentiate", *passes, "schedule", "lower", "plan", "bind"]
