"""Convolution, pooling, special functions, normalisation and losses: values, edges, gradients, and PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import graphs
import static
from graphs.ops.windows import counts, window_of
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run

each_engine = pytest.mark.parametrize("engine", ENGINES)
few = settings(max_examples=30)
CAUSAL = np.tri(4, dtype=bool)
inf, nan = math.inf, math.nan


def values(*shape, seed=0):
    return np.asarray(np.random.default_rng((seed, *shape)).normal(size=shape))


# Convolution, against windows written out and summed ------------------------------------------------------------


def windows(x, window, fill=0.0):
    """The elements under each tap of each window: [..., *counts, *sizes]."""
    before = x.ndim - len(window)
    padded = np.pad(x, [(0, 0)] * before + [(b, a) for _, _, b, a, _ in window], constant_values=fill)
    reach = [d * (k - 1) + 1 for k, *_, d in window]
    every = sliding_window_view(padded, reach, axis=tuple(range(before, x.ndim)))
    strides = tuple(slice(None, None, s) for _, s, *_ in window)
    gaps = tuple(slice(None, None, d) for *_, d in window)
    return every[(..., *strides, *gaps)]


def convolved(x, weight, window, groups):
    taken = windows(x, window)  # [N, C, *counts, *sizes]
    rank, features = len(window), weight.shape[0] // groups
    taken = taken.reshape(x.shape[0], groups, -1, *taken.shape[2:])
    weight = weight.reshape(groups, features, -1, *weight.shape[2:])
    axes = "xyz"[:rank], "pqr"[:rank]
    result = np.einsum(f"ngc{axes[0]}{axes[1]},gfc{axes[1]}->ngf{axes[0]}", taken, weight)
    return result.reshape(x.shape[0], -1, *result.shape[3:])


@st.composite
def window_cases(draw, rank, most_padding):
    sizes = [draw(st.integers(1, 6)) for _ in range(rank)]
    parts = []
    for size in sizes:
        k, s, d = (draw(st.integers(1, 3)) for _ in range(3))
        b, a = (draw(st.integers(0, most_padding(k))) for _ in range(2))
        k = k if d * (k - 1) + 1 <= size + b + a else 1
        parts.append((k, s, min(b, most_padding(k)), min(a, most_padding(k)), d))
    return sizes, tuple(parts)


@few
@given(st.integers(1, 3).flatmap(lambda rank: window_cases(rank, lambda k: 3)), st.data())
def test_convolution_is_a_sum_over_windows(drawn, data):
    sizes, window = drawn
    groups, channels, features, batch = (data.draw(st.integers(1, 3)) for _ in range(4))
    x = values(batch, groups * channels, *sizes)
    weight = values(groups * features, channels, *(part[0] for part in window))
    for engine in ENGINES:
        got = run(engine, lambda x, w: graphs.convolution(x, w, window, groups), x, weight)
        np.testing.assert_allclose(got, convolved(x, weight, window, groups), rtol=1e-12, atol=1e-12)


@given(window_cases(2, lambda k: 2))
def test_the_three_convolutions_are_adjoint(drawn):
    sizes, window = drawn
    x, weight = values(2, 2, *sizes), values(4, 1, *(part[0] for part in window))
    g = values(2, 4, *counts(sizes, window))
    forms = [
        np.sum(graphs.convolution(x, weight, window, 2) * g),
        np.sum(graphs.convolution_input(g, weight, sizes, window, 2) * x),
        np.sum(graphs.convolution_weight(x, g, window, 2) * weight),
    ]
    np.testing.assert_allclose(forms, forms[0], rtol=1e-10, atol=1e-10)


def test_batches_larger_than_a_block_are_convolved_alike():
    x, weight = values(300, 8, 12, 12).astype(np.float32), values(4, 8, 3, 3).astype(np.float32)
    whole = graphs.conv2d(x, weight, padding=1)
    np.testing.assert_allclose(whole[298:], graphs.conv2d(x[298:], weight, padding=1), rtol=1e-4, atol=1e-4)
    g = np.ones_like(whole)
    window = window_of((3, 3), 1, 1, 1)
    halves = [graphs.convolution_weight(x[part], g[part], window) for part in (slice(0, 150), slice(150, 300))]
    np.testing.assert_allclose(graphs.convolution_weight(x, g, window), sum(halves), rtol=1e-3, atol=1e-2)


@each_engine
def test_conv2d_options(engine):
    x, weight, bias = values(2, 3, 5, 6), values(4, 3, 3, 2), values(4)

    def conv(**options):
        return run(engine, lambda x, w, b: graphs.conv2d(x, w, b, **options), x, weight, bias)

    assert conv(padding="same").shape == (2, 4, 5, 6)
    np.testing.assert_array_equal(conv(padding="valid"), conv())
    np.testing.assert_array_equal(conv(padding=(1, 0)), conv(padding=((1, 1), (0, 0))))
    assert conv(padding=((0, 2), (1, 0)), stride=(2, 1)).shape == (2, 4, 3, 6)
    np.testing.assert_allclose(conv(), convolved(x, weight, window_of((3, 2), 1, 0, 1), 1) + bias[:, None, None])
    without_batch = run(engine, graphs.conv2d, x[0], weight)
    np.testing.assert_allclose(without_batch, conv()[0] - bias[:, None, None])


@each_engine
def test_gradients_of_conv_and_pool_functions(engine):
    x, weight, bias = values(2, 2, 6), values(4, 1, 3), values(4)
    check = {"order": 2, "engine": ENGINES[engine]}
    check_grads(lambda x, w, b: graphs.conv1d(x, w, b, padding="same", groups=2) ** 2, (x, weight, bias), **check)
    check_grads(lambda x: graphs.max_pool1d(x, 3, 2, padding=1) ** 2, (x,), **check)
    check_grads(lambda x: graphs.avg_pool1d(x, 3, 2, 1, count_include_pad=False) ** 2, (x,), **check)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 2}, "3 channels do not divide into 2 groups"),
        ({"groups": 3}, "the weight is for channels 9, expected 3"),
        ({"padding": "full"}, "'same' or 'valid', not 'full'"),
        ({"padding": "same", "stride": 2}, "'same' needs a stride of 1"),
        ({"padding": -1}, "padding is 0 or more"),
        ({"stride": 0}, "stride is 1 or more"),
        ({"stride": (1, 1, 1)}, "one for each of 2 axes"),
        ({"dilation": 4}, "does not fit a padded size of 5"),
    ],
)
def test_conv2d_refuses(options, message):
    with pytest.raises(graphs.ShapeError, match=message):
        graphs.conv2d(np.ones((1, 3, 5, 5)), np.ones((6, 3, 3, 3)), **options)


def test_conv_names_wrong_ranks():
    with pytest.raises(graphs.ShapeError, match="the weight has 4 axes"):
        graphs.conv2d(np.ones((1, 3, 5, 5)), np.ones((6, 3, 3)))
    with pytest.raises(graphs.ShapeError, match=r"takes 3 axes .* or 2 without the batch, not 4"):
        graphs.conv1d(np.ones((1, 3, 5, 5)), np.ones((6, 3, 3)))


def test_one_compiled_convnet_serves_every_batch_and_size():
    weight = values(4, 2, 3, 3)

    def net(x, w):
        h = graphs.max_pool2d(graphs.relu(graphs.conv2d(x, w, padding=1, stride=2)), 2)
        return graphs.sum(graphs.avg_pool2d(h, 2, 1, 1) ** 2)

    exe = static.compile(static.value_and_grad(net, (0, 1)), graphs.TensorSpec(("B", 2, "H", "W"), "float64"), weight)
    for shape in ((1, 2, 8, 8), (3, 2, 9, 12), (0, 2, 7, 7)):
        x = values(*shape)
        value, (gx, gw) = exe(x, weight)
        np.testing.assert_allclose(value, net(x, weight), rtol=1e-12)
        for got, expected in zip((gx, gw), gradients("dynamic", net, x, weight), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_integers_convolve_exactly():
    x = np.arange(5, dtype=np.int32)[None, None]
    got = graphs.conv1d(x, np.array([[[1, -2, 1]]], np.int32))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, [[[0, 0, 0]]])


# Pooling --------------------------------------------------------------------------------------------------------


@few
@given(st.integers(1, 2).flatmap(lambda rank: window_cases(rank, lambda k: k // 2)), st.booleans())
def test_pooling_is_over_windows(drawn, ties):
    sizes, window = drawn
    x = values(2, 1, *sizes)
    x = np.round(x) if ties else x
    axes = tuple(range(-len(window), 0))
    np.testing.assert_array_equal(graphs.window_max(x, window=window), windows(x, window, -inf).max(axes))
    np.testing.assert_allclose(graphs.window_sum(x, window=window), windows(x, window).sum(axes), atol=1e-12)
    which = graphs.window_argmax(x, graphs.window_max(x, window=window), window=window)
    flat = windows(x, window, -inf).reshape(*which.shape, -1)
    something = np.isfinite(flat.max(-1))  # a dilated window may miss every element
    np.testing.assert_array_equal(which[something], flat.argmax(-1)[something])  # the first of a tie
    picked = graphs.window_pick(x, which, window=window)
    np.testing.assert_array_equal(picked, np.where(something, flat.max(-1), 0))


@each_engine
@pytest.mark.parametrize(
    ("x", "slope"),
    [
        ([3, 3, 1, 1], [1, 0, 1, 0]),
        ([1, 2, nan, nan], [0, 1, 0, 1]),
        ([-inf, -inf, nan, 1], [1, 0, 1, 0]),
        ([inf, inf, -0.0, 0.0], [1, 0, 1, 0]),
    ],
)
def test_the_first_of_a_tie_and_the_last_nan_get_the_gradient(engine, x, slope):
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.max_pool1d(x, 2)), np.array([x], float))
    np.testing.assert_array_equal(gradient, [slope])


def test_an_infinite_gradient_stays_with_the_element_it_belongs_to():
    window, which = window_of((2,), 2, 0, 1), np.array([1, 0], np.uint8)
    placed = graphs.window_place(np.array([inf, nan]), which, sizes=(4,), window=window)
    np.testing.assert_array_equal(placed, [0, inf, nan, 0])


def test_padding_of_an_average_counts_or_not():
    x = np.ones((1, 1, 3))
    np.testing.assert_allclose(graphs.avg_pool1d(x, 3, 1, 1)[0, 0], [2 / 3, 1, 2 / 3])
    np.testing.assert_allclose(graphs.avg_pool1d(x, 3, 1, 1, count_include_pad=False)[0, 0], [1, 1, 1])


def test_pooling_refuses():
    x = np.ones((1, 1, 4, 4))
    with pytest.raises(graphs.ShapeError, match="at most half of the window"):
        graphs.max_pool2d(x, 3, padding=2)
    with pytest.raises(graphs.ShapeError, match="a size of 1 or more for each of 2 axes"):
        graphs.avg_pool2d(x, (2, 2, 2))
    with pytest.raises(graphs.ShapeError, match="takes 3 axes"):
        graphs.max_pool1d(x, 2)


# Special functions ----------------------------------------------------------------------------------------------


def distance(got, exact):
    """The largest error in units in the last place of the exact values rounded to the dtype of `got`."""
    rounded = np.abs(exact).astype(got.dtype)
    return np.max(np.abs(got.astype(float) - exact) / np.spacing(np.maximum(rounded, np.finfo(got.dtype).tiny)))


POINTS = np.concatenate([np.linspace(-7, 7, 4001), np.linspace(-0.6, 0.6, 2001), np.logspace(-300, 0, 301)])


def test_erf_to_the_last_digits():
    exact = np.array([math.erf(x) for x in POINTS])
    assert distance(graphs.erf(POINTS), exact) <= 5
    single = POINTS.astype(np.float32)
    assert distance(graphs.erf(single), np.array([math.erf(x) for x in single])) <= 6


def test_erfc_to_the_last_digits_of_its_tail():
    points = np.concatenate([POINTS, np.linspace(0, 26, 4001)])
    assert distance(graphs.erfc(points), np.array([math.erfc(x) for x in points])) <= 8
    single = np.linspace(-4, 9, 4001).astype(np.float32)
    assert distance(graphs.erfc(single), np.array([math.erfc(x) for x in single])) <= 10


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_ends_of_the_error_functions(dtype):
    x = np.array([0.0, -0.0, inf, -inf, nan, 100, -100], dtype)
    np.testing.assert_array_equal(graphs.erf(x), np.array([0, -0.0, 1, -1, nan, 1, -1], dtype))
    assert np.signbit(graphs.erf(x)[1])
    np.testing.assert_array_equal(graphs.erfc(x), np.array([1, 1, 0, 2, nan, 0, 2], dtype))
    assert graphs.erf(x).dtype == graphs.erfc(x).dtype == dtype


def test_gelu_is_x_times_the_normal_distribution():
    x = np.linspace(-6, 6, 101)
    np.testing.assert_allclose(graphs.gelu(x), x * scipy.special.ndtr(x), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(graphs.gelu(x, approximate=True), graphs.gelu(x), atol=5e-4)


# Composites at the edges ----------------------------------------------------------------------------------------


@each_engine
def test_logsumexp_of_infinities(engine):
    x = np.array([[-inf, 0, 1], [inf, 0, -inf], [inf, inf, 0], [nan, 0, 1]])
    got = run(engine, lambda x: graphs.logsumexp(x, axis=-1), x)
    np.testing.assert_allclose(got, [np.log(1 + np.e), inf, inf, nan])
    with np.errstate(divide="ignore"):
        assert run(engine, graphs.logsumexp, np.full(3, -inf)) == -inf
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.logsumexp(x, axis=-1)), x[:1])
    np.testing.assert_allclose(gradient, [[0, 1 / (1 + np.e), np.e / (1 + np.e)]])


def test_log_softmax_keeps_the_digits_of_small_differences():
    x = np.array([1e5, 1e5 + 0.25], np.float32)
    np.testing.assert_allclose(graphs.log_softmax(x), scipy.special.log_softmax([0, 0.25]), rtol=1e-6)


@each_engine
def test_softmax_with_masked_entries(engine):
    x = np.array([[-inf, 0.0, 0.0], [1.0, -inf, -inf]])
    np.testing.assert_array_equal(run(engine, graphs.softmax, x), [[0, 0.5, 0.5], [1, 0, 0]])
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.softmax(x) ** 2), x)
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


@each_engine
def test_the_gradient_of_a_standard_deviation_of_zero_is_zero(engine):
    x = np.array([[2.0, 2.0], [1.0, 3.0]])
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.std(x, axis=1)), x)
    np.testing.assert_allclose(gradient, [[0, 0], [-0.5, 0.5]])


# Normalisation, dropout, attention, losses ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 6), (2, 3, 4, 2)])
def test_batch_norm_by_the_batch_and_by_given_statistics(shape):
    x, scale, shift = values(*shape), values(3), values(3)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    column = (3, *(1,) * (x.ndim - 2))
    normal = (x - x.mean(axes).reshape(column)) / np.sqrt(x.var(axes).reshape(column) + 1e-5)
    expected = normal * scale.reshape(column) + shift.reshape(column)
    np.testing.assert_allclose(graphs.batch_norm(x, scale, shift), expected)
    mean, variance = graphs.batch_statistics(x)
    np.testing.assert_allclose(graphs.batch_norm(x, scale, shift, mean, variance), expected)
    np.testing.assert_allclose(graphs.batch_norm(x), normal)


def test_group_and_instance_norm():
    x = values(2, 4, 3)
    grouped = x.reshape(2, 2, 6)
    expected = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(graphs.group_norm(x, 2), expected.reshape(x.shape))
    np.testing.assert_allclose(graphs.instance_norm(x), graphs.group_norm(x, 4))
    with pytest.raises(graphs.ShapeError, match="4 channels do not divide into 3 groups"):
        graphs.group_norm(x, 3)


@each_engine
@pytest.mark.parametrize(
    "f",
    [
        graphs.gelu,
        lambda x: graphs.gelu(x, approximate=True),
        lambda x: graphs.leaky_relu(x, 0.1) ** 2,
        lambda x: graphs.elu(x, 0.5),
        lambda x: graphs.batch_norm(x, x[0, :, 0], x[1, :, 0]),
        lambda x: graphs.group_norm(x, 2, x[0, :, 0]),
        lambda x: graphs.rms_norm(x, x[0, 0]),
        lambda x: graphs.attention(x, x + 1, x * 2, CAUSAL),
        lambda x: graphs.mse_loss(x, 2 * x**2),
        lambda x: graphs.huber_loss(x, 2 * x**2, 0.5),
        lambda x: graphs.binary_cross_entropy_with_logits(x, graphs.sigmoid(x + 1)),
        lambda x: graphs.dropout(x**2, 0.3, graphs.random_key(1)),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_second_order_of_composites(engine, f):
    check_grads(f, (values(2, 4, 3),), order=2, engine=ENGINES[engine])


@each_engine
def test_attention_of_a_row_that_sees_nothing_is_zero(engine):
    q, k, v = values(2, 3), values(4, 3), values(4, 5)
    mask = np.array([[True, True, False, False], [False] * 4])
    got = run(engine, lambda q, k, v: graphs.attention(q, k, v, mask), q, k, v)
    weights = scipy.special.softmax((q @ k.T / np.sqrt(3))[0, :2])
    np.testing.assert_allclose(got, [weights @ v[:2], np.zeros(5)])
    for gradient in gradients(engine, lambda q, k, v: graphs.sum(graphs.attention(q, k, v, mask)), q, k, v):
        assert np.isfinite(gradient).all()


@each_engine
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mask_of_floats_is_added(engine, dtype):
    q, k, v = values(2, 3).astype(dtype), values(4, 3).astype(dtype), values(4, 5).astype(dtype)
    bias = np.array([[0.5, -1.0, 0.0, -np.inf], [-np.inf] * 4])
    got = run(engine, graphs.attention, q, k, v, bias)
    weights = scipy.special.softmax((q @ k.T / np.sqrt(3) + bias)[0])
    np.testing.assert_allclose(got, [weights @ v, np.zeros(5)], rtol=1e-5)
    assert got.dtype == dtype
    allowed = np.isfinite(bias)
    chosen, added = (run(engine, graphs.attention, q, k, v, m) for m in (allowed, np.where(allowed, 0.0, -np.inf)))
    np.testing.assert_array_equal(added, chosen)
    for gradient in gradients(engine, lambda *xs: graphs.sum(graphs.attention(*xs) ** 2), q, k, v, bias):
        assert np.isfinite(gradient).all()


@each_engine
def test_a_mask_of_floats_has_gradients_and_one_of_ints_is_refused(engine):
    q, k, v = values(2, 3), values(4, 3), values(4, 5)
    check_grads(lambda m: graphs.attention(q, k, v, m), (values(2, 4),), order=2, engine=ENGINES[engine])
    with pytest.raises(graphs.DTypeError, match="attention: a mask is bool, or float and added"):
        run(engine, lambda q, k, v: graphs.attention(q, k, v, np.ones((2, 4), int)), q, k, v)


def test_attention_of_a_symbolic_width():
    spec = graphs.TensorSpec(("T", "D"), "float32")
    exe = static.compile(graphs.attention, spec, spec, spec)
    assert exe.graph.outputs[0].spec == spec
    q, k, v = (values(3, 4, seed=seed).astype(np.float32) for seed in range(3))
    np.testing.assert_allclose(exe(q, k, v), graphs.attention(q, k, v), rtol=1e-6)


def test_cross_entropy_of_certain_logits_is_exact():
    logits, target = np.array([1000.0, -1000.0, 40.0]), np.array([1.0, 0.0, 1.0])
    got = graphs.binary_cross_entropy_with_logits(logits, target)
    np.testing.assert_allclose(got, np.log1p(np.exp(-40)) / 3, rtol=1e-12)


# The same in PyTorch --------------------------------------------------------------------------------------------


def same_as_torch(ours, other, *arrays, rtol=1e-9):
    """Value and gradients of the weighted sum of a function, in float64."""
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = other(*tensors)
    weights = values(*expected.shape, seed=9)
    (expected * torch.tensor(weights)).sum().backward()
    for engine in ENGINES:
        got = run(engine, ours, *arrays)
        np.testing.assert_allclose(got, expected.detach().numpy(), rtol=rtol, atol=1e-11)
        slopes = gradients(engine, lambda *a: graphs.sum(ours(*a) * weights), *arrays)
        for slope, tensor in zip(slopes, tensors, strict=True):
            np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=rtol, atol=1e-10)


def choices(seed, rank):
    rng = np.random.default_rng(seed)
    return rng, lambda low, high: tuple(int(v) for v in rng.integers(low, high + 1, rank))


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_convolution_as_in_pytorch(rank, seed):
    torch = pytest.importorskip("torch")
    rng, draw = choices(seed, rank)
    groups, channels, features = (int(v) for v in rng.integers(1, 4, 3))
    sizes, window = draw(5, 9), draw(1, 3)
    padding = ["same", "valid", draw(0, 3)][rng.integers(3)]
    options = {"padding": padding, "dilation": draw(1, 2), "groups": groups}
    options["stride"] = 1 if padding == "same" else draw(1, 3)
    arrays = (
        values(2, groups * channels, *sizes),
        values(groups * features, channels, *window),
        values(groups * features),
    )
    same_as_torch(
        lambda *a: getattr(graphs, f"conv{rank}d")(*a, **options),
        lambda *a: getattr(torch.nn.functional, f"conv{rank}d")(*a, **options),
        *arrays,
    )


@pytest.mark.peers
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_pooling_as_in_pytorch(rank, seed):
    torch = pytest.importorskip("torch")
    rng, draw = choices(seed, rank)
    x, size, stride = values(2, 2, *draw(5, 9)), draw(1, 3), draw(1, 3)
    x = np.round(x) if seed % 2 else x  # ties
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in size)
    counting = bool(seed % 3)
    maximum, average = (getattr(graphs, f"{kind}_pool{rank}d") for kind in ("max", "avg"))
    their_maximum, their_average = (getattr(torch.nn.functional, f"{kind}_pool{rank}d") for kind in ("max", "avg"))
    dilation = draw(1, 2)
    same_as_torch(
        lambda x: maximum(x, size, stride, padding, dilation),
        lambda x: their_maximum(x, size, stride, padding, dilation),
        x,
    )
    same_as_torch(
        lambda x: average(x, size, stride, padding, count_include_pad=counting),
        lambda x: their_average(x, size, stride, padding, count_include_pad=counting),
        x,
    )


def theirs(name, **options):
    """A function of torch.nn.functional, looked up when it is called."""

    def call(*tensors):
        torch = pytest.importorskip("torch")
        options_there = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return getattr(torch.nn.functional, name, getattr(torch, name, None))(*tensors, **options_there)

    return call


X, Y = values(3, 4, 5), values(3, 4, 5, seed=1)
Q, K = values(2, 3, 4), values(2, 5, 4)
CHANNEL, LAST = (values(4), values(4, seed=1)), (values(5), values(5, seed=1))
MASK, LABELS = values(3, 5) > 0, np.array([0, 2, 4])
KINKS = np.array([-1.0, 0.0, 1.0, 2.0])
HUBER = np.append(X.ravel(), [0.5, 0.0]), np.append(Y.ravel(), [0.0, 0.0])

# name -> (ours, theirs, arrays)
COMPOSITES = {
    "gelu": (graphs.gelu, theirs("gelu"), (X,)),
    "gelu-tanh": (lambda x: graphs.gelu(x, approximate=True), theirs("gelu", approximate="tanh"), (X,)),
    "erf": (graphs.erf, theirs("erf"), (X,)),
    "erfc": (graphs.erfc, theirs("erfc"), (X,)),
    "silu": (graphs.silu, theirs("silu"), (X,)),
    "softplus": (graphs.softplus, theirs("softplus"), (X,)),
    "leaky-relu": (graphs.leaky_relu, theirs("leaky_relu"), (KINKS,)),
    "elu": (graphs.elu, theirs("elu"), (KINKS,)),
    "softmax": (graphs.softmax, theirs("softmax", dim=-1), (X,)),
    "log-softmax": (lambda x: graphs.log_softmax(x, 1), theirs("log_softmax", dim=1), (X,)),
    "logsumexp": (lambda x: graphs.logsumexp(x, axis=(0, 2)), theirs("logsumexp", dim=(0, 2)), (X,)),
    "std": (lambda x: graphs.std(x, axis=1, correction=1), theirs("std", dim=1), (X,)),
    "layer-norm": (graphs.layer_norm, lambda x, s, b: theirs("layer_norm")(x, (5,), s, b), (X, *LAST)),
    "rms-norm": (graphs.rms_norm, lambda x, s: theirs("rms_norm")(x, (5,), s, 1e-6), (X, LAST[0])),
    "batch-norm": (
        graphs.batch_norm,
        lambda x, s, b: theirs("batch_norm", training=True)(x, None, None, s, b),
        (X, *CHANNEL),
    ),
    "batch-norm-given": (
        lambda x: graphs.batch_norm(x, None, None, CHANNEL[0], np.full(4, 2.0)),
        theirs("batch_norm", running_mean=CHANNEL[0], running_var=np.full(4, 2.0)),
        (X,),
    ),
    "group-norm": (
        lambda x, s, b: graphs.group_norm(x, 2, s, b),
        lambda x, s, b: theirs("group_norm")(x, 2, s, b),
        (X, *CHANNEL),
    ),
    "instance-norm": (graphs.instance_norm, theirs("instance_norm"), (X,)),
    "attention": (graphs.attention, theirs("scaled_dot_product_attention"), (Q, K, K + 1)),
    "attention-masked": (
        lambda q, k, v: graphs.attention(q, k, v, MASK),
        theirs("scaled_dot_product_attention", attn_mask=MASK),
        (Q, K, K + 1),
    ),
    "cross-entropy": (
        lambda x: graphs.cross_entropy(x, LABELS),
        theirs("cross_entropy", target=LABELS),
        (values(3, 5),),
    ),
    "mse": (graphs.mse_loss, theirs("mse_loss"), (X, Y)),
    "huber": (lambda x, y: graphs.huber_loss(x, y, 0.5), theirs("huber_loss", delta=0.5), HUBER),
    "bce": (
        graphs.binary_cross_entropy_with_logits,
        theirs("binary_cross_entropy_with_logits"),
        (X, scipy.special.expit(Y)),
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_as_in_pytorch(name):
    ours, their_function, arrays = COMPOSITES[name]
    same_as_torch(ours, their_function, *arrays)
