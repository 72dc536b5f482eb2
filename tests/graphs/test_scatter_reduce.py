"""scatter_reduce: element by element, negative places, any dtype, products of zeros, sizes that vary, refusals."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs import DTypeError, OutOfRangeError, ShapeError
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run

HOW = ("sum", "prod", "mean", "amax", "amin")
each_engine = pytest.mark.parametrize("engine", ENGINES)
each_way = pytest.mark.parametrize("how", HOW)


def sent(x, axis, index, src, how, include_self):
    """What PyTorch's documentation writes as loops: a list of what comes to each place, then one value of it."""
    lists = {place: [x[place]] for place in np.ndindex(x.shape)}
    reached = set()
    for place in np.ndindex(index.shape):
        target = (*place[:axis], int(index[place]) % x.shape[axis], *place[axis + 1 :])
        if not include_self and target not in reached:
            lists[target] = []
        reached.add(target)
        lists[target].append(src[place])
    join = {
        "sum": sum,
        "prod": lambda values: functools.reduce(operator.mul, values),
        "mean": lambda values: sum(values) / len(values),
        "amax": max,
        "amin": min,
    }[how]
    return np.array([join(lists[place]) for place in np.ndindex(x.shape)]).reshape(x.shape)


@given(st.data(), st.sampled_from(HOW), st.booleans())
def test_every_element_arrives(data, how, include_self):
    ndim = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(0, ndim - 1))
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(ndim))
    picked = tuple(data.draw(st.integers(0, 5 if i == axis else size)) for i, size in enumerate(shape))
    longer = tuple(size + data.draw(st.integers(0, 1)) for size in picked)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    index = random.integers(-shape[axis], shape[axis], picked)
    for kind in ("float64", "int64") if how != "mean" else ("float64",):
        x, src = (np.round(random.normal(size=s) * 3).astype(kind) for s in (shape, longer))
        found = g.scatter_reduce(x, axis - ndim, index, src, how, include_self)
        assert found.dtype == kind
        np.testing.assert_allclose(found, sent(x, axis, index, src, how, include_self), rtol=1e-12, atol=1e-12)


@each_engine
@each_way
def test_gradients_of_a_part_that_is_written_back(engine, how):
    x, src = np.arange(12.0).reshape(3, 4) / 7 - 0.8, np.arange(6.0).reshape(2, 3) / 3 - 0.9
    index = np.array([[0, 2], [2, -1]])
    check_grads(lambda x, s: g.scatter_reduce(x, 0, index, s, how) ** 2, (x, src), order=2, engine=ENGINES[engine])


@each_engine
def test_products_with_zeros_have_second_derivatives(engine):
    x, src, index = np.array([0.0, 2.0]), np.array([3.0, 0.0, 0.0, 5.0]), np.array([0, 0, 1, 1])
    for include_self in (True, False):
        check_grads(
            lambda x, s, own=include_self: g.scatter_reduce(x, 0, index, s, "prod", own) ** 2,
            (x, src),
            order=2,
            engine=ENGINES[engine],
        )


@each_engine
@pytest.mark.parametrize(("include_self", "own"), [(True, 2 / 3), (False, 1)])
def test_an_element_that_is_left_out_shares_no_gradient_with_its_equals(engine, include_self, own):
    x, src = np.array([5.0, 1.0]), np.array([5.0, 5.0])
    slopes = gradients(
        engine, lambda x, s: g.sum(g.scatter_reduce(x, 0, np.array([0, 0]), s, "amax", include_self)), x, src
    )
    np.testing.assert_allclose(slopes[1], [own / 2] * 2)
    np.testing.assert_allclose(slopes[0], [1 - own, 1], atol=1e-15)


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
def test_nan_comes_through_and_what_is_not_reached_stays():
    x, src = np.array([1.0, 2.0, 3.0]), np.array([np.nan, 1.0])
    for how in HOW:
        found = g.scatter_reduce(x, 0, np.array([0, 0]), src, how, include_self=False)
        np.testing.assert_array_equal(found, [np.nan, 2, 3])
        slope = dynamic.grad(lambda x, h=how: g.sum(g.scatter_reduce(x, 0, np.array([0, 0]), src, h)))(x)
        np.testing.assert_array_equal(slope[1:], [1, 1])


@each_engine
def test_bools_have_extremes(engine):
    x, src, index = np.array([True, False]), np.array([False, True, True]), np.array([0, 1, 1])
    for how, own, expected in itertools.chain(
        [("amax", True, [True, True]), ("amin", True, [False, False])],
        [("amax", False, [False, True]), ("amin", False, [False, True])],
    ):
        found = run(engine, lambda x, s, h=how, o=own: g.scatter_reduce(x, 0, index, s, h, o), x, src)
        np.testing.assert_array_equal(found, expected)


