"""Windows, computed weights and older orders of arguments, compared with PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
from dynamic import nn

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
