"""Averages of parameters beside PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import dynamic

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers


@pytest.mark.parametrize("kind", ["swa", "ema", "function", "buffers"])
def test_averaged_models(kind: str) -> None:
    answers = []
    rng = np.random.default_rng(0)
    values = {name: rng.standard_normal(3) for name in ("weight", "bias")}
    for space in (dynamic, torch):
        utils = importlib.import_module(f"{space.__name__}.optim.swa_utils")
        model = space.nn.Sequential(space.nn.BatchNorm1d(3).double(), space.nn.Dropout(0.0))
        model[0].load_state_dict({name: space.tensor(v) for name, v in values.items()}, strict=False)
        options: dict[str, Any] = {
            "swa": {},
            "ema": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
            "function": {"avg_fn": utils.get_ema_avg_fn(0.7)},
            "buffers": {"use_buffers": True},
        }[kind]
        averaged = utils.AveragedModel(model, **options)
        optimizer = space.optim.SGD(model.parameters(), 0.3)
        schedule = utils.SWALR(optimizer, 0.05, anneal_epochs=3, anneal_strategy="linear" if kind == "ema" else "cos")
        data = [space.tensor(np.random.default_rng(i).standard_normal((8, 3))) for i in range(6)]
        rates = []
        for x in data:
            optimizer.zero_grad()
            (model(x) ** 2 * space.arange(3).double()).sum().backward()
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr()[0])
            averaged.update_parameters(model)
        utils.update_bn(data, averaged)
        answers.append([rates, *(value.numpy() for value in averaged.state_dict().values())])
        assert next(iter(averaged.state_dict())) == "n_averaged"
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
