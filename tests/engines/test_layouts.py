"""Which bits agree between the engines, by how operands lie in memory: what docs/numerics.md says of SIMPLIFY."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from static.passes import pipeline
from tests.helpers.slow import mostly_slow

SIZE = 17
VIEWS = {
    "as it is": lambda x: x,
    "reversed": lambda x: x[::-1],
    "strided": lambda x: x[..., ::-2],
    "transposed": g.permute_dims,
    "flipped": lambda x: g.flip(x, axis=-1),
    "transposed and reversed": lambda x: g.permute_dims(x)[::-1],
    "spread": lambda x: g.broadcast_to(x[..., :1], x.shape),
}
PAIRS = list(itertools.pairwise([*VIEWS, "as it is"]))
SUMS = {
    "sum": g.sum,
    "sum of rows": lambda x: g.sum(x, axis=-1),
    "sum over rows": lambda x: g.sum(x, axis=0),
    "mean": lambda x: g.mean(x, axis=0),
    "prod": lambda x: g.prod(x, axis=-1),
    "running sum": lambda x: g.cumulative_sum(x, axis=0),
}
PRODUCTS = {
    "matmul": lambda x, y: x @ g.permute_dims(y) if len(x.shape) > 1 else x @ y,
    "einsum": lambda x, y: g.einsum("ij,kj->ik", x, y) if len(x.shape) > 1 else g.einsum("i,i->", x, y),
    "vector": lambda x, y: x @ (y[0] if len(y.shape) > 1 else y),
}
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "backwards": lambda x: x[::-1].copy()[::-1],
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
}


def drawn(shape, dtype, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def both_ways(f, *arrays):
    """f in the dynamic engine, and in the static one: as traced, and after SIMPLIFY with and without an arena."""
    yield f(*map(dynamic.tensor, arrays)).numpy()
    for passes, arena in (((), True), (pipeline.SIMPLIFY, True), (pipeline.SIMPLIFY, False)):
        yield static.compile(f, *arrays, passes=passes, arena=arena)(*arrays)


def same_bits(f, *arrays):
    first, *others = both_ways(f, *arrays)
    for other in others:
        np.testing.assert_array_equal(other, first, strict=True)


def cases():
    """Matrices and vectors of either dtype, of sizes around those at which kernels change their ways."""
    for shape, dtype in itertools.product(
        [(SIZE,), (100,), (SIZE, SIZE), (70, 70), (120, 120)], ["float32", "float64"]
    ):
        yield tuple(drawn(shape, dtype, seed) for seed in range(2))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of products of many numbers
@pytest.mark.diagonal("name", "view")
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("view", VIEWS)
def test_sums_of_views_have_the_same_bits_in_both_engines(name, view):
    for x, _ in cases():
        same_bits(lambda x: SUMS[name](VIEWS[view](x * 1.5)) * 2, x)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("view", mostly_slow(PAIRS, 2), ids=" and ".join)
def test_products_of_views_have_the_same_bits_in_both_engines(name, view):
    first, second = (VIEWS[v] for v in view)
    for x, y in cases():
        left, right = (dynamic.tensor(a).shape for a in (first(x), second(y)))
        y = y if left == right else x
        other = second if left == right else first
        same_bits(lambda x, y, other=other: g.tanh(PRODUCTS[name](first(x), other(y * 1.5))), x, y)


def test_a_reversed_vector_by_itself():
    for size, dtype in itertools.product(range(1, 200, 3), ["float32", "float64"]):
        same_bits(lambda x: x[::-1] @ x[::-1], drawn(size, dtype, size))


# Memory in any order ---------------------------------------------------------------------------------------------


def program(rng, exact):
    """A random function of two arrays of one square shape."""
    moves = [*[VIEWS[v] for v in VIEWS if v != "strided"], lambda x: g.reshape(g.reshape(x, (-1,)), x.shape)]
    exactly = [lambda x, y: x * y + 1.5, lambda x, y: g.maximum(x, y) - x, lambda x, y: g.sqrt(g.abs(x)) / (y * y + 1)]
    rounding = [lambda x, y: x @ y, lambda x, y: g.sum(x, axis=0) + g.tanh(y), lambda x, y: g.einsum("ij,ik->kj", x, y)]
    steps = [
        (rng.choice(moves), rng.choice(moves), rng.choice(exactly if exact else exactly + rounding)) for _ in range(4)
    ]

    def f(x, y):
        for first, second, join in steps:
            x, y = y, join(first(x), second(y))
        return g.max(x, axis=0) + y

    return f


@pytest.mark.parametrize("seed", mostly_slow(range(40), 5))
def test_arithmetic_and_moves_have_the_same_bits_in_any_order_of_memory(seed):
    rng = np.random.default_rng(seed)
    layouts = rng.choice(list(LAYOUTS.values()), 2)
    arrays = [layout(drawn((SIZE, SIZE), "float32", seed + i)) for i, layout in enumerate(layouts)]
    same_bits(program(rng, exact=True), *arrays)


@pytest.mark.parametrize("seed", mostly_slow(range(40), 5))
def test_sums_and_products_differ_by_rounding_in_any_order_of_memory(seed):
    rng = np.random.default_rng(seed)
    layouts = rng.choice(list(LAYOUTS.values()), 2)
    arrays = [layout(drawn((SIZE, SIZE), "float64", seed + i)) for i, layout in enumerate(layouts)]
    first, *others = both_ways(program(rng, exact=False), *arrays)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-9, atol=1e-12 * abs(first).max())


def test_equal_values_that_become_one_array_are_multiplied_to_rounding():
    """BLAS multiplies an array by its own transpose in another way than two equal arrays."""
    for x, _ in cases():
        x = np.atleast_2d(x)
        first, *others = both_ways(lambda x: (x * 2) @ (x * 2).T, x)
        for other in others:
            np.testing.assert_allclose(other, first, rtol=1e-5, atol=1e-5 * abs(first).max())
