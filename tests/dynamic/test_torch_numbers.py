"""Numbers, dtypes and histories that are PyTorch's: the figures are PyTorch 2.13's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dynamic as torch
import graphs as g
import static
from dynamic.changing import Changing
from tests.helpers.together import together

Tensor = Any


def gradient_of(function: Callable[[Tensor], Tensor], values: Any) -> Any:
    """The gradient of the sum of a result, which must have a history."""
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    found = function(x)
    assert found.requires_grad
    found.sum().backward()
    return x.grad.tolist()


# ---- histories -----------------------------------------------------------------------------------------------------


def floored(x: Tensor) -> Tensor:
    """`x // 2` by the operator that changes a tensor."""
    y = x * 1
    y //= 2.0
    return y


STEPS = {
    "//": lambda x: x // 2.0,
    "//=": floored,
    "floor_divide_": lambda x: (x * 1).floor_divide_(2.0),
    "div floor": lambda x: torch.div(x, 2.0, rounding_mode="floor"),
    "div_ floor": lambda x: (x * 1).div_(2.0, rounding_mode="floor"),
    "div_ trunc": lambda x: (x * 1).div_(2.0, rounding_mode="trunc"),
    "norm 0": lambda x: torch.norm(x, 0),
    "vector_norm 0": lambda x: torch.linalg.vector_norm(x, 0),
    "cdist 0": lambda x: torch.cdist(x[None], x[None] * 2, p=0),
    "matrix_power 0": lambda x: torch.linalg.matrix_power(x.reshape(2, 2), 0),
    "gt_": lambda x: (x * 1).gt_(0.0),
    "eq_": lambda x: (x * 1).eq_(x.detach()),
    "bool and": lambda x: (x * 1).logical_and_(x.detach()),
}


@together("function", STEPS.values(), STEPS)
def test_what_is_constant_in_steps_has_a_history_and_the_gradient_0(function: Any) -> None:
    assert gradient_of(function, [1.5, -3.0, 0.0, 5.0]) == [0, 0, 0, 0]


def test_both_engines_have_the_gradient_0_of_a_floored_quotient() -> None:
    x = np.array([1.5, -3.0])
    for engine in (torch, static):
        assert engine.grad(lambda x: g.sum(x // 2.0 + x))(x).tolist() == [1, 1]


def test_a_norm_of_order_0_counts_what_is_no_number() -> None:
    x = [0.0, float("nan"), float("inf"), -0.0, -2.0]
    assert torch.linalg.vector_norm(torch.tensor(x), 0).item() == 3
    assert gradient_of(lambda x: torch.norm(x, 0), x) == [0, 0, 0, 0, 0]


def of_one() -> list[str]:
    """The functions of one tensor alone that can change it in place."""
    names = [name[:-1] for name in dir(Changing) if name.endswith("_") and not name.startswith("_")]
    return [name for name in names if name not in ("detach", "zero") and _takes_one(name)]


def _takes_one(name: str) -> bool:
    try:
        with np.errstate(all="ignore"):
            return hasattr(getattr(torch, name)(torch.tensor([0.5])), "shape")
    except (AttributeError, TypeError, ValueError):
        return False


def test_a_shift_in_place_changes_the_tensor() -> None:
    x = y = torch.tensor([1, 3])
    y <<= 1
    assert x is y
    assert x.tolist() == [2, 6]
    y >>= torch.tensor([1, 2])
    assert x is y
    assert x.tolist() == [1, 1]


@together("name", of_one())
def test_a_change_in_place_has_the_history_of_its_function(name: str) -> None:
    function = getattr(torch, name)
    values = [0.25, 0.5, 1.75]
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    wanted: Any = [0.0, 0.0, 0.0]
    with np.errstate(all="ignore"):
        if (found := function(x)).requires_grad:
            found.sum().backward()
            wanted = x.grad.tolist()
        np.testing.assert_array_equal(gradient_of(lambda x: getattr(x * 1, f"{name}_")(), values), wanted)
