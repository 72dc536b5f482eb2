"""Samples of softmax and its relatives: one axis and several, ties, a single class, nothing but the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphs.op import Op
from graphs.testing.sample import Sizes, Values

Call = tuple[str, tuple[Any, ...], dict[str, Any]]

_AXES: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "vector": ((4,), {}),
    "last": ((2, 3), {}),
    "first": ((3, 2), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "two": ((2, 3, 4), {"axis": (0, 2)}),
    "all": ((2, 3), {"axis": None}),
    "none": ((2, 3), {"axis": ()}),
    "one-class": ((3, 1), {}),
    "no-row": ((0, 3), {}),
}
_LABELLED: dict[str, tuple[Sizes, int]] = {
    "rows": ((4,), 3),
    "one": ((), 3),
    "two-axes": ((2, 3), 4),
    "one-class": ((3,), 1),
}


def _along(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, attrs) in _AXES.items():
        yield title, (values.real(shape),), attrs
    yield "ties", (values.ints((3, 4), 0, 2).astype(float),), {}


def _gradient(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, attrs) in _AXES.items():
        yield title, (values.real(shape), values.real(shape)), attrs


def _labelled(op: Op, values: Values) -> Iterator[Call]:
    for title, (shape, classes) in _LABELLED.items():
        yield title, (values.real((*shape, classes)), values.ints(shape, 0, classes)), {}


SOFTMAX: dict[str, Callable[[Op, Values], Iterator[Call]]] = {
    "softmax": _along,
    "log_softmax": _along,
    "softmax_gradient": _gradient,
    "nll_loss": _labelled,
}
