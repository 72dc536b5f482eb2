"""Optimizers that users derive from `optim.Optimizer`, and groups that hold more than an optimizer's options."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dynamic as torch
from dynamic.optim.optimizer import Optimizer, required
from graphs.errors import GraphError, OptionError
from tests.helpers.together import check_each


class Descent(Optimizer):
    def __init__(self, params: Any, lr: Any = required) -> None:
        super().__init__(params, {"lr": lr})

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["steps"] = self.state[param].get("steps", 0) + 1
                param.data.add_(param.grad, alpha=-group["lr"])


class Stepless(Optimizer):
    def __init__(self, params: Any) -> None:
        super().__init__(params, {})


def leaf() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def test_an_own_step_runs_over_the_groups_and_their_state() -> None:
    first, second = leaf(), leaf()
    optimizer = Descent([{"params": [first], "lr": 0.5}, {"params": second, "lr": 0.25, "name": "slow"}])
    (first.sum() + second.sum()).backward()
    optimizer.step()
    optimizer.step()
    np.testing.assert_array_equal([first.detach().numpy(), second.detach().numpy()], [[0, 0], [0.5, 0.5]])
    assert [optimizer.state[param]["steps"] for param in (first, second)] == [2, 2]
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert other.param_groups[1]["name"] == "slow"
        assert [state["steps"] for state in other.state.values()] == [2, 2]


def test_what_an_own_optimizer_lacks_is_named() -> None:
    with pytest.raises(OptionError, match=r"a group of parameters lacks lr, without a default .*; add it"):
        Descent([leaf()])
    with pytest.raises(NotImplementedError, match=r"Stepless defines no step .*; write step\(self, closure=None\)"):
        Stepless([leaf()]).step()


def test_groups_keep_what_a_program_notes_in_them() -> None:
    def check(kind: Any) -> None:
        first, second = (torch.ones(2, 1, requires_grad=True) for _ in range(2))
        optimizer = kind([{"params": [first], "name": "head", "layer": 3}], lr=0.1)
        optimizer.add_param_group({"params": [second], "name": "body"})
        other = kind([{"params": [first]}, {"params": [second]}], lr=0.2)
        other.load_state_dict(optimizer.state_dict())
        assert [group["name"] for group in other.param_groups] == ["head", "body"]
        assert other.param_groups[0]["layer"] == 3
        assert "name: head" in repr(other)

    several = [getattr(torch.optim, name) for name in torch.optim.__all__ if name not in ("LBFGS", "lr_scheduler")]
    check_each([Descent, *(kind for kind in several if kind is not Optimizer)], check)


def test_autograd_grad_takes_pytorchs_parameters() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for only in (True, False):
        (found,) = torch.autograd.grad((x**3).sum(), x, None, True, True, only)
        np.testing.assert_array_equal(torch.autograd.grad(found.sum(), x, only_inputs=only)[0].numpy(), [6, 12])
    with pytest.raises(GraphError, match="is_grads_batched is not supported"):
        torch.autograd.grad(x.sum(), x, is_grads_batched=True)
