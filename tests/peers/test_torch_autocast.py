"""The gate on steps under autocast: a mode may be off by some times what eager is off by, and by no more."""

import numpy as np
import pytest

from compare import engines
from compare.instruments import judge, standard
from compare.instruments.bench import Bench
from tests.helpers.together import check_each

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def bench():
    """An MLP, as a mode of PyTorch's is compared with eager."""
    engine = engines.find_engine("torch")
    engine.start(0)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))

    def loss(x, y):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.cross_entropy(model(x), y)

    calls = [(torch.randn(8, 16), torch.randint(0, 4, (8,)))]
    return Bench.of_function(engine, "torch-eager", "loss", loss, calls, 0, checks=True)


def off_by(bench, name, error):
    """What eager gives, with one gradient that far off from float64, where that is largest."""
    reference = bench.references.expected[0]
    place = next(k for k, leaf in enumerate(reference.leaves) if leaf.path[-1:] == (name,))
    gradients = reference.exact[1]["model"]
    array = np.asarray(gradients[name]).copy()
    largest = np.unravel_index(np.argmax(np.abs(array)), array.shape)
    array[largest] += error * reference._scales[place]
    value, plain, *state = reference.plain
    return value, {"model": {**plain["model"], name: array.astype(np.float32)}}, *state


def fault(bench, result):
    reference = bench.references.expected[0]
    return judge.judge_calls({0: reference.less(result)}, {0: reference}, bench.references.moves).fault


def test_a_gradient_one_percent_further_off_than_the_error_of_eager_allows_is_refused(bench):
    """It is off in one element, which is no direction in which rounding moves it."""
    reference = bench.references.expected[0]
    assert reference.dtype == "bfloat16"
    assert reference.exact is not None
    gradients = {leaf.path[-1]: k for k, leaf in enumerate(reference.leaves) if leaf.part == 1}
    assert len(gradients) == 4

    def check(name):
        allowed = min(standard.FACTOR * reference.own[gradients[name]], reference.tolerance)
        assert fault(bench, off_by(bench, name, 0.98 * allowed)) is None
        assert f"`model.{name}` in call 1 is off by" in fault(bench, off_by(bench, name, allowed + 0.01))

    check_each(gradients, check)
