"""The gate on a real model whose gradients rounding alone moves: ResNet-18, a ReLU of which may fall on either side."""

import numpy as np
import pytest

from compare import engines
from compare.instruments import judge
from compare.instruments.bench import Bench
from compare.workloads import models
from tests.helpers import kinks
from tests.helpers.together import together

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def bench():
    """The model, as a mode of PyTorch's is compared with eager; what one ReLU of its last block takes is all but 0."""
    engine = engines.find_engine("torch")
    engine.start(0)
    file, loss = models.holder_of("compare.workloads.models.resnet18:loss")
    _make_uncertain(file)
    return Bench.of_function(engine, "torch-eager", "resnet18", loss, file.inputs, 0, checks=True, kind="model")


def _make_uncertain(file):
    norm, seen = file.model.blocks[-1].norm1, []
    with torch.no_grad():
        before = {name: buffer.clone() for name, buffer in file.model.named_buffers()}
        hook = norm.register_forward_hook(lambda *given: seen.append(given[2]))
        file.model(file.inputs[0][0])
        hook.remove()
        for name, buffer in file.model.named_buffers():
            buffer.copy_(before[name])
        place = int(seen[0].abs().argmin())
        norm.bias[np.unravel_index(place, seen[0].shape)[1]] -= seen[0].flatten()[place]


@pytest.fixture(scope="module")
def turned(bench):
    """What a mode gives whose rounding puts that ReLU where eager has it, and float64 has not; and no other one."""
    reference = bench.references.expected[0]
    assert max(reference.own) > 100 * reference.tolerance
    nudged = (bench.references._nudged(seed)[0] for seed in range(100, 140))
    as_eager = pytest.approx(max(reference.own), rel=0.01)
    return next(result for result in nudged if max(reference.less(result)[0].errors) == as_eager)


def verdict(bench, result):
    reference = bench.references.expected[0]
    return judge.judge_calls({0: reference.less(result)}, {0: reference}, bench.references.moves)


def test_a_mode_with_a_relu_on_its_other_side_is_admitted(bench, turned):
    row = verdict(bench, turned)
    assert row.fault is None
    assert "ill-conditioned" in row.warning


def all_of_it(array):
    array *= np.float32(1.01)


def a_channel(array):
    array[:1] *= np.float32(0.9)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [all_of_it, a_channel])
def test_each_gradient_that_is_wrong_beside_that_is_refused(bench, turned, wrong):
    """By less than a ReLU on its other side puts it off, in the layers before it."""
    value, of_models, state = turned
    [(model, gradients)] = of_models.items()
    largest = max(np.abs(array).max() for array in gradients.values())
    wide = [name for name, array in gradients.items() if np.abs(array[:1]).max() > 0.05 * largest]
    assert len(wide) > 20
    for name in wide:
        other = gradients[name].copy()
        wrong(other)
        assert verdict(bench, (value, {model: {**gradients, name: other}}, state)).fault, name


@together("name", kinks.STARTS, quick={0, 4, 6})
def test_a_step_that_starts_with_numbers_that_no_nudge_moves_is_judged_by_its_rounding(name):
    engine, network = engines.find_engine("torch"), kinks.start(name, torch)
    engine.start(0)
    status, said = kinks.by_framework(network, engine=engine)
    assert status == "ok", said
    for part in ("output", "w"):
        status, said = kinks.by_framework(network, kinks.scaled_part(part, 1.01), engine)
        is_noise = part in kinks.STARTS[name].noise
        assert (status, "ill-conditioned" in said) == (("ok", True) if is_noise else ("disagree", False)), said
        assert kinks.by_framework(network, kinks.scaled_part(part, 100), engine)[0] == "disagree"
