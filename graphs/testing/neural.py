"""Samples of convolutions, pooling windows and random numbers: stride, padding, dilation, groups, one to three axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphs.op import Op
from graphs.ops.convolution import convolution
from graphs.ops.pooling import window_max
from graphs.ops.random import random_key
from graphs.ops.windows import Window, counts, window_of
from graphs.testing.sample import Sizes, Values

Call = tuple[str, tuple[Any, ...], dict[str, Any]]

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


def _convolution(op: Op, values: Values) -> Iterator[Call]:
    for title, (x, weight, window, groups) in _CONVOLUTIONS.items():
        yield title, (values.real(x), values.real(weight)), {"window": window, "groups": groups}


def _convolution_weight(op: Op, values: Values) -> Iterator[Call]:
    for title, (x, weight, window, groups) in _CONVOLUTIONS.items():
        g = (x[0], weight[0], *counts(x[2:], window))
        yield title, (values.real(x), values.real(_numbers(g))), {"window": window, "groups": groups}


def _convolution_input(op: Op, values: Values) -> Iterator[Call]:
    for title, (x, weight, window, groups) in _CONVOLUTIONS.items():
        g = convolution(np.zeros(x), np.zeros(weight), window, groups).shape
        attrs = {"sizes": x[2:], "window": window, "groups": groups}
        yield title, (values.real(g), values.real(weight)), attrs


def _window(op: Op, values: Values) -> Iterator[Call]:
    for title, (x, window) in _POOLINGS.items():
        yield title, (values.real(x),), {"window": window}


def _window_argmax(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, window) in _POOLINGS.items():
        x = values.real(shape)
        yield title, (x, window_max(x, window=window)), {"window": window}
    ties = values.ints((2, 9), 0, 2).astype(float)
    window = window_of((3,), 1, 1, 1)
    yield "ties", (ties, window_max(ties, window=window)), {"window": window}


def _window_pick(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, window) in _POOLINGS.items():
        x = values.real(shape)
        yield title, (x, _taps(x, values, window)), {"window": window}


def _window_spread(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, window) in _POOLINGS.items():
        g = window_max(values.real(shape), window=window)
        yield title, (g,), {"sizes": shape[len(shape) - len(window) :], "window": window}


def _window_place(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, window) in _POOLINGS.items():
        x = values.real(shape)
        attrs = {"sizes": shape[len(shape) - len(window) :], "window": window}
        yield title, (window_max(x, window=window), _taps(x, values, window)), attrs


def _taps(x: Any, values: Values, window: Window) -> Any:
    """Any tap for each window, also one that lies in the padding."""
    shape = window_max(x, window=window).shape
    return values.ints(shape, 0, math.prod(part[0] for part in window)).astype(np.uint8)


def _numbers(shape: Any) -> Sizes:
    return tuple(int(size) for size in shape)


def _drawn(op: Op, values: Values) -> Iterator[Call]:
    for title, shape in {"0-d": (), "odd": (3, 5), "one": (1,), "empty": (0, 3)}.items():
        for dtype in ("float64", "float32", "float16"):
            yield f"{title}-{dtype}", (random_key(7),), {"shape": shape, "dtype": dtype}


def _split(op: Op, values: Values) -> Iterator[Call]:
    for n in (0, 1, 2, 5):
        yield f"{n}", (random_key(7),), {"n": n}


def _fold(op: Op, values: Values) -> Iterator[Call]:
    yield "small", (random_key(7), np.array(3)), {}
    yield "negative", (random_key(7), np.array(-1, np.int32)), {}


NEURAL: dict[str, Callable[[Op, Values], Iterator[Call]]] = {
    "convolution": _convolution,
    "convolution_input": _convolution_input,
    "convolution_weight": _convolution_weight,
    "window_sum": _window,
    "window_max": _window,
    "window_argmax": _window_argmax,
    "window_pick": _window_pick,
    "window_spread": _window_spread,
    "window_place": _window_place,
    "uniform": _drawn,
    "normal": _drawn,
    "split_key": _split,
    "fold_in": _fold,
}
