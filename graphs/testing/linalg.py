"""Samples of products, solvers and factors of matrices: batches that broadcast, and empty axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.testing.sample import Given, Maker, Sizes, Values, calls

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

_LINEAR: dict[str, tuple[Sizes, int]] = {
    "rows": ((4, 3), 2),
    "row": ((3,), 2),
    "batch": ((5, 4, 3), 2),
    "batches": ((2, 3, 4, 5), 1),
    "no-rows": ((0, 3), 2),
    "empty-inner": ((2, 0), 3),
}

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


def _general(shapes: dict[str, Sizes], **options: Any) -> Maker:
    return calls(shapes, lambda v, *shape: ((v.matrix(shape),), options))


def _definite(v: Values, *shape: int) -> Given:
    x = v.matrix(shape)
    return (x @ np.swapaxes(x, -1, -2),), {}


def _pivots(v: Values, *shape: int) -> Given:
    """Pivots as an LU factoring has them: none lies before its own row."""
    return (np.minimum(np.arange(shape[-1]) + v.ints(shape, 0, 3), shape[-1]),), {"size": shape[-1] + 1}


LINALG: dict[str, Maker] = {
    "matmul": calls(_MATMUL, lambda v, left, right: ((v.real(left), v.real(right)), {})),
    "linear": calls(_LINEAR, lambda v, x, m: ((v.real(x), v.real((m, x[-1])), v.real((m,))), {})),
    "solve": calls(_SOLVE, lambda v, left, right: ((v.matrix(left), v.real(right)), {})),
    **dict.fromkeys(("inv", "det", "slogdet", "cofactor"), _general(_SQUARE)),
    **dict.fromkeys(("cholesky", "eigh", "leading_definite"), calls(_SQUARE, _definite)),
    "matrix_exp": _general(_SQUARE),
    "svd": _general(_ANY),
    "lu": _general(_ANY),
    "permutation": calls({"three": (4,), "batch": (2, 3), "none": (0,)}, _pivots),
    "qr": _general(_HIGH),
    # Orthonormal and square, so that nothing is added: the rest has no gradient to be checked.
    "complement": calls(_SQUARE, lambda v, *shape: ((np.linalg.qr(v.matrix(shape))[0],), {})),
    "pinv": _general(_ANY, rtol=1e-6),
}
