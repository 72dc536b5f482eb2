"""Windows, computed weights and older orders of arguments, compared with PyTorch's."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import dynamic
from dynamic import nn
from graphs.errors import InplaceError

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]  # PyTorch warns of what it deprecates
torch = pytest.importorskip("torch")
ENGINES = (torch, dynamic)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_windows(name):
    for count in (0, 1, 2, 7, 16):
        for periodic in (True, False):
            for dtype in ("float32", "float64"):
                theirs, ours = (
                    getattr(engine, f"{name}_window")(count, periodic, dtype=getattr(engine, dtype))
                    for engine in ENGINES
                )
                assert theirs.numpy().dtype == ours.numpy().dtype
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=2e-6 if dtype == "float32" else 1e-12)


def trained(engine, norm, layer, sizes, options):
    """Losses and the state after some steps of a layer whose weight is computed, from the same numbers in both."""
    module = getattr(engine.nn.utils, norm)(getattr(engine.nn, layer)(*sizes).double(), **options)
    with engine.no_grad():
        for name, value in module.state_dict().items():
            start = np.random.default_rng(len(name)).standard_normal(tuple(value.shape))
            value.copy_(engine.tensor(start / np.linalg.norm(start) if name[-2:] in ("_u", "_v") else start))
    x = np.random.default_rng(9).standard_normal((2, 3, 5, 5) if "Conv" in layer else (2, 3))
    optimizer, seen = engine.optim.SGD(module.parameters(), lr=0.05), []
    for step in range(6):
        module.train(step != 4)
        optimizer.zero_grad()
        loss = module(engine.tensor(x)).square().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen, {name: value.detach().numpy() for name, value in module.state_dict().items()}


@pytest.mark.parametrize(
    ("norm", "layer", "options"),
    [
        ("weight_norm", "Linear", {}),
        ("weight_norm", "Linear", {"dim": None}),
        ("weight_norm", "Conv2d", {"dim": 1}),
        ("spectral_norm", "Linear", {}),
        ("spectral_norm", "Conv2d", {"n_power_iterations": 3}),
        ("spectral_norm", "ConvTranspose2d", {}),
    ],
)
def test_computed_weights(norm, layer, options):
    sizes = (3, 4) if layer == "Linear" else (3, 4, 2)
    theirs, ours = (trained(engine, norm, layer, sizes, options) for engine in ENGINES)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-10)
    assert set(ours[1]) == set(theirs[1])
    for name, value in theirs[1].items():
        np.testing.assert_allclose(ours[1][name], value, rtol=1e-9, atol=1e-12)


def test_rrelu_outside_training():
    x = np.random.default_rng(0).standard_normal((4, 5))
    theirs, ours = (engine.nn.RReLU(0.2, 0.7).eval()(engine.tensor(x)).numpy() for engine in ENGINES)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_older_orders_of_arguments():
    x, a, b = np.random.default_rng(0).uniform(1, 2, (3, 4))
    for name, operands in (("add", (3, a)), ("sub", (3, a)), ("addcmul", (0.5, a, b)), ("addcdiv", (-2, a, b))):
        theirs, ours = (
            getattr(engine.tensor(x), f"{name}_")(*[v if np.isscalar(v) else engine.tensor(v) for v in operands])
            for engine in ENGINES
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_synchronised_statistics_outside_training():
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    layers = [engine.nn.SyncBatchNorm.convert_sync_batchnorm(engine.nn.BatchNorm1d(3)).eval() for engine in ENGINES]
    theirs, ours = (layer(engine.tensor(x)) for layer, engine in zip(layers, ENGINES, strict=True))
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)
    assert type(layers[1]) is nn.SyncBatchNorm


SIZES = {
    "Tensor": lambda m, x: m.Tensor(x.size()), "FloatTensor": lambda m, x: m.FloatTensor(x.shape),
    "LongTensor": lambda m, x: m.LongTensor(x.size()[1:]), "new": lambda m, x: x.new(operator.add(x.size(), (2,))),
    "before": lambda m, x: m.Tensor(operator.add((1,), x.size())), "twice": lambda m, x: m.Tensor(2 * x.size()),
    "tuple": lambda m, x: m.Tensor(tuple(x.size())), "Size": lambda m, x: m.Tensor(m.Size([4, 1])),
    "resize_": lambda m, x: x.new().resize_((2, 5)), "resize_as_": lambda m, x: m.ones(2).resize_as_(x),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_a_tensor_are_a_shape_to_older_constructors(name):
    theirs, ours = (SIZES[name](engine, engine.ones(2, 3)) for engine in ENGINES)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)


def test_elements_stay_in_their_order_when_a_tensor_changes_its_size():
    for shape in ((5,), (1, 3), (2,), (2, 2)):
        theirs, ours = (engine.arange(4).view(2, 2).t().clone().resize_(shape) for engine in ENGINES)
        count = min(4, theirs.numel())
        assert ours.flatten()[:count].tolist() == theirs.flatten()[:count].tolist()


def test_a_tensor_whose_memory_others_see_keeps_its_size():
    x, array = dynamic.zeros(2, 2), np.zeros(2)
    row = x[0]
    for refused in (x, row, dynamic.from_numpy(array), dynamic.zeros(2, requires_grad=True)):
        with pytest.raises(InplaceError, match=r"does not change its size.*use reshape, or torch.empty"):
            refused.resize_(3)


def test_states_of_devices_are_those_of_none():
    for engine in (torch.utils.checkpoint, __import__("dynamic.utils.checkpoint", fromlist=["checkpoint"])):
        states = engine.get_device_states(1, "x")
        assert [list(part) for part in states] == [[], []]
        engine.set_device_states(*states)
