"""Ops that tell what they are made of: the parts have the bits of the kernel, and static knows only the parts."""

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import op as registry
from graphs.spec import spec_of
from graphs.testing import samples
from static.passes import pipeline
from static.passes.simplification import decompose
from tests.helpers.together import together

COMPOSED = [op for op in registry.registered_ops().values() if op.parts is not None]
SAMPLES = [sample for op in COMPOSED for sample in samples(op.name)]
EACH = together("sample", SAMPLES, ids=str)


def turned(array):
    """The same values laid out the other way round in memory."""
    return np.asfortranarray(array) if array.ndim > 1 else np.repeat(array, 2)[::2] if array.ndim else array


def same_bits(got, expected):
    assert spec_of(got) == spec_of(expected)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(expected), strict=True)


def test_these_tell_their_parts():
    assert {op.name for op in COMPOSED} == {
        "softmax", "softmax_gradient", "log_softmax", "log_softmax_gradient", "nll_loss", "stack", "linear",
    }  # fmt: skip


@EACH
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("layout", [np.asarray, turned])
def test_the_parts_have_the_bits_of_the_kernel(sample, dtype, layout):
    inputs, attrs = sample.cast(dtype).prepared()
    inputs = [layout(array) for array in inputs]
    same_bits(sample.op.kernel(*inputs, **attrs), sample.op.parts(*inputs, **attrs))


@EACH
def test_decomposition_leaves_the_parts_alone_and_the_bits_as_they_are(sample):
    graph = static.trace(sample, *sample.arrays)
    after = pipeline.apply(decompose, graph)
    assert not {node.op for node in after.calls} & set(COMPOSED)
    assert [output.spec for output in after.outputs] == [output.spec for output in graph.outputs]
    kept, parted = (static.compile(sample, *sample.arrays, passes=passes) for passes in ((), (decompose,)))
    same_bits(parted(*sample.arrays), kept(*sample.arrays))


def test_the_gradient_is_that_of_the_whole_op_and_then_its_parts_fuse():
    def loss(x):
        return g.sum(g.softmax(x, axis=1) ** 2)

    x = np.random.default_rng(0).standard_normal((64, 128))
    traced = static.trace(static.value_and_grad(loss), x)
    names = [node.op.name for node in traced.calls]
    assert names.count("softmax") == 1
    assert names.count("softmax_gradient") == 1
    assert "max" not in names  # nor is it differentiated
    exe = static.compile(static.value_and_grad(loss), x)
    assert "softmax" not in {node.op.name for node in exe.graph.calls}
    for got, expected in zip(exe(x), dynamic.value_and_grad(loss)(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)


def test_an_op_in_a_loop_is_decomposed_too():
    def last(x):
        return g.scan(lambda h, row: (g.softmax(h + row), h), x[0], x)[0]

    graph = pipeline.apply(decompose, static.trace(last, np.ones((3, 4))))
    (scan,) = [node for node in graph.calls if node.op.family == "control" and node.subgraphs]
    assert "softmax" not in {node.op.name for inner in scan.subgraphs for node in inner.calls}


def test_they_are_put_down_to_the_line_of_the_op():
    def f(x):
        return g.log_softmax(x)

    (before,) = {node.source for node in static.trace(f, np.ones(3)).calls}
    after = {node.source for node in decompose(static.trace(f, np.ones(3))).calls}
    assert after == {before}


@pytest.mark.parametrize("values", [[[-np.inf, 0.0, 0.0]], [[800.0, -800.0, 0.0]], [[1e-30, 0.0, -1e30]]])
def test_extreme_values_do_not_overflow(values):
    x = np.array(values)
    with np.errstate(over="raise", invalid="raise", divide="ignore"):  # the logarithm of 0 is none
        chances = g.softmax(x)
    np.testing.assert_allclose(chances.sum(axis=-1), 1)
    np.testing.assert_allclose(np.exp(g.log_softmax(x)), chances, atol=1e-15)


@pytest.mark.parametrize("layout", [np.asarray, turned])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 5, 3), (0, 3), (1, 1)], ids=str)
def test_nll_loss_is_the_mean_of_what_is_picked(shape, layout):
    random = np.random.default_rng(2)
    x, labels = random.normal(size=shape), random.integers(-shape[-1], shape[-1], shape[:-1])
    picked = [x[*place, labels[place]] for place in np.ndindex(shape[:-1])]
    with np.errstate(invalid="ignore"):  # the mean of nothing
        expected = -np.sum(picked) / np.float64(len(picked))
        found = g.nll_loss(layout(x), labels)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    with pytest.raises(g.ShapeError, match="out of bounds"):
        g.nll_loss(np.ones((2, 3)), np.array([0, 3]))


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_softmax_of_whole_numbers_is_that_of_floats(dtype):
    x = np.array([[1, 0, 1], [0, 0, 1]], dtype)
    np.testing.assert_allclose(g.softmax(x), g.softmax(x.astype(float)), rtol=1e-3)  # of bool it is a float16


RUNS = {
    "array": lambda f, *arrays: f(*arrays),
    "dynamic": lambda f, *arrays: f(*map(dynamic.tensor, arrays)),
    "static": static.trace,
}


@pytest.mark.parametrize("engine", RUNS)
def test_refusals_name_the_op_and_the_rule(engine):
    def refused(f, *arrays):
        with pytest.raises(g.GraphError) as error:
            RUNS[engine](f, *arrays)
        return str(error.value)

    rows, labels = np.ones((4, 3)), np.array([0, 1, 2, 0])
    assert "softmax" in (told := refused(g.softmax, np.ones((3, 0))))
    assert "no elements" in told
    assert "axis 2 is out of range" in refused(lambda x: g.log_softmax(x, axis=2), rows)
    assert "labels have the shape of" in refused(g.nll_loss, rows, labels[:3])
    assert "integers" in refused(g.nll_loss, rows, labels * 1.0)
    assert "labels have the shape of" in refused(g.cross_entropy, rows, labels[None])
