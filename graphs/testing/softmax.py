"""Samples of softmax and its relatives: one axis and several, ties, a single class, nothing but the classes."""

from __future__ import annotations

from typing import Any

from graphs.testing.sample import Maker, Sizes, calls, joined, real

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

_ALONG = joined(
    calls(_AXES, real), calls({"ties": ((3, 4), 0, 2)}, lambda v, *case: ((v.ints(*case).astype(float),), {}))
)
_GRADIENT = calls(_AXES, lambda v, shape, options: ((v.real(shape), v.real(shape)), options))
SOFTMAX: dict[str, Maker] = {
    "softmax": _ALONG,
    "log_softmax": _ALONG,
    "softmax_gradient": _GRADIENT,
    "log_softmax_gradient": _GRADIENT,
    "nll_loss": calls(_LABELLED, lambda v, shape, n: ((v.real((*shape, n)), v.ints(shape, 0, n)), {})),
}
