"""Recurrent layers, as scans over the steps of their sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from graphs import ops
from graphs.errors import OptionError
from graphs.onnx.table import Count, Texts, translates
from graphs.ops.shapes import dtype_of, shape_of

Direction = Literal["forward", "reverse", "bidirectional"]
State = tuple[Any, ...]
Cell = Callable[
    ..., State
]  # (x, state, one direction's weights, functions) -> the next state, its first part the output

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Relu": ops.relu,
    "Sigmoid": ops.sigmoid,
    "Softplus": ops.softplus,
    "Tanh": ops.tanh,
}


def _recurrent(
    cell: Cell, x: Any, weights: list[Any], lengths: Any, states: list[Any], *, functions: list[str], direction: str,
    layout: int, width: int,
) -> tuple[Any, ...]:  # fmt: skip
    """All outputs, [T, directions, N, H], and the last state of each direction; with `layout` 1 the batch is first."""
    for name in functions:
        if name not in FUNCTIONS:
            raise OptionError(f"the activation {name} is not here; use one of {', '.join(FUNCTIONS)}")
    if layout:
        x = ops.moveaxis(x, 0, 1)
    batch = shape_of(x)[1]
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    count = len(functions) // len(backwards)
    outputs, ends = [], []
    for number, reverse in enumerate(backwards):
        own = [None if weight is None else weight[number] for weight in weights]
        chosen = [FUNCTIONS[name] for name in functions[number * count : (number + 1) * count]]
        start = tuple(
            ops.full((batch, width), 0, dtype_of(x)) if s is None else s[:, number] if layout else s[number]
            for s in states
        )
        end, ys = _scanned(cell, x, lengths, start, own, chosen, reverse)
        outputs.append(ys)
        ends.append(end)
    axis = 1 if layout else 0
    last = [ops.stack(parts, axis=axis) for parts in zip(*ends, strict=True)]
    together = ops.stack(outputs, axis=1)
    return (ops.permute_dims(together, (2, 0, 1, 3)) if layout else together, *last)


def _scanned(
    cell: Cell, x: Any, lengths: Any, start: State, weights: list[Any], functions: list[Any], reverse: bool
) -> tuple[State, Any]:
    """One direction. Beyond the length of a sequence its state stays, and its output is 0."""

    def step(state: State, at: tuple[Any, Any]) -> tuple[State, Any]:
        here, time = at
        following = cell(here, state, weights, functions)
        if lengths is None:
            return following, following[0]
        inside = ops.expand_dims(ops.less(time, lengths), -1)
        kept = tuple(ops.where(inside, new, old) for new, old in zip(following, state, strict=True))
        return kept, ops.where(inside, following[0], 0)

    return ops.scan(step, start, (x, ops.arange(shape_of(x)[0])), reverse=reverse)


def _gates(count: int, x: Any, hidden: Any, w: Any, r: Any, b: Any) -> list[Any]:
    """What each gate takes: x and the hidden state times its weights, and its two biases."""
    width = shape_of(r)[-1]
    product = ops.add(ops.matmul(x, ops.matrix_transpose(w)), ops.matmul(hidden, ops.matrix_transpose(r)))
    if b is not None:
        product = ops.add(product, ops.add(b[: count * width], b[count * width :]))
    return [product[:, gate * width : (gate + 1) * width] for gate in range(count)]


def _simple(x: Any, state: State, weights: list[Any], functions: list[Any]) -> State:
    (gate,) = _gates(1, x, state[0], *weights)
    return (functions[0](gate),)


def _lstm(x: Any, state: State, weights: list[Any], functions: list[Any]) -> State:
    *plain, peepholes = weights
    hidden, cell = state
    i, o, f, c = _gates(4, x, hidden, *plain)
    squash, inner, outer = functions
    width = shape_of(hidden)[-1]
    if peepholes is not None:
        i = ops.add(i, ops.multiply(peepholes[:width], cell))
        f = ops.add(f, ops.multiply(peepholes[2 * width :], cell))
    following = ops.add(ops.multiply(squash(f), cell), ops.multiply(squash(i), inner(c)))
    if peepholes is not None:
        o = ops.add(o, ops.multiply(peepholes[width : 2 * width], following))
    return ops.multiply(squash(o), outer(following)), following


def _gru(reset_late: bool) -> Cell:
    """`reset_late`: the reset gate multiplies what the hidden state gives, and not that state."""

    def cell(x: Any, state: State, weights: list[Any], functions: list[Any]) -> State:
        (hidden,), (w, r, b), (squash, inner) = state, weights, functions
        width = shape_of(r)[-1]
        bias = np.zeros(6 * int(width), dtype_of(r)) if b is None else b
        wx = ops.add(ops.matmul(x, ops.matrix_transpose(w)), bias[: 3 * width])
        rh = ops.add(ops.matmul(hidden, ops.matrix_transpose(r[: 2 * width])), bias[3 * width : 5 * width])
        update = squash(ops.add(wx[:, :width], rh[:, :width]))
        reset = squash(ops.add(wx[:, width : 2 * width], rh[:, width:]))
        recurrent, late = ops.matrix_transpose(r[2 * width :]), bias[5 * width :]
        if reset_late:
            inside = ops.multiply(reset, ops.add(ops.matmul(hidden, recurrent), late))
        else:
            inside = ops.add(ops.matmul(ops.multiply(reset, hidden), recurrent), late)
        fresh = inner(ops.add(wx[:, 2 * width :], inside))
        return (ops.add(ops.multiply(ops.subtract(1, update), fresh), ops.multiply(update, hidden)),)

    return cell


def _directions(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1


@translates("RNN")
def simple(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, hidden: Any = None, *, hidden_size: Count,
    direction: Direction = "forward", layout: int = 0, activations: Texts | None = None,
) -> Any:  # fmt: skip
    names = activations or ["Tanh"] * _directions(direction)
    return _recurrent(
        _simple, x, [w, r, b], lengths, [hidden], functions=names, direction=direction, layout=layout,
        width=hidden_size,
    )  # fmt: skip


@translates("LSTM")
def lstm(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, hidden: Any = None, cell: Any = None,
    peepholes: Any = None, *, hidden_size: Count, direction: Direction = "forward", layout: int = 0,
    activations: Texts | None = None,
) -> Any:  # fmt: skip
    names = activations or ["Sigmoid", "Tanh", "Tanh"] * _directions(direction)
    return _recurrent(
        _lstm, x, [w, r, b, peepholes], lengths, [hidden, cell], functions=names, direction=direction, layout=layout,
        width=hidden_size,
    )  # fmt: skip


@translates("GRU")
def gru(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, hidden: Any = None, *, hidden_size: Count,
    direction: Direction = "forward", layout: int = 0, activations: Texts | None = None,
    linear_before_reset: bool = False,
) -> Any:  # fmt: skip
    names = activations or ["Sigmoid", "Tanh"] * _directions(direction)
    return _recurrent(
        _gru(linear_before_reset), x, [w, r, b], lengths, [hidden], functions=names, direction=direction,
        layout=layout, width=hidden_size,
    )  # fmt: skip
