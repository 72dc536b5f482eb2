"""Convolution and pooling, against windows written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import graphs
import static
from graphs.ops import convolution_kernels
from graphs.ops.windows import counts, window_of
from graphs.testing import check_grads
from tests.helpers.arrays import values
from tests.helpers.engines import ENGINES, each_engine, gradients, run
from tests.helpers.slow import examples

few = examples(0.6)
inf, nan = math.inf, math.nan


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


@few
@given(st.integers(1, 3).flatmap(lambda rank: window_cases(rank, lambda k: 3)), st.data())
def test_each_way_to_unfold_gives_the_same_convolutions(drawn, data):
    """Columns, shifted strips, strips in parts and lines agree, in blocks of one example and of all."""
    sizes, window = drawn
    groups, channels, features, batch = (data.draw(st.integers(1, 3)) for _ in range(4))
    x = values(batch, groups * channels, *sizes)
    weight = values(groups * features, channels, *(part[0] for part in window))
    g = values(batch, groups * features, *counts(sizes, window))
    way = {"window": window, "groups": groups}
    results = []
    few, many = data.draw(st.integers(1, 60)), 10**6
    ways = (math.inf, 1 << 20, 0, 0), (0, 1, 0, 0), (0, 1 << 20, 0, 0), (0, 1, many, 0), (99, 1 << 20, few, few)
    for fewest, block, unpacked, result in ways:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolution_kernels, "FEWEST_TERMS", fewest)
            patch.setattr(convolution_kernels, "FEWEST_WINDOWS", 0 if unpacked else fewest)
            patch.setattr(convolution_kernels, "SHORTEST_LINE", 1)
            patch.setattr(convolution_kernels, "SHORTEST_PART", 1)
            patch.setattr(convolution_kernels, "UNPACKED", unpacked)
            patch.setattr(convolution_kernels, "UNPACKED_RESULT", result)
            patch.setattr(convolution_kernels, "UNFOLDED", block)
            apart = np.empty((*x.shape, 2))[..., 0]  # an array with gaps, as a slice of another one is
            results.append(
                (
                    convolution_kernels.convolution(x, weight, **way),
                    convolution_kernels.convolution_weight(x, g, **way),
                    convolution_kernels.convolution_input(g, weight, sizes=tuple(sizes), **way, out=apart).copy(),
                )
            )
    for other in results[1:]:
        for left, right in zip(results[0], other, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [4, 20, 64])
@pytest.mark.parametrize("unpacked", [0, 10**6])
def test_a_batch_may_be_empty(size, unpacked, monkeypatch):
    monkeypatch.setattr(convolution_kernels, "UNPACKED", unpacked)
    x, weight = np.zeros((0, 4, size, size), np.float32), values(8, 4, 3, 3).astype(np.float32)
    way = {"window": ((3, 1, 1, 1, 1),) * 2, "groups": 1}
    y = convolution_kernels.convolution(x, weight, **way)
    assert y.shape == (0, 8, size, size)
    assert convolution_kernels.convolution_input(y, weight, sizes=(size, size), **way).shape == x.shape
    np.testing.assert_array_equal(convolution_kernels.convolution_weight(x, y, **way), np.zeros_like(weight))


@few
@given(st.integers(1, 3).flatmap(lambda rank: window_cases(rank, lambda k: 3)), st.data())
def test_bands_and_columns_give_the_same_depthwise_convolutions(drawn, data):
    """In runs of few windows and of all, for few channels at a time; what is not finite stays in its windows."""
    sizes, window = drawn
    groups, batch = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    x, weight = values(batch, groups, *sizes), values(groups, 1, *(part[0] for part in window))
    g = values(batch, groups, *counts(sizes, window))
    if data.draw(st.booleans()):
        x[0, 0], g[0, 0] = (
            np.where(values(*a.shape[2:]) > 1, data.draw(st.sampled_from([inf, nan])), 0) for a in (x, g)
        )
    way = {"window": window, "groups": groups}
    results = []
    for fewest, run_, block in ((math.inf, 16, 1 << 20), (0, 16, 1 << 20), (0, 2, 1)):
        with pytest.MonkeyPatch.context() as patch, np.errstate(invalid="ignore"):
            patch.setattr(convolution_kernels, "_FEWEST", fewest)
            patch.setattr(convolution_kernels, "_FEWEST_TAPS", 1)
            patch.setattr(convolution_kernels, "_RUN", run_)
            patch.setattr(convolution_kernels, "_BANDS", block)
            results.append(
                (
                    convolution_kernels.convolution(x, weight, **way),
                    convolution_kernels.convolution_weight(x, g, **way),
                    convolution_kernels.convolution_input(g, weight, sizes=tuple(sizes), **way),
                )
            )
    for other in results[1:]:
        for left, right in zip(results[0], other, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


def test_a_depthwise_convolution_of_many_elements_is_that_of_each_channel():
    x, weight = values(3, 8, 20, 21).astype(np.float32), values(8, 1, 3, 5).astype(np.float32)
    whole = graphs.conv2d(x, weight, padding=(1, 2), groups=8)
    for channel in range(8):
        one = slice(channel, channel + 1)
        np.testing.assert_allclose(whole[:, one], graphs.conv2d(x[:, one], weight[one], padding=(1, 2)), atol=1e-5)


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
