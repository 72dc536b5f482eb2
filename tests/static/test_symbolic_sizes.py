"""Symbolic sizes: each op, compiled once with every axis named, gives what arrays give at other sizes, 0 and 1 too."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import dims
from graphs.errors import GraphError, ShapeError
from graphs.op import registered_ops
from graphs.ops.slicing import sliced_size
from graphs.testing import samples
from tests.helpers.together import together

OPS = [name for name, op in registered_ops().items() if op.family not in ("source", "control", "effect")]
B, T = g.dim("B"), g.dim("T")
# Keys are u64[2], attributes of these hold sizes that are numbers.
REFUSED = {"uniform", "normal", "split_key", "fold_in", "convolution_input", "convolution_weight", "add_along_axis"}
REFUSED |= {"scatter_add", "place", "fourier"}  # the last: parts along an axis of 2


def named(sample):
    """The specs of a sample with a name for each size above 1."""
    return [g.TensorSpec([f"n{s}" if s > 1 else s for s in a.shape], a.dtype) for a in sample.arrays]


def resized(array, sizes):
    shape = tuple(sizes.get(s, s) for s in array.shape)
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def other_sizes(sample):
    """The sample's arrays twice as large, and with every axis of size 1 and 0."""
    sizes = {s for array in sample.arrays for s in array.shape if s > 1}
    for change in (lambda s: 2 * s, lambda s: 1, lambda s: 0):
        yield [resized(array, {s: change(s) for s in sizes}) for array in sample.arrays]


def attempt(function, *args):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mean of nothing
        try:
            return function(*args)
        except GraphError as error:
            return error


def compare(sample, compiled, plain):
    """Run both at other sizes: equal results, or both refuse."""
    ran = 0
    for arrays in other_sizes(sample):
        expected = attempt(plain, *arrays)
        if not isinstance(expected, Exception):
            found = attempt(compiled, *arrays)
            assert not isinstance(found, Exception), (sample, found)
            for f, e in zip(g.tree.leaves(found), g.tree.leaves(expected), strict=True):
                assert (f.shape, f.dtype) == (np.asarray(e).shape, np.asarray(e).dtype), sample
                np.testing.assert_allclose(f, e, rtol=1e-9, atol=1e-12, err_msg=str(sample))
            ran += 1
    return ran


@together("name", OPS, quick=25)
def test_every_op_runs_at_every_size(name):
    ran = 0
    for sample in samples(name):
        executable = attempt(static.compile, sample, *named(sample))
        if not isinstance(executable, Exception):
            ran += compare(sample, executable, sample)
    assert ran or name in REFUSED


@together("name", OPS, quick=40)
def test_its_gradient_too(name):
    sample = next((s for s in samples(name) if s.differentiable and s.arrays[0].size > 1), None)
    if sample is None or name in REFUSED or isinstance(attempt(static.trace, sample, *named(sample)), Exception):
        return

    def loss(*arrays):
        return g.sum(sample(*arrays) * 1.5)

    argnums = sample.differentiable
    executable = static.compile(static.grad(loss, argnums), *named(sample))
    compare(sample, executable, dynamic.grad(loss, argnums))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_loops_over_a_symbolic_axis(length):
    def f(x):
        last, ys = g.scan(lambda s, row: (g.tanh(s + row), s), x[0] * 0, x)
        return g.sum(last) + g.sum(ys), g.fori_loop(0, x.shape[0], lambda i, s: s + i, 0)

    executable = static.compile(f, g.TensorSpec(("T", 2), "float64"))
    x = np.linspace(-1, 1, 2 * length).reshape(length, 2)
    np.testing.assert_allclose(executable(x), f(x), rtol=1e-12)


def test_a_loop_over_nothing():
    executable = static.compile(lambda x: g.scan(lambda s, r: (s + g.sum(r), s), g.ones(()), x), g.TensorSpec(("T", 2)))
    last, ys = executable(np.ones((0, 2), np.float32))
    assert (last, ys.shape) == (1, (0,))


