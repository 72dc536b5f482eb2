"""Distributions beside PyTorch's: probabilities, entropies, moments, divergences, gradients, and samples by count."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dynamic

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

A, B = np.array([0.3, 1.5, 4.0]), np.array([0.7, 2.0, 0.4])
P, Q = np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.6, 0.1])
L = np.array([[1.0, 0, 0], [0.3, 2.0, 0], [-0.5, 0.2, 0.7]])
ROWS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])

FAMILIES: dict[str, tuple[Any, dict[str, Any], dict[str, Any], Any]] = {
    # the class, two sets of parameters, and values
    "normal": ("Normal", {"loc": A, "scale": B}, {"loc": B, "scale": A}, P),
    "laplace": ("Laplace", {"loc": A, "scale": B}, {"loc": B, "scale": A}, P),
    "uniform": ("Uniform", {"low": P, "high": A + 1}, {"low": P - 1, "high": A + 3}, P + 0.5),
    "exponential": ("Exponential", {"rate": A}, {"rate": B}, P),
    "gamma": ("Gamma", {"concentration": A, "rate": B}, {"concentration": B, "rate": A}, P),
    "chi2": ("Chi2", {"df": A}, {"df": B}, P),
    "beta": (
        "Beta", {"concentration1": A, "concentration0": B}, {"concentration1": B, "concentration0": A}, P,
    ),
    "dirichlet": ("Dirichlet", {"concentration": A}, {"concentration": B}, ROWS),
    "poisson": ("Poisson", {"rate": A}, {"rate": B}, np.array([0.0, 2, 5])),
    "geometric": ("Geometric", {"probs": P}, {"probs": Q}, np.array([0.0, 2, 5])),
    "binomial": ("Binomial", {"total_count": 7, "probs": P}, {"total_count": 7, "probs": Q}, np.array([0.0, 2, 5])),
    "bernoulli": ("Bernoulli", {"probs": P}, {"logits": A}, np.array([0.0, 1, 1])),
    "categorical": ("Categorical", {"probs": ROWS}, {"logits": ROWS}, np.array([0, 2])),
    "one_hot_categorical": ("OneHotCategorical", {"probs": ROWS}, {"logits": ROWS}, np.eye(3)[[0, 2]]),
    "log_normal": ("LogNormal", {"loc": A, "scale": B}, {"loc": B, "scale": A}, P),
    "multivariate_normal": (
        "MultivariateNormal", {"loc": A, "covariance_matrix": L @ L.T}, {"loc": B, "scale_tril": L * 1.5}, ROWS,
    ),
    "a precision": (
        "MultivariateNormal", {"loc": A, "precision_matrix": L @ L.T}, {"loc": ROWS, "scale_tril": L}, ROWS,
    ),
    "relaxed_bernoulli": ("RelaxedBernoulli", {"temperature": 0.7, "probs": P}, {"temperature": 0.7, "logits": A}, Q),
    "relaxed_categorical": (
        "RelaxedOneHotCategorical", {"temperature": 0.7, "probs": ROWS}, {"temperature": 0.7, "logits": ROWS}, ROWS,
    ),
}  # fmt: skip


def made(space: Any, value: Any, grad: bool = False) -> Any:
    if not isinstance(value, np.ndarray):
        return space.tensor(value, dtype=space.float64) if isinstance(value, float) else value
    tensor = space.tensor(value.copy())
    return tensor.requires_grad_() if grad and value.dtype.kind == "f" else tensor


def build(space: Any, name: str, values: dict[str, Any], grad: bool = False) -> tuple[Any, list[Any]]:
    held = {word: made(space, value, grad) for word, value in values.items()}
    leaves = [value for value in held.values() if getattr(value, "requires_grad", False)]
    return getattr(space.distributions, name)(**held), leaves


def slopes(result: Any, leaves: list[Any]) -> list[Any]:
    result.sum().backward()
    return [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("family", FAMILIES)
def test_values_and_gradients_are_those_of_pytorch(family: str) -> None:
    name, *parameters, at = FAMILIES[family]
    for values in parameters:
        answers = []
        for space in (dynamic, torch):
            distribution, leaves = build(space, name, values, grad=True)
            value = made(space, at)
            answer = [distribution.batch_shape, distribution.event_shape, distribution.has_rsample]
            answer += [distribution.log_prob(value).detach().numpy()]
            answer += slopes(distribution.log_prob(value), leaves)
            for word in ("mean", "variance", "stddev", "mode"):
                try:
                    answer.append(getattr(distribution, word).detach().numpy())
                except (NotImplementedError, AttributeError):
                    answer.append(None)
            try:
                answer.append(distribution.entropy().detach().numpy())
            except NotImplementedError:
                answer.append(None)
            expanded = distribution.expand((2, *distribution.batch_shape))
            answer += [
                expanded.log_prob(value).detach().numpy(),
                expanded.sample((3,)).shape,
                distribution.sample().shape,
            ]
            answers.append(answer)
        for ours, theirs in zip(*answers, strict=True):
            if ours is None or theirs is None:
                continue
            if isinstance(theirs, np.ndarray):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
            else:
                assert ours == (tuple(theirs) if isinstance(theirs, torch.Size) else theirs)


@pytest.mark.parametrize("family", [f for f in FAMILIES if not f.startswith("relaxed")])
def test_divergences_are_those_of_pytorch(family: str) -> None:
    name, first, second, _ = FAMILIES[family]
    answers = []
    for space in (dynamic, torch):
        (p, leaves), (q, others) = build(space, name, first, True), build(space, name, second, True)
        result = space.distributions.kl_divergence(p, q)
        answers.append([result.detach().numpy(), *slopes(result, [*leaves, *others])])
        if p.batch_shape and q.batch_shape:
            p, q = (space.distributions.Independent(each, 1) for each in (p, q))
        inner = space.distributions.kl.kl_divergence(p, q)
        answers[-1].append(inner.detach().numpy())
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("relaxed_bernoulli", "relaxed_categorical")])
def test_samples_have_the_mean_and_the_variance(family: str) -> None:
    name, first, _, _ = FAMILIES[family]
    dynamic.manual_seed(0)
    distribution, _ = build(dynamic, name, first)
    drawn = distribution.sample((40_000,)).numpy().astype(np.float64)
    if name == "Categorical":
        shares = np.stack([(drawn == i).mean(0) for i in range(3)], -1)
        np.testing.assert_allclose(shares, ROWS, atol=0.01)
        return
    mean, deviation = distribution.mean.numpy(), np.sqrt(distribution.variance.numpy())
    np.testing.assert_allclose(drawn.mean(0), mean, atol=float(6 * deviation.max() / 200))
    if name != "LogNormal":  # whose variance is mostly that of few numbers
        np.testing.assert_allclose(drawn.std(0), deviation, rtol=0.08)


@pytest.mark.parametrize("family", ["normal", "laplace", "uniform", "exponential", "gamma", "beta", "log_normal"])
def test_gradients_of_draws_keep_the_rank_of_a_draw(family: str) -> None:
    """The implicit gradient: minus the slope of the cumulative probability, by the density."""
    name, first, _, _ = FAMILIES[family]
    dynamic.manual_seed(1)
    distribution, leaves = build(dynamic, name, first, grad=True)
    drawn = distribution.rsample((20_000,))
    (drawn**2).mean(0).sum().backward()
    exact, their_leaves = build(torch, name, first, grad=True)
    (exact.variance + exact.mean**2).sum().backward()
    for leaf, theirs in zip(leaves, their_leaves, strict=True):
        expected = theirs.grad.numpy()
        spread = 0.12 * np.abs(expected).max() if name != "LogNormal" else 0.6 * np.abs(expected).max()
        np.testing.assert_allclose(leaf.grad.numpy(), expected, atol=spread)


def test_gradients_of_gamma_numbers_are_pytorchs_for_the_same_numbers() -> None:
    for concentration in (0.05, 0.5, 1.0, 3.0, 20.0, 200.0):
        a = dynamic.tensor(np.full(200, concentration), requires_grad=True)
        dynamic.manual_seed(2)
        drawn = dynamic.distributions.Gamma(a, dynamic.ones(200).double()).rsample()
        drawn.sum().backward()
        theirs = torch._standard_gamma_grad(
            torch.full((200,), concentration).double(), torch.tensor(drawn.detach().numpy())
        )
        np.testing.assert_allclose(a.grad.numpy(), theirs.numpy(), rtol=5e-3, atol=1e-8)


TRANSFORMS: dict[str, Any] = {
    "tanh": lambda space: [space.distributions.transforms.TanhTransform(cache_size=1)],
    "exp": lambda space: [space.distributions.transforms.ExpTransform()],
    "sigmoid, affine": lambda space: [
        space.distributions.transforms.SigmoidTransform(),
        space.distributions.transforms.AffineTransform(made(space, A), 2.0),
    ],
    "softplus, power": lambda space: [
        space.distributions.transforms.SoftplusTransform(), space.distributions.transforms.PowerTransform(2.0),
    ],
    "an inverse": lambda space: [
        space.distributions.transforms.SigmoidTransform(), space.distributions.transforms.SigmoidTransform().inv,
    ],
    "composed": lambda space: space.distributions.transforms.ComposeTransform([
        space.distributions.transforms.AffineTransform(0.5, made(space, B)),
        space.distributions.transforms.IndependentTransform(space.distributions.transforms.TanhTransform(), 1),
    ]),
    "an event": lambda space: [space.distributions.transforms.AffineTransform(1.0, made(space, B), event_dim=1)],
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_transformed_distributions(name: str, wrapped: bool) -> None:
    answers = []
    noise = np.random.default_rng(0).standard_normal((4, 3))
    for space in (dynamic, torch):
        base, leaves = build(space, "Normal", {"loc": A, "scale": B}, True)
        if wrapped:
            base = space.distributions.Independent(base, 1)
        distribution = space.distributions.TransformedDistribution(base, TRANSFORMS[name](space))
        value = made(space, noise)
        for transform in distribution.transforms:
            value = transform(value)
        logs = distribution.log_prob(value)
        answers.append(
            [distribution.batch_shape, distribution.event_shape, logs.detach().numpy(), *slopes(logs, leaves)]
        )
        assert distribution.rsample((5,)).shape == (5, *distribution.batch_shape, *distribution.event_shape)
        assert distribution.rsample().requires_grad
        assert not distribution.sample().requires_grad
    assert [tuple(shape) for shape in answers[1][:2]] == list(answers[0][:2])
    for ours, theirs in zip(answers[0][2:], answers[1][2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10)


def test_a_squashed_action_keeps_the_value_that_it_was_made_from() -> None:
    for space in (dynamic, torch):
        base = space.distributions.Normal(space.tensor([30.0]), space.tensor([1.0]))
        squashed = space.distributions.TransformedDistribution(
            base, [space.distributions.transforms.TanhTransform(cache_size=1)]
        )
        action = squashed.rsample()
        assert action.item() == 1.0
        assert np.isfinite(squashed.log_prob(action).item())


def test_a_mixture() -> None:
    answers = []
    for space in (dynamic, torch):
        d = space.distributions
        mixture = d.MixtureSameFamily(
            d.Categorical(made(space, P / P.sum())),
            d.Independent(d.Normal(made(space, L), made(space, L * 0 + 0.5)), 1),
        )
        answers.append([mixture.log_prob(made(space, ROWS)).numpy(), mixture.mean.numpy(), mixture.variance.numpy()])
        assert mixture.sample((4,)).shape == (4, 3)
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d, t: d.Normal(t([0.0]), t([-1.0])),
        lambda d, t: d.Normal(t([0.0]), t([1.0])).log_prob(t([float("nan")])),
        lambda d, t: d.Bernoulli(t([1.5])),
        lambda d, t: d.Categorical(logits=t([float("nan"), 0.0])),
        lambda d, t: d.Uniform(t([1.0]), t([1.0])),
        lambda d, t: d.Uniform(t([0.0]), t([1.0])).log_prob(t([2.0])),
        lambda d, t: d.Gamma(t([0.0]), t([1.0])),
        lambda d, t: d.Poisson(t([1.0])).log_prob(t([0.5])),
        lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [2.0, 1.0]])),
        lambda d, t: d.Independent(d.Normal(t([0.0]), t([1.0])), 2),
        lambda d, t: d.Bernoulli(t([0.5]), logits=t([0.5])),
    ],
)
def test_what_pytorch_refuses_is_refused(wrong: Any) -> None:
    for space in (torch, dynamic):
        with pytest.raises(ValueError):  # noqa: PT011
            wrong(space.distributions, space.tensor)


def test_paths_and_copies() -> None:
    from dynamic.distributions.categorical import Categorical
    from dynamic.distributions.constraints import positive
    from dynamic.distributions.kl import register_kl
    from dynamic.distributions.multivariate_normal import MultivariateNormal
    from dynamic.distributions.transforms import TanhTransform

    d = dynamic.distributions
    assert (d.Categorical, d.MultivariateNormal, d.TanhTransform) == (Categorical, MultivariateNormal, TanhTransform)
    assert positive.check(dynamic.tensor([1.0, 0.0])).tolist() == [True, False]
    assert register_kl is d.register_kl
    held = copy.deepcopy(d.Normal(dynamic.tensor([1.0]), 2.0))
    assert held.log_prob(dynamic.tensor([0.0])).item() == pytest.approx(-1.737, abs=1e-3)
    with pytest.raises(RuntimeError, match=r"have no gradient.*use sample"):
        d.Categorical(dynamic.tensor([0.5, 0.5])).rsample()
