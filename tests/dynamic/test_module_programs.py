"""Programs in PyTorch's style run with `import dynamic as torch` and learn; optimizers, data and initial values."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as torch
from dynamic import nn, optim
from dynamic.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split
from graphs.errors import GraphError
from tests import programs
from tests.helpers.slow import mostly_slow

LEARNS = {"mlp_digits", "char_rnn", "encoder_classifier", "autoencoder", "word2vec", "mixture", "seq2seq"}


@pytest.mark.parametrize("name", mostly_slow(programs.NAMES, 10))
def test_programs_run_unchanged(name):
    losses = programs.losses(name)
    assert np.isfinite(losses).all()
    np.testing.assert_array_equal(programs.losses(name), losses)  # the same start, the same run
    if name in LEARNS:
        half = len(losses) // 2
        assert losses[half:].mean() < losses[:half].mean()


def test_sgd_is_its_formula_and_changes_memory_in_place():
    param = nn.Parameter(torch.tensor([1.0, 2.0]))
    seen = param.detach()
    optimizer = optim.SGD([param], lr=0.5, momentum=0.9)
    velocity, expected = 0.0, np.array([1.0, 2.0], np.float32)
    for _ in range(3):
        optimizer.zero_grad()
        (param**2).sum().backward()
        optimizer.step()
        velocity = 0.9 * velocity + 2 * expected
        expected = expected - 0.5 * velocity
    np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(seen.numpy(), param.detach().numpy())
    assert set(optimizer.state_dict()["state"][0]) == {"momentum_buffer"}


def test_the_first_step_of_adam_is_the_rate_along_the_sign():
    param = nn.Parameter(torch.tensor([3.0, -4.0, 0.0]))
    optimizer = optim.Adam([param], lr=0.1)
    assert float(optimizer.step(lambda: _gone_back((param**2).sum()))) == 25
    np.testing.assert_allclose(param.detach().numpy(), [2.9, -3.9, 0], rtol=1e-6)


def _gone_back(loss):
    loss.backward()
    return loss


def test_a_parameter_without_a_gradient_stays():
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = optim.AdamW([used, unused], lr=0.1, weight_decay=0.5)
    used.sum().backward()
    optimizer.step()
    assert unused.tolist() == [1, 1]
    assert used.tolist() != [1, 1]


REFUSED = [
    (lambda p: optim.SGD([], lr=1), ValueError, "one parameter or more"),
    (lambda p: optim.SGD(p, lr=1), TypeError, "not one Tensor"),
    (lambda p: optim.SGD([{"params": p}, {"params": p}], lr=1), ValueError, "more than one parameter group"),
    (lambda p: optim.SGD([p], lr=-1), ValueError, "lr is 0 or more"),
    (lambda p: optim.SGD([p], lr=1, nesterov=True), ValueError, "momentum"),
    (lambda p: optim.SGD([p], lr=1, momentum=0.9, nesterov=True, dampening=0.1), ValueError, "dampening"),
    (lambda p: optim.Adam([p], differentiable=True), GraphError, "differentiable"),
    (lambda p: optim.SGD([p * 2], lr=1), ValueError, "leaves"),
    (lambda p: optim.SparseAdam([p]), AttributeError, "SparseAdam"),
    (lambda p: optim.LBFGS([p]).step(), GraphError, "closure"),
    (lambda p: optim.LBFGS([p], line_search_fn="armijo"), GraphError, "strong_wolfe"),
    (lambda p: optim.LBFGS([{"params": [p]}, {"params": [nn.Parameter(torch.ones(1))]}]), GraphError, "one group"),
    (lambda p: optim.Rprop([p], etas=(1.5, 1.2)), ValueError, "factors"),
    (lambda p: optim.Adafactor([p], d=0.5), ValueError, "limit"),
]


@pytest.mark.parametrize(("call", "error", "told"), REFUSED, ids=[told for *_, told in REFUSED])
def test_optimizers_refuse(call, error, told):
    with pytest.raises(error, match=told):
        call(nn.Parameter(torch.ones(2)))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def test_loaders_make_batches():
    x, y = torch.arange(10).reshape(10, 1), torch.arange(10)
    data = TensorDataset(x, y)
    batches = [b.tolist() for _, b in DataLoader(data, batch_size=4)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    loader = DataLoader(data, batch_size=3, shuffle=True)
    passes = [[int(v) for _, b in loader for v in b.tolist()] for _ in range(2)]
    assert sorted(passes[0]) == list(range(10))
    assert passes[0] != passes[1]
    assert [v.tolist() for _, v in DataLoader(Subset(data, [7, 2]), batch_size=None)] == [7, 2]
    assert [b.tolist() for _, b in DataLoader(data, batch_size=4, num_workers=2)] == batches
    with pytest.raises(GraphError, match="num_workers=2"):
        DataLoader(Stream(), num_workers=2)
    with pytest.raises(ValueError, match="0 or more"):
        DataLoader(data, num_workers=-1)
    with pytest.raises(TypeError, match="workers"):
        DataLoader(data, workers=2)
    with pytest.raises(ValueError, match="exclude"):
        DataLoader(data, sampler=[0], shuffle=True)
    with pytest.raises(ValueError, match="same number"):
        TensorDataset(x, y[:3])


def test_examples_of_any_kind_are_put_together():
    class Rows(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return {"x": np.full(2, i, np.float32), "n": i, "name": str(i), "pair": (i / 2, torch.ones(1))}

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    (batch, _) = DataLoader(Rows(), batch_size=2)
    assert batch["x"].shape == (2, 2)
    assert batch["n"].dtype == np.int64
    assert batch["name"] == ["0", "1"]
    assert batch["pair"][0].dtype == np.float64
    assert batch["pair"][1].shape == (2, 1)
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]


def test_random_splits_share_all_examples():
    torch.manual_seed(0)
    parts = random_split(range(10), [0.5, 0.3, 0.2])
    assert [len(part) for part in parts] == [5, 3, 2]
    assert sorted(v for part in parts for v in part) == list(range(10))
    with pytest.raises(ValueError, match="do not add up"):
        random_split(range(10), [5, 4])


def test_initial_values_are_the_same_after_the_same_seed():
    torch.manual_seed(1)
    first = nn.Linear(50, 40)
    torch.manual_seed(1)
    second = nn.Linear(50, 40)
    np.testing.assert_array_equal(first.weight.detach().numpy(), second.weight.detach().numpy())
    bound = 1 / np.sqrt(50)
    assert abs(np.abs(first.weight.detach().numpy()).max() / bound - 1) < 0.01
    weight = nn.init.orthogonal_(torch.zeros(5, 3)).numpy()
    np.testing.assert_allclose(weight.T @ weight, np.eye(3), atol=1e-6)
    assert nn.init.eye_(torch.zeros(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    kept = nn.init.dirac_(torch.zeros(2, 2, 3))
    x = torch.tensor(np.random.default_rng(0).standard_normal((1, 2, 5)).astype(np.float32))
    np.testing.assert_array_equal(nn.functional.conv1d(x, kept, padding=1).numpy(), x.numpy())
