"""Dropout: elements, or whole channels, that are replaced at random in training."""

from __future__ import annotations

import math

from dynamic.nn import draws
from dynamic.nn.functional.common import Array, replaced
from graphs import ops
from graphs.errors import OptionError, ShapeError, located
from graphs.ops.shapes import dtype_of, shape_of
from graphs.torch.promotion import of_floats

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_LOWEST = 1.6732632423543772848170429916717 * 1.0507009873554804934193349852946  # minus this is selu(-inf)


@of_floats
def dropout(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Each element 0 with probability p, else divided by 1 - p, in training."""
    return _dropped("dropout", input, p, training, inplace, ())


@of_floats
def dropout1d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, L] or f[C, L]."""
    return _dropped("dropout1d", input, p, training, inplace, (-1,))


@of_floats
def dropout2d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, H, W], or of f[N, C, L]."""
    return _dropped("dropout2d", input, p, training, inplace, tuple(range(2 - len(shape_of(input)), 0)))


@of_floats
def dropout3d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, D, H, W] or f[C, D, H, W]."""
    return _dropped("dropout3d", input, p, training, inplace, (-3, -2, -1))


def alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """dropout to the least value of selu, scaled and shifted so that mean 0 and variance 1 stay (Klambauer, 2017)."""
    return _saturated("alpha_dropout", input, p, training, inplace, ())


def feature_alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """alpha_dropout of whole channels of f[N, C, ...]. Raises ShapeError for fewer axes."""
    axes = len(shape_of(input))
    if training and axes < 2:
        raise ShapeError(located(f"feature_alpha_dropout: takes f[N, C, ...], not shape {shape_of(input)}; add axes"))
    return _saturated("feature_alpha_dropout", input, p, training, inplace, tuple(range(2 - axes, 0)))


def _dropped(name: str, x: Array, p: float, training: bool, inplace: bool, together: tuple[int, ...]) -> Array:
    _check(name, p)
    if not training or p == 0:
        return x
    if p == 1:
        return replaced(x, ops.multiply(x, 0), inplace)
    return replaced(x, ops.where(_kept(x, p, together), ops.multiply(x, 1 / (1 - p)), 0), inplace)


def _saturated(name: str, x: Array, p: float, training: bool, inplace: bool, together: tuple[int, ...]) -> Array:
    _check(name, p)
    if not training or p == 0:
        return x
    if p == 1:
        return replaced(x, ops.multiply(x, 0) if dtype_of(x).kind == "f" else ops.zeros_like(x), inplace)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LOWEST**2))
    low, shift = -_LOWEST * scale, _LOWEST * scale * p
    return replaced(x, ops.add(ops.where(_kept(x, p, together), ops.multiply(x, scale), low), shift), inplace)


def _check(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise OptionError(located(f"{name}: p is a probability, not {p}; choose one from 0 to 1"))


def _kept(x: Array, p: float, together: tuple[int, ...]) -> Array:
    """Which elements stay; along the axes `together` all do or none."""
    shape = tuple(1 if i - len(shape_of(x)) in together else size for i, size in enumerate(shape_of(x)))
    return ops.bernoulli(draws.key_for(x), 1 - p, shape)
