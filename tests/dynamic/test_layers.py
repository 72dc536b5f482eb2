"""Layers over one, two and three axes, borders and patches: values by NumPy, gradients by differences, traces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic as torch
import graphs
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import GraphError, ShapeError
from graphs.testing import check_grads
from tests.helpers.together import together

RNG = np.random.default_rng(0)
X5 = RNG.standard_normal((2, 2, 4, 5, 3))
same = np.testing.assert_allclose


def number(x):
    return np.asarray(x.detach().numpy() if isinstance(x, torch.Tensor) else x)


def windows(x, size):
    """Every window of the last axes, one after another: [..., *counts, *size]."""
    return np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(-len(size), 0)))


def test_convolution_over_three_axes():
    weight, bias = RNG.standard_normal((3, 2, 2, 3, 1)), RNG.standard_normal(3)
    expected = np.einsum("ncdhwxyz,fcxyz->nfdhw", windows(X5, (2, 3, 1)), weight) + bias.reshape(-1, 1, 1, 1)
    found = torch.conv3d(torch.tensor(X5), torch.tensor(weight), torch.tensor(bias))
    same(number(found), expected, rtol=1e-12)
    g = RNG.standard_normal(found.shape)
    back = F.conv_transpose3d(torch.tensor(g), torch.tensor(weight))
    same(np.sum(number(back) * X5), np.sum(g * (expected - bias.reshape(-1, 1, 1, 1))), rtol=1e-10)  # the adjoint


def test_pooling_over_three_axes():
    parts = windows(X5, (2, 2, 2))[:, :, ::2, ::2, ::2]
    same(number(torch.max_pool3d(torch.tensor(X5), 2)), parts.max((-3, -2, -1)))
    same(number(F.avg_pool3d(torch.tensor(X5), 2)), parts.mean((-3, -2, -1)), rtol=1e-12)
    same(number(F.avg_pool3d(torch.tensor(X5), 2, divisor_override=5)), parts.sum((-3, -2, -1)) / 5, rtol=1e-12)
    same(number(F.lp_pool3d(torch.tensor(X5), 2, 2)), np.sqrt((parts**2).sum((-3, -2, -1))), rtol=1e-12)
    same(number(F.adaptive_avg_pool3d(torch.tensor(X5), 1)), X5.mean((2, 3, 4), keepdims=True), rtol=1e-12)
    same(number(F.adaptive_max_pool3d(torch.tensor(X5), (1, None, 1))), X5.max((2, 4), keepdims=True))
    with pytest.raises(ShapeError, match="the divisor of a mean is not 0"):
        F.avg_pool2d(torch.tensor(X5[0]), 2, divisor_override=0)


def test_norms_keep_running_statistics_of_instances():
    layer = nn.InstanceNorm3d(2, momentum=0.25, track_running_stats=True).double()
    found = number(layer(torch.tensor(X5)))
    mean, variance = X5.mean((2, 3, 4), keepdims=True), X5.var((2, 3, 4), keepdims=True)
    same(found, (X5 - mean) / np.sqrt(variance + 1e-5), rtol=1e-10)
    count = X5[0, 0].size
    same(layer.running_mean.numpy(), 0.25 * mean.reshape(2, 2).mean(0), rtol=1e-6)
    same(layer.running_var.numpy(), 0.75 + 0.25 * variance.reshape(2, 2).mean(0) * count / (count - 1), rtol=1e-6)
    layer.eval()
    same(number(layer(torch.tensor(X5[0]))), (X5[0] - column(layer.running_mean)) / np.sqrt(
        column(layer.running_var) + 1e-5), rtol=1e-6)  # fmt: skip
    with pytest.raises(ValueError, match="one value per channel of an example"):
        F.instance_norm(torch.ones(3, 2, 1))
    shared, image = torch.ones(2), torch.tensor(X5)
    same(number(F.instance_norm(image, shared, torch.ones(2), shared)), number(F.instance_norm(image)))
    for made in (nn.BatchNorm3d(2, bias=False), nn.GroupNorm(1, 2, bias=False), nn.InstanceNorm1d(2, affine=True,
                 bias=False)):  # fmt: skip
        assert made.bias is None
        assert made.weight.shape == (2,)


def column(x):
    return x.numpy().reshape(-1, 1, 1, 1)


@given(st.data())
def test_a_border_of_any_sign_is_numpys_border_and_then_a_slice(data):
    shape = data.draw(st.lists(st.integers(3, 5), min_size=1, max_size=3))
    sizes = st.integers(-1, 2)
    border = [(data.draw(sizes), data.draw(sizes)) for _ in shape]
    mode = data.draw(st.sampled_from(["constant", "reflect", "replicate"]))
    x = np.arange(float(np.prod(shape))).reshape(1, 1, *shape)
    grown = np.pad(x, [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in border)], _NUMPY[mode])
    kept = tuple(slice(max(-a, 0), size - max(-b, 0)) for size, (a, b) in zip(grown.shape[2:], border, strict=True))
    flat = [size for pair in reversed(border) for size in pair]
    np.testing.assert_array_equal(number(F.pad(torch.tensor(x), flat, mode)), grown[(..., *kept)])


_NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


def test_borders():
    x = torch.tensor(np.arange(4.0))[None]
    for layer, expected in (
        (nn.CircularPad1d((1, 2)), [3, 0, 1, 2, 3, 0, 1]),
        (nn.CircularPad1d((-1, 2)), [1, 2, 3, 1, 2]),  # goes round what is left
        (nn.ReflectionPad1d((-1, 2)), [1, 2, 3, 2, 1]),
        (nn.ReplicationPad1d((2, -3)), [0, 0, 0]),
        (nn.ConstantPad1d((-1, 1), 7.0), [1, 2, 3, 7]),
        (nn.ZeroPad1d(1), [0, 0, 1, 2, 3, 0]),
    ):
        assert layer(x).tolist() == [expected], layer
    assert nn.ZeroPad3d(1)(torch.ones(1, 1, 1)).shape == (3, 3, 3)
    assert repr(nn.ConstantPad2d(1, 2.0)) == "ConstantPad2d(padding=(1, 1, 1, 1), value=2.0)"
    with pytest.raises(ShapeError, match="5 elements of an axis of 4 cannot go"):
        F.pad(x, (-2, -3))


def test_patches_are_windows_and_fold_adds_them_where_they_were():
    x = RNG.standard_normal((2, 3, 6, 5))
    expected = np.moveaxis(windows(x, (2, 3)), (4, 5), (2, 3)).reshape(2, 18, 15)
    same(number(F.unfold(torch.tensor(x), (2, 3))), expected)
    options = {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 0), "stride": (1, 2)}
    columns = F.unfold(torch.tensor(x), **options)
    g = RNG.standard_normal(columns.shape)
    folded = F.fold(torch.tensor(g), (6, 5), **options)
    same(np.sum(number(folded) * x), np.sum(g * number(columns)), rtol=1e-10)  # the adjoint
    counted = F.fold(F.unfold(torch.ones(1, 1, 4, 4), 3), 4, 3)
    assert counted[0, 0, 1].tolist() == [2, 4, 4, 2]
    with pytest.raises(ShapeError, match=r"fold: takes f\[N, C \* 4, 9\] for an output of \(4, 4\)"):
        F.fold(torch.ones(1, 8, 8), 4, 2)


def test_pixels_and_channels():
    x = RNG.standard_normal((2, 8, 3, 4))
    same(number(F.pixel_unshuffle(F.pixel_shuffle(torch.tensor(x), 2), 2)), x)
    dealt = F.channel_shuffle(torch.tensor(np.arange(6.0).reshape(1, 6, 1)), 2)
    assert dealt.flatten().tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(ShapeError, match="no multiples of 3"):
        F.pixel_unshuffle(torch.tensor(x), 2 + 1)
    with pytest.raises(ShapeError, match="do not divide into 3 groups"):
        F.channel_shuffle(torch.tensor(x), 3)


SMALL = RNG.standard_normal((1, 2, 3, 4, 3))
FUNCTIONS = {
    "conv3d": lambda x: F.conv3d(x, np.ones((2, 2, 2, 1, 2)), stride=(1, 2, 1), padding=1),
    "conv_transpose3d": lambda x: F.conv_transpose3d(x, np.ones((2, 1, 1, 2, 2)), stride=2),
    "max_pool3d": lambda x: F.max_pool3d(x, 2, 1),
    "avg_pool3d": lambda x: F.avg_pool3d(x, 2, 1, padding=1, divisor_override=3),
    "lp_pool3d": lambda x: F.lp_pool3d(x * x, 2, 2, 1),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x, (2, 3, 1)),
    "instance_norm": F.instance_norm,
    "pad": lambda x: F.pad(x, (1, -1, -2, 2, 0, 1), "circular"),
    "unfold": lambda x: F.unfold(x[0], 2, padding=1),
    "fold": lambda x: F.fold(x.reshape(1, 8, 9), (4, 4), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[..., :2, :2], 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
}


@together("name", FUNCTIONS)
def test_gradients_and_traces(name):
    check_grads(FUNCTIONS[name], (SMALL,))
    same(static.jit(FUNCTIONS[name])(SMALL), number(FUNCTIONS[name](torch.tensor(SMALL))), rtol=1e-12)


def test_one_graph_serves_all_sizes():
    """Borders, patches and windows of symbolic sizes."""
    spec = graphs.TensorSpec((2, 1, "H", "W"), "float64")
    step = static.compile(lambda x: F.unfold(F.pad(x, (1, -1, 2, 0), "reflect"), 2).sum(-1), spec)
    for height, width in itertools.product((4, 5), (3, 6)):
        x = RNG.standard_normal((2, 1, height, width))
        padded = np.pad(x, [(0, 0), (0, 0), (2, 0), (1, 0)], "reflect")[..., :-1]
        expected = np.moveaxis(windows(padded, (2, 2)), (4, 5), (2, 3)).reshape(2, 4, -1).sum(-1)
        same(step(x), expected, rtol=1e-10)


def test_dropout3d_drops_whole_channels():
    torch.manual_seed(0)
    found = number(F.dropout3d(torch.ones(8, 16, 2, 2, 2), 0.5))
    assert set(np.unique(found)) == {0.0, 2.0}
    assert np.all(found == found[:, :, :1, :1, :1])
    assert np.all(number(F.dropout3d(torch.ones(64, 2, 1, 1))).std((1, 2, 3)) == 0)  # f[C, D, H, W]


def test_layers_refuse_other_axes():
    for layer, axes in ((nn.BatchNorm3d(2), 4), (nn.InstanceNorm3d(2), 3), (nn.Conv3d(2, 1, 1), 3)):
        with pytest.raises(GraphError, match="axes"):
            layer(torch.ones(*(2,) * axes))


@pytest.mark.parametrize("norm", [nn.InstanceNorm2d(4), nn.GroupNorm(2, 4, affine=False)], ids=str)
def test_an_activation_in_place_changes_what_a_norm_without_weights_gives(norm):
    gradients = []
    for inplace in (False, True):
        x = torch.tensor(np.random.default_rng(0).standard_normal((2, 4, 3, 3)), requires_grad=True)
        (F.relu(norm(x * 2), inplace=inplace) ** 3).sum().backward()
        gradients.append(number(x.grad))
    same(*gradients, rtol=1e-12)
