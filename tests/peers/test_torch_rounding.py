"""The gate on a real model whose gradients rounding alone moves: ResNet-18, a ReLU of which may fall on either side."""

import numpy as np
import pytest

from compare import engines
from compare.engines import nudge
from compare.instruments import rounding
from compare.instruments.runnables import TOLERANCE, FunctionRunnable

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def runnable():
    """The model, as a mode of PyTorch's is compared with eager."""
    from compare.workloads.models import resnet18

    engine = engines.named("torch")
    engine.start(0)
    return FunctionRunnable(engine, "torch-eager", "resnet18", resnet18.loss, resnet18.inputs, 0, checks=True)


@pytest.fixture(scope="module")
def turned(runnable):
    """What a mode gives whose rounding puts ReLUs on their other sides; what eager gives on a machine where none turns.

    It comes of nudges that are nearly as small as what other kernels round.
    """
    eager = runnable.expected[0][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nudge, "ULPS", 2)
        nudged = [runnable._nudged(seed)[0] for seed in range(20)]
    return next((result for result in nudged if max(rounding.errors_of(result, eager).largest) > 1e-3), eager)


def verdict(runnable, result):
    calls = {0: rounding.differences(result, runnable.expected[0], TOLERANCE)}
    return rounding.judged(calls, TOLERANCE, runnable.moves)


def test_a_mode_with_relus_on_their_other_sides_is_admitted(runnable, turned):
    assert verdict(runnable, turned).fault is None


def all_of_it(array):
    array *= np.float32(1.01)


def a_channel(array):
    array[:1] *= np.float32(0.9)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [all_of_it, a_channel])
def test_each_gradient_that_is_wrong_beside_that_is_refused(runnable, turned, wrong):
    """By less than ReLUs on their other sides put it off, in the layers before them."""
    value, [gradients] = turned
    largest = max(np.abs(array).max() for array in gradients.values())
    wide = [name for name, array in gradients.items() if np.abs(array[:1]).max() > 0.05 * largest]
    assert len(wide) > 20
    for name in wide:
        other = gradients[name].copy()
        wrong(other)
        assert verdict(runnable, (value, [{**gradients, name: other}])).fault, name