def test_pytorchs_words_and_the_method():
    x, src = dynamic.tensor([1.0, 2.0], requires_grad=True), dynamic.tensor([3.0, 5.0])
    index = dynamic.tensor([1, 1])
    for how, expected in (("sum", [1, 10]), ("prod", [1, 30]), ("amax", [1, 5])):
        assert x.scatter_reduce(0, index, src, reduce=how).tolist() == expected
        assert dynamic.scatter_reduce(x, dim=0, index=index, src=src, reduce=how).tolist() == expected
    assert x.scatter_reduce(0, index, src, "mean", include_self=False).tolist() == [1, 4]


@pytest.mark.parametrize("how", ["sum", "mean", "amax", "amin"])
def test_one_graph_serves_every_number_of_values(how):
    def f(x, index, src):
        return g.sum(g.scatter_reduce(x, 0, index, src, how) ** 2)

    specs = g.TensorSpec(("N", "C"), "float64"), g.TensorSpec(("M", "C"), "int64"), g.TensorSpec(("M", "C"), "float64")
    exe = static.compile(static.value_and_grad(f, (0, 2)), *specs)
    for n, m, c in ((3, 5, 2), (1, 1, 1), (4, 0, 3)):
        random = np.random.default_rng(n)
        x, index, src = random.normal(size=(n, c)), random.integers(0, n, (m, c)), random.normal(size=(m, c))
        value, slopes = exe(x, index, src)
        np.testing.assert_allclose(value, f(x, index, src), rtol=1e-12)
        for ours, theirs in zip(slopes, dynamic.grad(f, (0, 2))(x, index, src), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_a_product_of_unknown_length_is_refused():
    specs = g.TensorSpec((3,), "float64"), g.TensorSpec(("M",), "int64"), g.TensorSpec(("M",), "float64")
    with pytest.raises(ShapeError, match=r"scatter_reduce: products of M\+3 factors take an unknown number of steps"):
        static.compile(lambda x, i, s: g.scatter_reduce(x, 0, i, s, "prod"), *specs)


@each_way
def test_batches_of_them_are_one_by_one(how):
    random = np.random.default_rng(3)
    rows = [(random.normal(size=(3, 2)), random.integers(0, 3, (4, 2)), random.normal(size=(4, 2))) for _ in range(4)]

    def f(x, index, src):
        return g.sum(g.scatter_reduce(x, 0, index, src, how) ** 2)

    leaves = [dynamic.tensor(x, requires_grad=True) for x, _, _ in rows]
    with dynamic.batched():
        values = [f(leaf, index, src) for leaf, (_, index, src) in zip(leaves, rows, strict=True)]
    g.sum(g.stack(values)).backward()
    for value, leaf, row in zip(values, leaves, rows, strict=True):
        expected, slope = dynamic.value_and_grad(f)(*row)
        np.testing.assert_allclose(value.tolist(), expected, rtol=1e-12)
        np.testing.assert_allclose(leaf.grad.tolist(), slope, rtol=1e-12)


def test_padding_is_refused_where_it_may_be_sent():
    jitted = static.jit(
        lambda x, i, s: g.scatter_reduce(x, 0, i, s, "amax"),
        shapes="bucket",
        dims=((None,), ("M",), ("M",)),
        buckets=(4,),
    )
    with pytest.raises(ShapeError, match="padding"):
        jitted(np.ones(2), np.array([0, 1, 0]), np.ones(3))


X, INDEX, SRC = np.ones((3, 2)), np.zeros((4, 2), int), np.ones((4, 2))
REFUSED = [
    (lambda: g.scatter_reduce(X, 0, INDEX, SRC, "add"), ShapeError, "scatter_reduce: reduce is 'sum', .*, not 'add'"),
    (lambda: g.scatter_reduce(X.astype(int), 0, INDEX, SRC, "mean"), DTypeError, "a mean takes floating point"),
    (lambda: g.scatter_reduce(X, 0, INDEX * 1.0, SRC, "sum"), DTypeError, "indices must be integers"),
    (lambda: g.scatter_reduce(X, 0, INDEX, SRC[:2], "sum"), ShapeError, r"src of shape \(2, 2\) is not as long"),
    (lambda: g.scatter_reduce(X, 1, INDEX, SRC, "sum"), ShapeError, r"x of shape \(3, 2\) is not as long"),
    (lambda: g.scatter_reduce(X, 0, INDEX[0], SRC, "sum"), ShapeError, "is not as long as the index"),
    (lambda: g.scatter_reduce(X, 2, INDEX, SRC, "sum"), OutOfRangeError, "axis 2 is out of range"),
    *[
        (lambda h=how, at=at: g.scatter_reduce(X, 0, INDEX + at, SRC, h), OutOfRangeError, "out of (range|bounds)")
        for how in HOW
        for at in (3, -4)
    ],
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_has_no_place_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
