"""Names that few programs use, with their values: windows, computed weights, switches."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as torch
from dynamic import nn, optim
from dynamic.nn import functional as F  # noqa: N812
from dynamic.utils.checkpoint import checkpoint, checkpoint_sequential
from graphs.errors import ArgumentError, DTypeError


def test_windows_are_the_weights_of_their_formulas():
    np.testing.assert_allclose(torch.hann_window(4).numpy(), [0, 0.5, 1, 0.5], atol=1e-7)
    np.testing.assert_allclose(torch.hann_window(5, periodic=False).numpy(), np.hanning(5), atol=1e-7)
    np.testing.assert_allclose(torch.hamming_window(6, periodic=False).numpy(), np.hamming(6), atol=1e-7)
    np.testing.assert_allclose(torch.blackman_window(7, periodic=False).numpy(), np.blackman(7), atol=1e-7)
    np.testing.assert_allclose(torch.bartlett_window(8, periodic=False).numpy(), np.bartlett(8), atol=1e-7)
    kaiser = torch.kaiser_window(6, periodic=False, beta=5.0, dtype=torch.float64)
    np.testing.assert_allclose(kaiser.numpy(), np.kaiser(6, 5.0), atol=1e-12)
    assert [torch.hann_window(count).tolist() for count in (0, 1)] == [[], [1.0]]
    with pytest.raises(TypeError, match="floats"):
        torch.hann_window(4, dtype=torch.int64)


def test_rrelu_draws_a_slope_for_each_element_in_training():
    x = torch.full((1000,), -2.0)
    drawn = F.rrelu(x, 0.1, 0.4, training=True).numpy() / -2
    assert 0.1 <= drawn.min() < 0.12
    assert 0.38 < drawn.max() <= 0.4
    np.testing.assert_allclose(nn.RReLU(0.1, 0.4).eval()(x).numpy(), -0.5, rtol=1e-6)
    with pytest.raises(ValueError, match="exchange them"):
        F.rrelu(x, 0.4, 0.1)


def test_rows_that_are_looked_up_become_no_longer_than_max_norm():
    table = nn.Embedding(3, 2, max_norm=1.0)
    with torch.no_grad():
        table.weight.copy_(torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]]))
    found = table(torch.tensor([0, 1, 0]))
    np.testing.assert_allclose(found.detach().numpy(), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], atol=1e-6)
    assert table.weight[2].tolist() == [6.0, 8.0]  # it was not looked up
    found.sum().backward()
    assert table.weight.grad.tolist() == [[2, 2], [1, 1], [0, 0]]


def test_dampening_holds_back_from_the_second_step_on():
    param = nn.Parameter(torch.zeros(1))
    optimizer = optim.SGD([param], lr=1.0, momentum=0.5, dampening=0.75)
    seen = []
    for _ in range(3):
        param.grad = torch.ones(1)
        optimizer.step()
        seen.append(param.item())
    assert seen == [-1.0, -1.75, -2.375]  # velocities 1, then 0.5 * 1 + 0.25, then 0.5 * 0.75 + 0.25


def test_sync_batch_norm_takes_over_what_the_layer_has():
    layer = nn.BatchNorm2d(3)
    x = torch.tensor(np.random.default_rng(0).standard_normal((4, 3, 2, 2), np.float32))
    layer(x)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(layer, nn.ReLU()).eval())
    assert type(model[0]) is nn.SyncBatchNorm
    assert model[0].weight is layer.weight
    assert not model[0].training
    assert torch.equal(model[0](x), layer(x))


def test_a_weight_by_its_length_and_direction():
    layer = nn.Linear(3, 4)
    before = layer.weight.detach().clone()
    nn.utils.weight_norm(layer)
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight_g", "weight_v"]
    with torch.no_grad():
        layer.weight_g.mul_(2)
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.weight_g.grad.shape == (4, 1)
    np.testing.assert_allclose(layer.weight.detach().numpy(), 2 * before.numpy(), rtol=1e-5)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), 2 * before.numpy(), rtol=1e-5)
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight"]
    with pytest.raises(ValueError, match="does not compute 'weight'"):
        nn.utils.remove_weight_norm(layer)


def test_a_spectral_norm_comes_to_one_by_power_iterations():
    layer = nn.utils.spectral_norm(nn.Linear(5, 4), n_power_iterations=5)
    for _ in range(20):
        layer(torch.ones(1, 5))
    np.testing.assert_allclose(np.linalg.norm(layer.weight.detach().numpy(), 2), 1, rtol=1e-3)
    u = layer.weight_u.clone()
    layer.eval()(torch.ones(1, 5)).sum().backward()
    assert torch.equal(u, layer.weight_u)  # only calls in training come nearer
    assert layer.weight_orig.grad.shape == (4, 5)
    nn.utils.remove_spectral_norm(layer)
    np.testing.assert_allclose(np.linalg.norm(layer.weight.detach().numpy(), 2), 1, rtol=1e-3)


def test_a_lower_precision_changes_nothing():
    param = nn.Parameter(torch.ones(1))
    optimizer, scaler = optim.SGD([param], lr=0.5), torch.amp.GradScaler()
    with torch.amp.autocast("cuda"):
        loss = (param * 3).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert param.item() == -0.5
    with torch.amp.autocast("cpu", enabled=False):
        pass


def test_checkpoints_by_pytorchs_path():
    layers = [nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh()]
    x = torch.ones(2, 3, requires_grad=True)
    plain = nn.Sequential(*layers)(x)
    assert torch.equal(plain, checkpoint_sequential(layers, 2, x, use_reentrant=False))
    assert torch.equal(plain, checkpoint(nn.Sequential(*layers), x, use_reentrant=False))


def test_kernels_of_attention_may_be_chosen():
    from dynamic.nn.transformer import SDPBackend, sdpa_kernel

    query = torch.ones(1, 2, 3)
    plain = F.scaled_dot_product_attention(query, query, query)
    with sdpa_kernel([SDPBackend.MATH]), torch.backends.cuda.sdp_kernel(enable_flash=False):
        assert torch.equal(plain, F.scaled_dot_product_attention(query, query, query))
    with pytest.raises(ValueError, match="one of SDPBackend"), sdpa_kernel("math"):
        pass


def test_annotations_for_the_compiler_change_nothing():
    @torch.jit.unused
    def double(x):
        return 2 * x

    assert double(3) == 6
    assert not torch.jit.is_scripting()
    assert torch.jit.script(double) is torch.jit.trace(double, (3,)) is torch.compile(mode="default")(double) is double
    with pytest.raises(ValueError, match=r"torch\.jit\.load is not supported.*state_dict"):
        torch.jit.load("model.pt")


def test_orders_of_memory_may_be_named():
    x = torch.ones(2, 3, 4, 5)
    assert x.to(memory_format=torch.preserve_format) is x
    assert str(torch.channels_last) == repr(torch.channels_last) == "torch.channels_last"
    assert x.contiguous(memory_format=torch.contiguous_format).shape == x.shape
    for made in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like, torch.randn_like):
        assert made(x, memory_format=torch.preserve_format).shape == x.shape


def test_older_ways_of_making_a_tensor():
    x = torch.ones(2, 3, dtype=torch.float64)
    assert [x.new(2, 2).shape, x.new().shape] == [(2, 2), (0,)]
    assert x.new([1, 2]).tolist() == [1.0, 2.0]
    assert x.new([1]).dtype == np.float64
    other = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    view = x.new(other)  # a view with a history, where other data make a leaf
    view.sum().backward()
    assert other.grad.tolist() == [1.0, 1.0]
    for data in (True, 1.5):
        with pytest.raises(ArgumentError, match="say new_empty or new_tensor"):
            x.new(data)
    with pytest.raises(DTypeError, match=r"in its dtype torch\.int64"):
        x.new(torch.tensor([1, 2]))
    with pytest.raises(TypeError, match="new_empty or new_tensor"):
        x.new((2, 3))
    assert x.new(x.shape).shape == (2, 3)


def test_the_end_of_integers_may_be_named_alone():
    for drawn in (torch.randint(high=3, size=(50,)), torch.randint_like(torch.zeros(50), high=3)):
        assert set(drawn.tolist()) == {0, 1, 2}
    with pytest.raises(ValueError, match="larger end"):
        torch.randint_like(torch.zeros(2))


def test_the_number_before_the_tensors_as_in_older_programs():
    x, a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([2.0, 8.0])
    assert torch.add(x, 10, a).tolist() == x.add(10, a).tolist() == x.clone().add_(10, a).tolist() == [31, 42]
    assert torch.sub(x, 10, a).tolist() == x.clone().sub_(10, a).tolist() == [-29, -38]
    assert torch.addcmul(x, 10, a, b).tolist() == x.clone().addcmul_(10, a, b).tolist() == [61, 322]
    assert x.clone().addcdiv_(-2, a, b).tolist() == x.addcdiv(a, b, value=-2).tolist() == [-2, 1]
