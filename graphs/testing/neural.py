"""Samples of convolutions, pooling windows and random numbers: stride, padding, dilation, groups, one to three axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs.ops.convolution import convolution
from graphs.ops.pooling import window_max
from graphs.ops.random import random_key
from graphs.ops.windows import Window, counts, window_of
from graphs.testing.sample import Array, Given, Maker, Sizes, Values, calls, joined

# title -> (shape of x, shape of the weight, window, groups)
_CONVOLUTIONS: dict[str, tuple[Sizes, Sizes, Window, int]] = {
    "1d": ((2, 3, 5), (4, 3, 2), window_of((2,), 1, 0, 1), 1),
    "2d": ((2, 2, 4, 5), (3, 2, 3, 2), window_of((3, 2), 1, 1, 1), 1),
    "3d": ((1, 1, 2, 3, 2), (2, 1, 2, 2, 1), window_of((2, 2, 1), 1, 0, 1), 1),
    "stride": ((1, 2, 7, 4), (2, 2, 2, 3), window_of((2, 3), (3, 2), (1, 0), 1), 1),
    "uneven-padding": ((1, 1, 5), (1, 1, 3), window_of((3,), 2, ((2, 1),), 1), 1),
    "dilation": ((1, 2, 6, 5), (2, 2, 2, 2), window_of((2, 2), 1, "same", (3, 2)), 1),
    "groups": ((2, 4, 4), (6, 2, 3), window_of((3,), 1, 1, 1), 2),
    "depthwise": ((1, 3, 4, 3), (3, 1, 2, 2), window_of((2, 2), 2, (0, 1), 1), 3),
    "one-by-one": ((2, 3, 2, 2), (2, 3, 1, 1), window_of((1, 1), 1, 0, 1), 1),
    "past-the-edge": ((1, 1, 2), (1, 1, 4), window_of((4,), 1, 3, 2), 1),
    "no-example": ((0, 2, 3), (1, 2, 2), window_of((2,), 1, 0, 1), 1),
    "no-channel": ((2, 0, 3), (1, 0, 2), window_of((2,), 1, 0, 1), 1),
}

# title -> (shape of x, window)
_POOLINGS: dict[str, tuple[Sizes, Window]] = {
    "vector": ((6,), window_of((2,), 2, 0, 1)),
    "1d": ((2, 3, 5), window_of((3,), 2, 1, 1)),
    "2d": ((2, 1, 4, 5), window_of((2, 3), (2, 1), (1, 1), 1)),
    "overlapping": ((1, 2, 4, 4), window_of((3, 3), 1, 1, 1)),
    "gaps": ((1, 1, 8), window_of((2,), 3, 0, 1)),
    "dilation": ((1, 1, 7), window_of((3,), 1, 1, 2)),
    "everything": ((2, 3), window_of((3,), 1, 0, 1)),
    "no-example": ((0, 2, 4), window_of((2,), 2, 0, 1)),
}


def _convolution(v: Values, x: Sizes, weight: Sizes, window: Window, groups: int) -> Given:
    return (v.real(x), v.real(weight)), {"window": window, "groups": groups}


def _convolution_weight(v: Values, x: Sizes, weight: Sizes, window: Window, groups: int) -> Given:
    g = (x[0], weight[0], *map(int, counts(x[2:], window)))
    return (v.real(x), v.real(g)), {"window": window, "groups": groups}


def _convolution_input(v: Values, x: Sizes, weight: Sizes, window: Window, groups: int) -> Given:
    g = convolution(np.zeros(x), np.zeros(weight), window, groups).shape
    return (v.real(g), v.real(weight)), {"sizes": x[2:], "window": window, "groups": groups}


def _windows(operands_of: Callable[[Values, Array, Window], tuple[Array, ...]]) -> Maker:
    return calls(_POOLINGS, lambda v, x, window: (operands_of(v, v.real(x), window), {"window": window}))


def _windows_back(operands_of: Callable[[Values, Array, Window], tuple[Array, ...]]) -> Maker:
    """The same with cotangents of windows, carried back to elements of these sizes."""

    def call(v: Values, shape: Sizes, window: Window) -> Given:
        return operands_of(v, v.real(shape), window), {"sizes": shape[len(shape) - len(window) :], "window": window}

    return calls(_POOLINGS, call)


def _tied(v: Values) -> Given:
    x, window = v.ints((2, 9), 0, 2).astype(float), window_of((3,), 1, 1, 1)
    return (x, window_max(x, window=window)), {"window": window}


def _taps(v: Values, x: Array, window: Window) -> Any:
    """Any tap for each window, also one that lies in the padding."""
    shape = window_max(x, window=window).shape
    return v.ints(shape, 0, math.prod(part[0] for part in window)).astype(np.uint8)


_SHAPES: dict[str, Sizes] = {"0-d": (), "odd": (3, 5), "one": (1,), "empty": (0, 3)}
_DRAWN = {f"{title}-{d}": (shape, d) for title, shape in _SHAPES.items() for d in ("float64", "float32", "float16")}
_KEY = random_key(7)

NEURAL: dict[str, Maker] = {
    "convolution": calls(_CONVOLUTIONS, _convolution),
    "convolution_input": calls(_CONVOLUTIONS, _convolution_input),
    "convolution_weight": calls(_CONVOLUTIONS, _convolution_weight),
    **dict.fromkeys(("window_sum", "window_max"), _windows(lambda v, x, window: (x,))),
    "window_argmax": joined(
        _windows(lambda v, x, window: (x, window_max(x, window=window))), calls({"ties": ()}, _tied)
    ),
    "window_pick": _windows(lambda v, x, window: (x, _taps(v, x, window))),
    "window_spread": _windows_back(lambda v, x, window: (window_max(x, window=window),)),
    "window_place": _windows_back(lambda v, x, window: (window_max(x, window=window), _taps(v, x, window))),
    **dict.fromkeys(
        ("uniform", "normal"), calls(_DRAWN, lambda v, shape, dtype: ((_KEY,), {"shape": shape, "dtype": dtype}))
    ),
    "split_key": calls({str(n): (n,) for n in (0, 1, 2, 5)}, lambda v, n: ((_KEY,), {"n": n})),
    "fold_in": calls(
        {"small": (np.array(3),), "negative": (np.array(-1, np.int32),)}, lambda v, number: ((_KEY, number), {})
    ),
}
