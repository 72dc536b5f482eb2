"""Losses over modules are compared as any other: gradients in their parameters, and what they change is refused."""

from __future__ import annotations

import numpy as np
import pytest

from compare import own
from compare.engines.reach import outermost
from compare.errors import EffectsError
from compare.subjects.case import functional
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812

RNG = np.random.default_rng(0)
CALLS = [(RNG.standard_normal((6, 4), np.float32), RNG.integers(0, 3, 6)) for _ in range(2)]


class Net(nn.Module):
    def __init__(self, *more):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), *more)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.body(x))


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def over(model):
    return lambda x, y: loss(model, x, y)


def test_parameters_become_the_first_argument():
    model = Net()
    f, calls = functional(over(model), CALLS)
    assert list(calls[0][0]) == ["body.0.weight", "body.0.bias", "head.weight", "head.bias"]
    assert calls[0][0] is calls[1][0]
    zeros = {name: 0 * values for name, values in calls[0][0].items()}
    np.testing.assert_allclose(f(zeros, *CALLS[0]), np.log(3), rtol=1e-6)
    model.head.requires_grad_(False)
    assert list(functional(loss, [(model, *call) for call in CALLS])[1][0][0]) == ["body.0.weight", "body.0.bias"]


def test_a_function_without_modules_is_left_alone():
    def plain(x, y):
        return x.sum() + y.sum()

    assert functional(plain, CALLS) == (plain, CALLS)


def test_a_module_inside_another_is_not_one_more():
    model = Net()
    assert outermost([model.head, model, model.body, model]) == [model]


@pytest.mark.slow
@pytest.mark.parametrize("given", [False, True])
def test_both_engines_agree_on_a_module(given):
    model = Net(nn.LayerNorm(5))
    f, calls = (loss, [(model, *call) for call in CALLS]) if given else (over(model), CALLS)
    result = own.compare(f, calls, processes=0, seconds=0.05)
    assert [result.records[1].modes[mode].status for mode in ("dynamic", "static-exact")] == ["ok", "ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "what"),
    [
        (nn.Dropout(0.5), "generator"),
        pytest.param(nn.BatchNorm1d(5), "outer variable `model`", marks=pytest.mark.slow),
    ],
)
def test_what_a_module_does_besides_is_refused(layer, what):
    model = Net(layer)
    with pytest.raises(EffectsError, match=what):
        own.compare(over(model), CALLS, processes=0, seconds=0.05)
    model.eval()
    result = own.compare(over(model), CALLS, processes=0, seconds=0.05)
    assert result.records[1].modes["static-exact"].status == "ok"
