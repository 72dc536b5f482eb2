"""Samples of products, solvers and factors of matrices: batches that broadcast, and empty axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphs.op import Op
from graphs.testing.sample import Sizes, Values

Call = tuple[str, tuple[Any, ...], dict[str, Any]]

_MATMUL: dict[str, tuple[Sizes, Sizes]] = {
    "matrices": ((2, 3), (3, 4)),
    "vectors": ((3,), (3,)),
    "matrix-vector": ((2, 3), (3,)),
    "vector-matrix": ((3,), (3, 4)),
    "batch": ((5, 2, 3), (5, 3, 4)),
    "batch-by-matrix": ((5, 2, 3), (3, 4)),
    "matrix-by-batch": ((2, 3), (5, 3, 4)),
    "batches-stretched": ((5, 1, 2, 3), (4, 3, 2)),
    "batch-vector": ((5, 2, 3), (3,)),
    "vector-batch": ((3,), (5, 3, 4)),
    "size-1": ((1, 1), (1, 1)),
    "empty-inner": ((2, 0), (0, 3)),
    "empty-rows": ((0, 3), (3, 2)),
}


def _matmul(op: Op, values: Values) -> Iterator[Call]:
    for title, (left, right) in _MATMUL.items():
        yield title, (values.real(left), values.real(right)), {}


# Solvers and factors ----------------------------------------------------------------------------------------------

_SQUARE: dict[str, Sizes] = {
    "matrix": (3, 3),
    "batch": (2, 3, 3),
    "size-1": (1, 1),
    "no-matrices": (0, 2, 2),
    "empty": (0, 0),
}
_HIGH: dict[str, Sizes] = {**_SQUARE, "high": (4, 2), "high-batch": (2, 3, 2)}
_ANY: dict[str, Sizes] = {**_HIGH, "wide": (2, 4), "wide-batch": (2, 2, 3)}
_SOLVE: dict[str, tuple[Sizes, Sizes]] = {
    "matrices": ((3, 3), (3, 2)),
    "batch": ((2, 3, 3), (2, 3, 1)),
    "one-matrix": ((2, 2), (3, 2, 1)),
    "one-side": ((2, 1, 2, 2), (3, 2, 2)),
    "size-1": ((1, 1), (1, 1)),
    "empty": ((0, 0), (0, 2)),
    "no-sides": ((2, 2), (2, 0)),
}


def _solve(op: Op, values: Values) -> Iterator[Call]:
    for title, (left, right) in _SOLVE.items():
        yield title, (values.matrix(left), values.real(right)), {}


def _general(shapes: dict[str, Sizes], **attrs: Any) -> Callable[[Op, Values], Iterator[Call]]:
    def maker(op: Op, values: Values) -> Iterator[Call]:
        for title, shape in shapes.items():
            yield title, (values.matrix(shape),), attrs

    return maker


def _definite(op: Op, values: Values) -> Iterator[Call]:
    for title, shape in _SQUARE.items():
        x = values.matrix(shape)
        yield title, (x @ np.swapaxes(x, -1, -2),), {}


def _orthonormal(op: Op, values: Values) -> Iterator[Call]:
    """Square ones, to which nothing is added: the rest has no gradient to be checked."""
    for title, shape in _SQUARE.items():
        yield title, (np.linalg.qr(values.matrix(shape))[0],), {}


LINALG: dict[str, Callable[[Op, Values], Iterator[Call]]] = {
    "matmul": _matmul,
    "solve": _solve,
    **dict.fromkeys(("inv", "det", "slogdet", "cofactor"), _general(_SQUARE)),
    **dict.fromkeys(("cholesky", "eigh"), _definite),
    "svd": _general(_ANY),
    "qr": _general(_HIGH),
    "complement": _orthonormal,
    "pinv": _general(_ANY, rtol=1e-6),
}
