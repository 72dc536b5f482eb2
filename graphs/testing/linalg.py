"""Samples of matrix products: vectors, matrices, batches that broadcast, and empty axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


LINALG = {"matmul": _matmul}
