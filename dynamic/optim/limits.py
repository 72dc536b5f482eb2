"""The values that options of PyTorch's optimizers may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dynamic.tensor import Tensor
from graphs.errors import ArgumentError, OptionError, OutOfRangeError, located


class _Limit(NamedTuple):
    """What must hold of a number, in words and as a function."""

    words: str
    holds: Callable[[float], bool]


_POSITIVE = _Limit("0 or more", lambda value: value >= 0)
_SHARE = _Limit("from 0 to 1", lambda value: 0 <= value <= 1)
_DECAY = _Limit("from 0 up to but without 1", lambda value: 0 <= value < 1)

_LIMITS = {
    "lr": _POSITIVE, "eps": _POSITIVE, "weight_decay": _POSITIVE, "momentum": _POSITIVE, "alpha": _POSITIVE,
    "lr_decay": _POSITIVE, "initial_accumulator_value": _POSITIVE, "momentum_decay": _POSITIVE, "rho": _SHARE,
    "betas": _DECAY,
}  # fmt: skip


def plain_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an optimizer, tensors as numbers. Raises OptionError for a value that it does not take."""
    if "betas" in options:
        _check_pair(f"{name}: betas", options["betas"])
    return {option: _plain(f"{name}: {option}", value, _LIMITS.get(option)) for option, value in options.items()}


def _check_pair(what: str, value: Any) -> None:
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(located(f"{what} are two numbers, not {value}; give both"))
    if len(value) != 2:
        raise OutOfRangeError(located(f"{what} are two numbers, not {value}; give both"))


def _plain(what: str, value: Any, limit: _Limit | None) -> Any:
    if isinstance(value, (tuple, list)):
        if len({isinstance(part, Tensor) for part in value}) > 1:
            raise OptionError(located(f"{what} are all numbers or all tensors; use .item()"))
        return tuple([_plain(what, part, limit) for part in value])
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise OptionError(located(f"{what} is one number, not a tensor of shape {value.shape}; use .item()"))
        value = value.item()
    if limit is not None and value is not None and not limit.holds(value):
        raise OptionError(located(f"{what} is {limit.words}, not {value}; choose another"))
    return value
