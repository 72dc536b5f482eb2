"""The ops that frameworks run, counted: what is known of a step by hand."""

from __future__ import annotations

import numpy as np
import pytest

from compare.engines import find_engine
from compare.records.own import count_calls

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

BATCH, WIDTH = 8, 16
FLOPS = 2 * BATCH * WIDTH * WIDTH


def loss(w, x):
    return ((x @ w) ** 2).sum()


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_products_and_flops_are_those_of_both_passes(name):
    framework = find_engine(name)
    if framework.missing:
        pytest.skip(framework.missing)
    framework.start(0)
    w, x = (np.ones(shape, np.float32) for shape in ((WIDTH, WIDTH), (BATCH, WIDTH)))
    step = framework.build(framework.mode_names[0], loss, 0)
    work = count_calls(framework.ops.ran(step, framework.arrays((w, x))))
    assert (work.eager["eager products"], work.eager["eager flops"]) == (2, 2 * FLOPS)  # forward, and the gradient of w
    assert work.eager["eager ops"] >= 4  # square, sum, and what comes back
    assert work.compiled["fused kernels"] >= 1
    assert work.compiled["elements of fused kernels"] >= BATCH * WIDTH


def test_modules_are_counted_too():
    framework = find_engine("torch")
    if framework.missing:
        pytest.skip(framework.missing)
    import torch

    framework.start(0)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1))
    step = framework.build("torch-eager", lambda model, x: model(x).square().mean(), 0)
    work = count_calls(framework.ops.ran(step, (model, torch.ones(BATCH, WIDTH))))
    assert work.eager["eager products"] == 5  # two forward, and three gradients: the first needs no x
    assert work.eager["eager flops"] == 2 * FLOPS + 3 * 2 * BATCH * WIDTH


def test_values_that_python_decides_by_are_reads():
    framework = find_engine("torch")
    if framework.missing:
        pytest.skip(framework.missing)
    framework.start(0)
    step = framework.build("torch-eager", lambda w: w.sum() * (2 if w.sum() > 0 else 1) * w[0].item(), 0)
    work = count_calls(framework.ops.ran(step, framework.arrays((np.ones(3, np.float32),))))
    assert work.compiled["graph breaks"] == 2


def test_what_has_no_counter_is_refused():
    framework = find_engine("autograd")
    from compare.errors import UnsupportedError

    with pytest.raises(UnsupportedError, match="nothing counts the ops that"):
        framework.ops.ran(lambda: None, ())
