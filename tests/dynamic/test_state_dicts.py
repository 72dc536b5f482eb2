"""State dicts as PyTorch's: their order, and the versions of the modules that they are of."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import dynamic
from dynamic import nn


class Renamed(nn.Module):
    """A module whose first version called its weight `w`."""

    _version = 2

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(dynamic.zeros(2))
        self.seen: list[int | None] = []

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        self.seen.append(local_metadata.get("version"))
        if (local_metadata.get("version") or 1) < 2:
            state_dict[f"{prefix}weight"] = state_dict.pop(f"{prefix}w")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_a_state_dict_tells_the_versions_of_the_modules_that_it_is_of(tmp_path: Path) -> None:
    model = nn.Sequential(Renamed(), nn.ReLU())
    state = model.state_dict()
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}, "1": {"version": 1}}
    dynamic.save(state, tmp_path / "state")
    for again in (state, copy.deepcopy(state), pickle.loads(pickle.dumps(state)), dynamic.load(tmp_path / "state")):
        model.load_state_dict(again)
    model.load_state_dict({"0.w": dynamic.ones(2)})
    assert model[0].seen == [2, 2, 2, 2, None]
    assert model[0].weight.tolist() == [1, 1]


def test_a_state_dict_from_before_batches_were_counted_is_loaded() -> None:
    norm = nn.BatchNorm1d(2)
    norm.num_batches_tracked.fill_(5)
    without = {name: value + 1 for name, value in norm.state_dict().items() if name != "num_batches_tracked"}
    norm.load_state_dict(without)
    assert norm.running_mean.tolist() == [1, 1]
    assert norm.num_batches_tracked.item() == 5
    state = norm.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="missing_keys: num_batches_tracked"):
        norm.load_state_dict(state)


def test_a_state_dict_has_the_parameters_of_a_module_before_its_buffers() -> None:
    norm = nn.BatchNorm1d(2)
    norm.gain = nn.Parameter(dynamic.ones(2))
    assert list(norm.state_dict()) == ["weight", "bias", "gain", "running_mean", "running_var", "num_batches_tracked"]
