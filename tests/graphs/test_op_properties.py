"""Properties of ops over random shapes, axes and keys: NumPy's values, and the gradients of finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import dynamic
import graphs
import static
from graphs.spec import spec_of
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, run
from tests.helpers.slow import examples

each_engine = pytest.mark.parametrize("engine", ENGINES)
few = examples(0.5)
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
seeds = st.integers(0, 2**16)


def values(shape, seed=0):
    return np.asarray(np.random.default_rng(seed).normal(size=shape) * 2)


def check(engine, f, *arrays, expected):
    """f on the arrays is `expected` at once and in the engine, and its gradients equal finite differences."""
    for got in (f(*arrays), run(engine, f, *arrays)):
        assert spec_of(np.asarray(got)) == spec_of(np.asarray(expected))
        np.testing.assert_array_equal(got, expected)
    check_grads(f, arrays, engine=ENGINES[engine])


@st.composite
def shape_and_axes(draw, min_side=0):
    shape = draw(npst.array_shapes(min_dims=1, max_dims=4, min_side=min_side, max_side=4))
    axes = draw(npst.valid_tuple_axes(len(shape)))
    return shape, draw(st.sampled_from([axes, None, *range(-len(shape), len(shape))]))


@each_engine
@few
@given(npst.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=3), seeds)
def test_broadcasting_and_its_adjoint(engine, drawn, seed):
    x, y = (values(shape, seed + i) for i, shape in enumerate(drawn.input_shapes))
    check(engine, lambda x, y: x * y, x, y, expected=x * y)


@few
@given(npst.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=3, max_dims=3), seeds)
def test_where_broadcasts_its_condition_too(drawn, seed):
    c, x, y = (values(shape, seed + i) for i, shape in enumerate(drawn.input_shapes))
    check("dynamic", lambda x, y: graphs.where(c > 0, x, y), x, y, expected=np.where(c > 0, x, y))


@each_engine
@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod"])
@few
@given(shape_and_axes(min_side=1), st.booleans(), seeds)
def test_reductions(engine, name, drawn, keepdims, seed):
    shape, axis = drawn
    x = values(shape, seed)
    options = {"axis": axis, "keepdims": keepdims}
    expected = getattr(np, name)(x, **options)
    check(engine, lambda x: getattr(graphs, name)(x, **options), x, expected=expected)


@given(shape_and_axes())
def test_zero_size_reductions_have_the_identity(drawn):
    shape, axis = drawn
    x = np.ones(shape)
    for name in ("sum", "prod", "any", "all"):
        np.testing.assert_array_equal(getattr(graphs, name)(x, axis=axis), getattr(np, name)(x, axis=axis))


@each_engine
@few
@given(st.data())
def test_basic_indexing(engine, data):
    shape = data.draw(shapes)
    key = data.draw(npst.basic_indices(shape, allow_newaxis=True, max_dims=6))
    x = values(shape)
    check(engine, lambda x: graphs.index(x, key), x, expected=x[key])


@st.composite
def advanced_keys(draw):
    """A shape and a key of integer arrays side by side, one mask, ints, slices and None."""
    shape = draw(npst.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    start = draw(st.integers(0, len(shape) - 1))
    count = draw(st.integers(1, len(shape) - start))
    index_shape = draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    arrays = [draw(npst.arrays(np.intp, index_shape, elements=st.integers(-s, s - 1))) for s in shape[start:][:count]]
    before = [draw(npst.basic_indices((s,), min_dims=1, allow_ellipsis=False)) for s in shape[:start]]
    return shape, (*(b[0] if isinstance(b, tuple) else b for b in before), *arrays)


@each_engine
@few
@given(advanced_keys())
def test_integer_arrays_side_by_side(engine, drawn):
    shape, key = drawn
    x = values(shape)
    check(engine, lambda x: graphs.index(x, key), x, expected=x[key])


@given(npst.array_shapes(min_dims=1, max_dims=3, max_side=4), st.data())
def test_masks_known_now(shape, data):
    axes = data.draw(st.integers(1, len(shape)))
    mask = data.draw(npst.arrays(bool, shape[:axes]))
    x = values(shape)
    check("dynamic", lambda x: graphs.index(x, mask), x, expected=x[mask])


@each_engine
@few
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_reshape_works_out_minus_one(engine, sizes, data):
    total = math.prod(sizes)
    rest = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    x = values(sizes)
    check(engine, lambda x: graphs.reshape(x, (rest, -1)), x, expected=x.reshape(rest, -1))
    assume(any(total % d for d in range(2, total)))
    wrong = next(d for d in range(2, total) if total % d)
    with pytest.raises(graphs.ShapeError, match="do not fill"):
        graphs.reshape(x, (wrong, -1))


@each_engine
@few
@given(shapes, st.randoms(use_true_random=False))
def test_permutations(engine, shape, random):
    order = [a - len(shape) * random.randint(0, 1) for a in range(len(shape))]
    random.shuffle(order)
    x = values(shape)
    check(engine, lambda x: graphs.permute_dims(x, order), x, expected=x.transpose(order))


@each_engine
@few
@given(shapes.filter(len), st.data())
def test_concat_along_any_axis(engine, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    arrays = [values([size if a == axis % len(shape) else s for a, s in enumerate(shape)], size) for size in sizes]
    check(engine, lambda *xs: graphs.concat(xs, axis=axis), *arrays, expected=np.concatenate(arrays, axis=axis))


@each_engine
@few
@given(shapes, st.data())
def test_pad(engine, shape, data):
    widths = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in shape]
    x = values(shape)
    expected = np.pad(x, widths, constant_values=0.5) if shape else x
    check(engine, lambda x: graphs.pad(x, widths, value=0.5), x, expected=expected)


@each_engine
@few
@given(npst.array_shapes(max_dims=3, max_side=4), st.data())
def test_take_with_negative_and_repeated_indices(engine, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    picked = data.draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5))
    size = shape[axis]
    indices = data.draw(npst.arrays(np.int32, picked, elements=st.integers(-size, size - 1)))
    x = values(shape)
    check(engine, lambda x: graphs.take(x, indices, axis=axis), x, expected=np.take(x, indices, axis=axis))


@each_engine
@few
@given(npst.array_shapes(max_dims=3, max_side=4), st.data())
def test_take_along_axis_with_negative_and_repeated_indices(engine, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    picked = [data.draw(st.integers(0, 5)) if a == axis % len(shape) else s for a, s in enumerate(shape)]
    size = shape[axis]
    indices = data.draw(npst.arrays(np.int64, tuple(picked), elements=st.integers(-size, size - 1)))
    x = values(shape)
    expected = np.take_along_axis(x, indices, axis)
    check(engine, lambda x: graphs.take_along_axis(x, indices, axis=axis), x, expected=expected)


@given(npst.array_shapes(max_dims=3, max_side=4), st.data())
def test_scatter_is_the_adjoint_of_take(shape, data):
    """<take(x), g> = <x, scatter_add(g)> for every x and g."""
    axis = data.draw(st.integers(0, len(shape) - 1))
    indices = data.draw(npst.arrays(np.int64, (5,), elements=st.integers(-shape[axis], shape[axis] - 1)))
    x = values(shape)
    taken = graphs.take(x, indices, axis=axis)
    g = values(taken.shape, 1)
    back = graphs.scatter_add(g, indices, shape=shape, axis=axis)
    assert np.isclose(np.sum(taken * g), np.sum(x * back))


@each_engine
@few
@given(npst.mutually_broadcastable_shapes(signature=np.matmul.signature, min_side=0, max_side=3, max_dims=2))
def test_matmul_broadcasts_batches(engine, drawn):
    x, y = (values(shape, i) for i, shape in enumerate(drawn.input_shapes))
    check(engine, lambda x, y: x @ y, x, y, expected=x @ y)


@each_engine
@few
@given(shapes, st.data())
def test_expand_dims_squeeze_flip_and_moveaxis(engine, shape, data):
    count = data.draw(st.integers(1, 2))
    ndim = len(shape) + count
    axes = data.draw(npst.valid_tuple_axes(ndim, min_size=count, max_size=count))
    x = values(shape)
    wide = np.expand_dims(x, axes)
    check(engine, lambda x: graphs.expand_dims(x, axes), x, expected=wide)
    check(engine, lambda x: graphs.squeeze(x, axes), wide, expected=x)
    check(engine, lambda x: graphs.flip(x, axes), wide, expected=np.flip(wide, axes))
    source, target = data.draw(st.tuples(*[st.integers(-ndim, ndim - 1)] * 2))
    check(engine, lambda x: graphs.moveaxis(x, source, target), wide, expected=np.moveaxis(wide, source, target))


@given(st.integers(-5, 5), st.one_of(st.none(), st.integers(-5, 5)), st.sampled_from([-3, -1, 1, 2]))
def test_arange(start, stop, step):
    got = graphs.arange(start, stop, step)
    expected = np.arange(start, stop, step) if stop is not None else np.arange(0, start, step)
    np.testing.assert_array_equal(got, expected)
    attrs = graphs.arange.prepare(start, stop, step)[1]
    assert graphs.arange.infer(**attrs).shape == expected.shape


@given(
    st.floats(-20, 20, allow_subnormal=False),
    st.floats(0.001, 20, allow_subnormal=False),
    st.integers(1, 3000),
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_numbers_of_a_range_are_rounded_once(start, width, count, dtype):
    """Each is what double precision gives, in the dtype asked for, however many came before it."""
    step = width / count
    exact = start + np.arange(count) * step
    stop = exact[-1] + step / 2
    ranges = [engine.arange(start, stop, step, dtype=dtype) for engine in (graphs, dynamic)]
    lines = [engine.linspace(start, exact[-1], count, dtype=dtype) for engine in (graphs, dynamic)]
    lines.append(graphs.linspace(np.float64(start), np.float64(exact[-1]), count, dtype=dtype))
    for found in (*ranges, *lines):
        np.testing.assert_allclose(found, exact, rtol=np.finfo(dtype).eps, atol=1e-7 if dtype == np.float16 else 1e-9)


def test_ends_in_few_bits_are_counted_from_in_many():
    found = graphs.linspace(np.float16(-10), np.float16(10), 2001)
    np.testing.assert_allclose(found, -10 + np.arange(2001) / 100, atol=1e-12)


def test_a_range_of_a_symbolic_size_is_rounded_once():
    exe = static.compile(lambda x: x + graphs.arange(x.shape[0], dtype=np.float32), graphs.TensorSpec(("n",)))
    np.testing.assert_array_equal(exe(np.zeros(5, np.float32)), np.arange(5, dtype=np.float32))
