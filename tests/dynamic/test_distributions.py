"""`distributions`: shapes broadcast, densities sum to one, and entropies and divergences are means of densities."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dynamic as torch
from dynamic.distributions import Bernoulli, Categorical, Normal, kl_divergence
from graphs.errors import GraphError
from tests.helpers.together import together

SHAPES = [(), (1,), (3,), (2, 1), (4, 1, 3)]


@together("loc,scale,value", list(itertools.product(SHAPES, repeat=3)))
def test_the_densities_of_normal_numbers_broadcast(
    loc: tuple[int, ...], scale: tuple[int, ...], value: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    mean, deviation, at = rng.normal(size=loc), rng.uniform(0.5, 2, scale), rng.normal(size=value)
    normal = Normal(torch.tensor(mean), torch.tensor(deviation))
    expected = np.exp(-(((at - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(normal.log_prob(torch.tensor(at)).exp().numpy(), expected, rtol=1e-6)
    assert normal.batch_shape == normal.entropy().shape == normal.mean.shape == np.broadcast_shapes(loc, scale)
    assert normal.sample((5,)).shape == (5, *normal.batch_shape)


def test_entropies_and_divergences_of_counts_are_means() -> None:
    shares = torch.tensor([[0.2, 0.8], [0.5, 0.5]], dtype=torch.float64)
    others = torch.tensor([[0.6, 0.4], [0.3, 0.7]], dtype=torch.float64)
    for p, q in ((Categorical(shares), Categorical(others)), (Bernoulli(shares[:, 1]), Bernoulli(others[:, 1]))):
        logs = [np.stack([d.log_prob(torch.full((2,), value)).numpy() for value in (0.0, 1.0)], -1) for d in (p, q)]
        np.testing.assert_allclose(p.entropy().numpy(), -(shares.numpy() * logs[0]).sum(-1))
        np.testing.assert_allclose(kl_divergence(p, q).numpy(), (shares.numpy() * (logs[0] - logs[1])).sum(-1))
    assert Categorical(shares).log_prob(torch.zeros(3, 2)).shape == (3, 2)
    assert Categorical(shares[0]).log_prob(torch.tensor([[0], [1]])).shape == (2, 1)


def test_normal_numbers_on_a_grid() -> None:
    p, q = Normal(torch.tensor(0.5), 1.5), Normal(torch.tensor(-0.5), 2.0)
    grid = torch.linspace(-15, 15, 20001).double()
    density, width = p.log_prob(grid).exp(), 30 / 20000
    assert (p.cdf(grid)[-1].item(), density.sum().item() * width) == pytest.approx((1, 1))
    divergence = (density * (p.log_prob(grid) - q.log_prob(grid))).sum().item() * width
    assert kl_divergence(p, q).item() == pytest.approx(divergence, rel=1e-5)
    assert p.entropy().item() == pytest.approx(-(density * p.log_prob(grid)).sum().item() * width, rel=1e-5)
    with pytest.raises(GraphError, match="no formula for Normal and Bernoulli"):
        kl_divergence(p, Bernoulli(torch.tensor(0.5)))
