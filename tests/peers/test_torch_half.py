"""Every function of one to three tensors that works element by element, in float16 beside PyTorch.

A number is right that is at most one float16 away from PyTorch's or from what PyTorch gives in float64, or no further
from the latter than PyTorch's is. So is each gradient.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

import torch
import torch.nn.functional

import dynamic
import dynamic.nn.functional
import dynamic.special
from tests.helpers.together import together

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

SPACES = {
    "torch": (torch, dynamic),
    "F": (torch.nn.functional, dynamic.nn.functional),
    "special": (torch.special, dynamic.special),
}
FINITE = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = FINITE[np.isfinite(FINITE)]
COUNT = 20_000  # of each operand, where there are several

# By function and result: 0 is the value, 1 the gradient of the first operand, and so on.
OTHERWISE = {
    ("torch.erfinv", 1): "the slope is that at the result, which is rounded; PyTorch's that at the operand",
    ("special.erfinv", 1): "the same",
    ("torch.pow", 1): "PyTorch rounds the exponent after 1 was taken away: a root of a number below 0 has a slope",
    ("F.elu", 1): "far below 0 the slope is 1 more than expm1, of which float32 has few digits",
    ("F.celu", 1): "the same",
    ("F.selu", 1): "the same",
    ("torch.selu", 1): "the same",
    ("torch.celu", 1): "the same",
    ("F.gelu", 0): "far below 0 it is 1 more than erf, of which float32 has few digits",
    ("F.gelu", 1): "the same",
    ("special.i0e", 1): "a difference of numbers that are rounded to float16, in PyTorch too",
    ("F.soft_margin_loss", 0): "PyTorch's exponential is infinite where the loss is not",
    ("F.soft_margin_loss", 1): "the same",
    ("F.soft_margin_loss", 2): "the same",
    ("F.binary_cross_entropy", 1): "a logarithm that is bounded has the slope 0; PyTorch divides by 1e-12",
    ("F.binary_cross_entropy", 2): "the slope in the target is of bounded logarithms; PyTorch's are infinite",
    ("F.binary_cross_entropy_with_logits", 1): "a sum of slopes near 1 and -1, of which float32 has few digits",
}


class Function(NamedTuple):
    """A function of PyTorch's and ours, and how many operands it takes."""

    title: str
    theirs: Callable[..., Any]
    ours: Callable[..., Any]
    count: int


def _functions() -> Iterator[Function]:
    for space, (theirs, ours) in SPACES.items():
        for name in sorted(set(dir(theirs)) & set(dir(ours))):
            function = getattr(theirs, name)
            if name.startswith("_") or name.endswith("_") or isinstance(function, type) or not callable(function):
                continue
            for words in ({}, {"reduction": "none"}):
                call = functools.partial(function, **words)
                count = next((count for count in (1, 2, 3) if _is_elementwise(call, count)), None)
                if count:
                    mine = functools.partial(getattr(ours, name), **words)
                    yield Function(f"{space}.{name}", call, mine, count)
                    break


def _is_elementwise(function: Callable[..., Any], count: int) -> bool:
    xs = [(torch.linspace(0.1, 0.9, 7) ** (i + 1)).half().requires_grad_() for i in range(count)]
    try:
        torch.manual_seed(0)
        result, turned = function(*xs), function(*[x.flip(0) for x in xs])
        return result.dtype == torch.float16 and result.shape == (7,) and torch.equal(result, turned.flip(0))
    except Exception:  # noqa: BLE001  (it is no such function)
        return False


with warnings.catch_warnings(action="ignore"):
    FUNCTIONS = list(_functions())


def _operands(function: Function) -> list[Any]:
    """Every finite float16; of several operands some of any size, and some that are moderate.

    For functions of probabilities and variances those between 0 and 1.
    """
    found = _of_any_size(function.count)
    try:
        function.theirs(*map(torch.tensor, found))
    except (RuntimeError, ValueError):
        found = [abs(array) % np.float16(1) for array in found]
    return found


def _of_any_size(count: int) -> list[Any]:
    if count == 1:
        return [FINITE]
    random = np.random.default_rng(count)
    wide = [random.choice(FINITE, COUNT // 2) for _ in range(count)]
    narrow = [random.uniform(-limit, limit, COUNT // 4).astype(np.float16) for limit in (4, 60) for _ in range(count)]
    return [np.concatenate(parts) for parts in zip(wide, narrow[:count], narrow[count:], strict=True)]


def _results(framework: Any, function: Callable[..., Any], arrays: Sequence[Any], dtype: str) -> list[Any]:
    """The value and the gradients; none for a function that PyTorch does not differentiate."""
    kind = getattr(framework, dtype)
    try:
        xs = [framework.tensor(array, dtype=kind).requires_grad_() for array in arrays]
        value = function(*xs)
        value.backward(framework.ones_like(value))
        slopes = [np.zeros_like(a) if x.grad is None else x.grad.numpy() for x, a in zip(xs, arrays, strict=True)]
        return [value.detach().numpy(), *slopes]
    except (NotImplementedError, RuntimeError):
        return [function(*[framework.tensor(array, dtype=kind) for array in arrays]).numpy()]


def _places(values: Any) -> Any:
    """The number of each float16 among all of them, in order; 0.0 and -0.0 have one."""
    bits = values.astype(np.float16).view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


@together("function", FUNCTIONS, [function.title for function in FUNCTIONS])
def test_a_function_of_float16_is_right(function):
    arrays = _operands(function)
    with np.errstate(all="ignore"):
        theirs, exact = (_results(torch, function.theirs, arrays, dtype) for dtype in ("float16", "float64"))
        ours = _results(dynamic, function.ours, arrays, "float16")
        assert len(ours) >= len(theirs)
        for number, (found, wanted, in_float64) in enumerate(zip(ours, theirs, exact, strict=False)):
            assert found.dtype == wanted.dtype
            off, own = (_places(found) - _places(x) for x in (wanted, in_float64))
            allowed = np.abs(_places(wanted) - _places(in_float64))
            is_known = ~np.isnan(in_float64) & ~np.isnan(found)
            near = (np.abs(off) <= 1) | (is_known & (np.abs(own) <= np.maximum(allowed, 1)))
            near = np.where(np.isnan(found), np.isnan(wanted) | np.isnan(in_float64), near)
            if (function.title, number) not in OTHERWISE:
                assert near.all(), _seen(number, ~near, arrays, found, wanted, in_float64)


def _seen(number: int, wrong: Any, arrays: Sequence[Any], *results: Any) -> str:
    places = np.flatnonzero(wrong)
    rows = [f"{[a[i].item() for a in arrays]}: {[r[i].item() for r in results]}" for i in places[:3]]
    return f"result {number}, {len(places)} wrong: " + "; ".join(rows)
