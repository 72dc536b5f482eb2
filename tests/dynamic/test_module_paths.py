"""Import paths that PyTorch's programs use, and the classes that they derive from."""

from __future__ import annotations

import importlib
import inspect
import pickle

import numpy as np
import pytest

import dynamic as torch
from dynamic import nn


def test_every_class_is_in_one_file():
    modules = importlib.import_module("dynamic.nn.modules")
    classes = {name for name in nn.__all__ if inspect.isclass(getattr(nn, name))} - {
        "Buffer",
        "DataParallel",
        "Parameter",
    }
    found = [name for file in modules._FILES for name in getattr(modules, file).__all__]
    assert sorted(found) == sorted(classes)
    assert nn.modules is modules
    assert all(getattr(modules, name) is getattr(nn, name) for name in found)


def test_files_are_imported_by_their_paths():
    from dynamic.nn.modules.batchnorm import _BatchNorm
    from dynamic.nn.modules.conv import Conv2d, _ConvNd
    from dynamic.nn.modules.module import Module
    from dynamic.nn.modules.utils import _pair, _triple
    from dynamic.nn.parallel import DataParallel, data_parallel

    assert (Module, Conv2d, DataParallel) == (nn.Module, nn.Conv2d, nn.DataParallel)
    assert isinstance(nn.BatchNorm3d(2), _BatchNorm)
    assert isinstance(nn.ConvTranspose1d(1, 1, 1), _ConvNd)
    assert (_pair(3), _triple([1, 2, 3])) == ((3, 3), (1, 2, 3))
    assert data_parallel(nn.Identity(), 3) == 3
    assert not isinstance(nn.Identity(), nn.parallel.DistributedDataParallel)
    with pytest.raises(RuntimeError, match="use the module itself"):
        nn.parallel.DistributedDataParallel(nn.Identity())


def test_what_is_pytorchs_name_alone_keeps_its_path():
    from dynamic.backends import cudnn
    from dynamic.cuda import is_available
    from dynamic.distributions import Normal
    from dynamic.distributions.categorical import Categorical
    from dynamic.func import vmap
    from dynamic.special import erf

    by_attribute = (torch.backends.cudnn, torch.distributions.Normal, torch.func.vmap, torch.special.erf)
    assert by_attribute == (cudnn, Normal, vmap, erf)
    assert torch.distributions.categorical.Categorical is Categorical is torch.distributions.Categorical
    assert torch.cuda.is_available is is_available


def test_a_parallel_module_is_called_as_it_is():
    inner = nn.Linear(3, 2)
    model = nn.DataParallel(inner, device_ids=[0, 1])
    x = torch.ones(4, 3)
    np.testing.assert_array_equal(model(x).detach().numpy(), inner(x).detach().numpy())
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert model.module is inner


def test_a_loss_of_ones_own():
    from dynamic.nn.modules.loss import _Loss, _WeightedLoss

    class Focal(_WeightedLoss):
        def __init__(self, weight=None, gamma=2.0, reduction="mean"):
            super().__init__(weight, reduction=reduction)
            self.gamma = gamma

        def forward(self, x, y):
            costs = nn.functional.cross_entropy(x, y, self.weight, reduction="none")
            lost = (1 - torch.exp(-costs)) ** self.gamma * costs
            return lost.mean() if self.reduction == "mean" else lost.sum()

    loss = Focal(torch.ones(3), reduction="sum")
    assert list(loss.state_dict()) == ["weight"]
    assert float(loss(torch.zeros(2, 3), torch.tensor([0, 2]))) == pytest.approx(2 * (2 / 3) ** 2 * np.log(3))
    assert isinstance(nn.MSELoss(), _Loss)
    assert isinstance(nn.NLLLoss(), _WeightedLoss)
    assert nn.MSELoss(size_average=False).reduction == "sum"
    assert type(pickle.loads(pickle.dumps(nn.HuberLoss(delta=0.5)))) is nn.HuberLoss