def test_a_slice_with_a_step_of_a_symbolic_axis():
    executable = static.compile(lambda x: (x[1::3], x[:-1:2]), g.TensorSpec(("T",), "float64"))
    for n in range(8):
        x = np.arange(float(n))
        for found, expected in zip(executable(x), (x[1::3], x[:-1:2]), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shapes", "sizes"),
    [
        ((("B", 2 * T + 1), (2 * T + 1, 3)), [(0, 0), (1, 1), (2, 3)]),
        (((B * T, "T"), ("T", 3)), [(0, 1), (1, 1), (2, 3)]),
    ],
)
def test_expressions_are_sizes(shapes, sizes):
    executable = static.compile(lambda x, y: x @ y, *map(g.TensorSpec, shapes))
    for b, t in sizes:
        numbers = [[g.dims.evaluate(s, {"B": b, "T": t}) for s in g.TensorSpec(shape).shape] for shape in shapes]
        x, y = (np.ones(n, np.float32) for n in numbers)
        np.testing.assert_array_equal(executable(x, y), x @ y)


@pytest.mark.parametrize(
    ("shapes", "given", "words"),
    [
        ((("B", 2 * T + 1), (2 * T + 1, 3)), ((2, 4), (4, 3)), r"x: no T >= 0 makes the dimension 2\*T\+1 equal 4"),
        ((("B", 2 * T + 1), (2 * T + 1, 3)), ((2, 5), (7, 3)), r"y: dimension 2\*T\+1 is 5 .* but 7 here"),
        (((B * T, "T"), ("T", 3)), ((7, 3), (3, 3)), r"x: no B >= 0 makes the dimension B\*T equal 7"),
        ((("B", "T"), ("T", 3)), ((2, 3), (2, 3)), "y: dimension T is 3 from the other inputs, but 2 here"),
        ((("B", "T"), ("T", 3)), ((2, 3), (3, 4)), "y: a dimension compiled as 3 is 4"),
    ],
)
def test_a_shape_that_contradicts_names_the_size_and_both_values(shapes, given, words):
    executable = static.compile(lambda x, y: x @ y, *map(g.TensorSpec, shapes))
    with pytest.raises(ShapeError, match=words):
        executable(*(np.zeros(shape, np.float32) for shape in given))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: x[4], r"getitem: .*index 4 is out of bounds.*f64\[n\] \(test_symbolic"),
        (
            lambda x: g.ones((x.shape[0] - 3,)) + g.sum(x),
            r"(sizes are 0 or more|must be non-negative).*\(test_symbolic",
        ),
        (static.grad(lambda x: g.sum(g.setitem(x, 1.0, (2,)))), "setitem: .*index 2 is out of bounds"),
    ],
)
def test_a_size_that_an_op_cannot_take_names_the_op_and_line(f, words):
    with pytest.raises(ShapeError, match=words):
        static.compile(f, g.TensorSpec(("n",), "float64"))(np.ones(1))


@pytest.mark.parametrize("shape", [("B",), (3, "B"), ("B", 3)])
@pytest.mark.parametrize("f", [g.diff, lambda x: g.diff(x, n=2), g.gradient])
def test_differences_of_neighbours_along_a_symbolic_axis(f, shape):
    exe = static.compile(f, g.TensorSpec(shape, "float64"))
    for size in (4, 7):
        x = np.random.default_rng(0).normal(size=[size if s == "B" else s for s in shape])
        for ours, plain in zip(g.tree.leaves(exe(x)), g.tree.leaves(f(x)), strict=True):
            np.testing.assert_allclose(ours, plain)


@pytest.mark.parametrize("step", [None, 2])
@together(("start", "stop"), itertools.product([None, -3, -1, 0, 1, 5], repeat=2))
def test_the_size_of_a_slice_of_a_symbolic_axis(start, stop, step):
    size = sliced_size(slice(start, stop, step), dims.dim("B"))
    for number in range(8):
        assert dims.evaluate(size, {"B": number}) == len(range(number)[start:stop:step])
