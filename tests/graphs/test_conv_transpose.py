"""Transposed convolution: against a sum written out, as the adjoint of convolution, any size, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs import ShapeError
from tests.helpers.engines import ENGINES, run
from tests.helpers.slow import examples


def values(*shape, seed=0):
    return np.asarray(np.random.default_rng((seed, *shape)).normal(size=shape))


def spread(x, weight, strides, paddings, extras, groups, dilations):
    """Each element of x times the weight, added where the stride puts it; then the padding is cut off."""
    (batch, channels, *sizes), (_, width, *lengths) = x.shape, weight.shape
    whole = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, s, d, k, e in zip(sizes, strides, dilations, lengths, extras, strict=True)
    ]
    result = np.zeros((batch, width * groups, *whole))
    for place in itertools.product(*map(range, sizes)):
        for tap in itertools.product(*map(range, lengths)):
            at = tuple(i * s + k * d for i, s, k, d in zip(place, strides, tap, dilations, strict=True))
            for c in range(channels):
                first = c // (channels // groups) * width
                result[(slice(None), slice(first, first + width), *at)] += np.outer(
                    x[(slice(None), c, *place)], weight[(c, slice(None), *tap)]
                )
    return result[(..., *(slice(p, n - p) for p, n in zip(paddings, whole, strict=True)))]


@examples(0.8)
@given(st.data(), st.integers(1, 2))
def test_every_element_is_spread_by_the_weight(data, rank):
    def draw(low, high):
        return tuple(data.draw(st.integers(low, high)) for _ in range(rank))

    lengths, strides, dilations, sizes = draw(1, 3), draw(1, 3), draw(1, 3), draw(1, 4)
    extras = tuple(data.draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilations, strict=True))
    fits = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, s, d, k, e in zip(sizes, strides, dilations, lengths, extras, strict=True)
    ]
    paddings = tuple(data.draw(st.integers(0, min(3, (n - 1) // 2))) for n in fits)
    groups, channels, width = (data.draw(st.integers(1, 2)) for _ in range(3))
    x, weight = values(2, groups * channels, *sizes), values(groups * channels, width, *lengths)
    expected = spread(x, weight, strides, paddings, extras, groups, dilations)
    f = getattr(g, f"conv_transpose{rank}d")
    for engine in ENGINES:
        found = run(engine, lambda x, w: f(x, w, None, strides, paddings, extras, groups, dilations), x, weight)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_with_a_stride_of_1_it_is_scipys_full_convolution():
    x, weight = values(4, 5), values(3, 2)
    found = g.conv_transpose2d(x[None, None], weight[None, None])
    np.testing.assert_allclose(found[0, 0], scipy.signal.convolve2d(x, weight), rtol=1e-12)


def test_it_is_the_adjoint_of_convolution():
    x, weight = values(2, 3, 9), values(4, 3, 3)
    y = values(*g.conv1d(x, weight, stride=2, padding=1).shape, seed=1)
    back = g.conv_transpose1d(y, weight, stride=2, padding=1)
    np.testing.assert_allclose(np.sum(g.conv1d(x, weight, stride=2, padding=1) * y), np.sum(x * back), rtol=1e-12)


def test_one_graph_serves_every_batch_and_size():
    weight = values(2, 3, 3, 2)

    def f(x, w):
        return g.sum(g.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1) ** 2)

    exe = static.compile(static.value_and_grad(f, (0, 1)), g.TensorSpec(("B", 2, "H", "W"), "float64"), weight)
    for shape in ((1, 2, 3, 4), (2, 2, 1, 5), (0, 2, 2, 2)):
        x = values(*shape)
        value, slopes = exe(x, weight)
        np.testing.assert_allclose(value, f(x, weight), rtol=1e-12)
        for ours, theirs in zip(slopes, dynamic.grad(f, (0, 1))(x, weight), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


REFUSED = [
    ({"output_padding": 1}, "an output_padding of 1 is less than the stride or the dilation"),
    ({"output_padding": -1}, "output_padding is 0 or more"),
    ({"padding": 4}, "a padding of 4 leaves -1 elements"),
    ({"padding": "same"}, "padding is a number, or one for each axis, not 'same'"),
    ({"groups": 3}, "4 channels do not divide into 3 groups"),
    ({"stride": (1, 2)}, "one for each of 1 axes"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_has_no_result_is_refused(options, message):
    with pytest.raises(ShapeError, match=message):
        g.conv_transpose1d(np.ones((1, 4, 5)), np.ones((4, 1, 3)), **options)


def test_wrong_channels_and_ranks_are_refused():
    with pytest.raises(ShapeError, match="conv_transpose1d: the weight is for channels 3, expected 4"):
        g.conv_transpose1d(np.ones((1, 4, 5)), np.ones((3, 4, 3)))
    with pytest.raises(ShapeError, match="the weight has 4 axes"):
        g.conv_transpose2d(np.ones((1, 4, 5, 5)), np.ones((4, 4, 3)))
    with pytest.raises(ShapeError, match="or 2 without the batch, not 4"):
        g.conv_transpose1d(np.ones((1, 4, 5, 5)), np.ones((4, 4, 3)))
