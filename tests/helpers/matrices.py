"""Matrices, and the same functions of graphs.linalg and of NumPy, for the tests of both."""

from __future__ import annotations

import functools
import math

import numpy as np

import graphs as g
from graphs import linalg

RANDOM = np.random.default_rng(5)


def matrix(*shape):
    """Matrices of full rank with singular values that lie apart."""
    return RANDOM.uniform(-0.4, 0.4, shape) + np.eye(*shape[-2:]) * (1 + np.arange(shape[-1]))


def definite(*shape):
    x = matrix(*shape)
    return x @ np.swapaxes(x, -1, -2)


A, B, S = matrix(3, 3), RANDOM.normal(size=(3, 2)), definite(3, 3)
STACK, SIDES, SPD = matrix(2, 3, 3), RANDOM.normal(size=(2, 3, 2)), definite(2, 3, 3)
HIGH, WIDE = matrix(2, 4, 3), matrix(2, 2, 4)
NORMS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)

# Values -----------------------------------------------------------------------------------------------------------

# Ours, NumPy's, and inputs; NumPy's name called on a tensor is ours.
FUNCTIONS = {
    "solve": (linalg.solve, np.linalg.solve, (A, B)),
    "solve a vector": (linalg.solve, np.linalg.solve, (STACK, B[:, 0])),
    "solve batches": (linalg.solve, np.linalg.solve, (STACK[:, None], SIDES)),
    "inv": (linalg.inv, np.linalg.inv, (STACK,)),
    "det": (linalg.det, np.linalg.det, (STACK,)),
    "slogdet": (linalg.slogdet, np.linalg.slogdet, (-STACK,)),
    "cholesky": (linalg.cholesky, np.linalg.cholesky, (SPD,)),
    "eigh": (linalg.eigh, np.linalg.eigh, (SPD,)),
    "eigvalsh": (linalg.eigvalsh, np.linalg.eigvalsh, (SPD,)),
    "svd": (linalg.svd, np.linalg.svd, (STACK,)),
    "svd wide": (  # what makes Vh square is any basis
        lambda x: linalg.svd(x).Vh[..., :2, :],
        lambda x: np.linalg.svd(x)[2][..., :2, :],
        (WIDE,),
    ),
    "svd short": (
        functools.partial(linalg.svd, full_matrices=False),
        functools.partial(np.linalg.svd, full_matrices=False),
        (HIGH,),
    ),
    "svdvals": (linalg.svdvals, np.linalg.svdvals, (WIDE,)),
    "qr": (linalg.qr, np.linalg.qr, (HIGH,)),
    "qr wide": (linalg.qr, np.linalg.qr, (WIDE,)),
    "qr complete": (lambda x: linalg.qr(x, mode="complete"), lambda x: np.linalg.qr(x, "complete"), (HIGH,)),
    "qr complete wide": (lambda x: linalg.qr(x, mode="complete"), lambda x: np.linalg.qr(x, "complete"), (WIDE,)),
    "qr r": (lambda x: linalg.qr(x).R, lambda x: np.linalg.qr(x, "r"), (HIGH,)),
    "pinv": (linalg.pinv, np.linalg.pinv, (HIGH,)),
    "pinv of lower rank": (lambda x: linalg.pinv(x[..., :1] * x), lambda x: np.linalg.pinv(x[..., :1] * x), (HIGH,)),
    "pinv cut off": (lambda x: linalg.pinv(x, rtol=0.5), lambda x: np.linalg.pinv(x, rcond=0.5), (HIGH,)),
    "matrix_rank": (linalg.matrix_rank, np.linalg.matrix_rank, (HIGH * np.array([[[1]], [[0]]]),)),
    "matrix_rank with tol": (
        lambda x: g.count_nonzero(linalg.svdvals(x) > 2, axis=-1),
        lambda x: np.linalg.matrix_rank(x, tol=2),
        (HIGH,),
    ),
    "power": (lambda x: linalg.matrix_power(x, 5), lambda x: np.linalg.matrix_power(x, 5), (STACK,)),
    "power 0": (lambda x: linalg.matrix_power(x, 0), lambda x: np.linalg.matrix_power(x, 0), (STACK,)),
    "power -2": (lambda x: linalg.matrix_power(x, -2), lambda x: np.linalg.matrix_power(x, -2), (STACK,)),
    **{
        f"norm {p}": (
            lambda x, p=p: linalg.matrix_norm(x, ord=p),
            lambda x, p=p: np.linalg.norm(x, p, axis=(-2, -1)),
            (HIGH,),
        )
        for p in NORMS
    },
    "norm kept": (
        lambda x: linalg.matrix_norm(x, ord=2, keepdims=True),
        lambda x: np.linalg.matrix_norm(x, ord=2, keepdims=True),
        (WIDE,),
    ),
    "norm of one": (lambda x: linalg.matrix_norm(x, ord=1), lambda x: np.linalg.norm(x, 1), (B,)),
    "norm fro": (linalg.matrix_norm, lambda x: np.linalg.norm(x, "f"), (B,)),
    "norm of axes the other way": (
        lambda x: linalg.matrix_norm(g.matrix_transpose(x), ord=1, keepdims=True),
        lambda x: np.linalg.norm(x, 1, (-1, -2), keepdims=True),
        (HIGH[:, :3],),
    ),
    "norm of other axes": (
        lambda x: linalg.matrix_norm(g.permute_dims(x, (1, 2, 0)), ord="nuc"),
        lambda x: np.linalg.norm(x, "nuc", (2, 0)),
        (HIGH,),
    ),
    "cross": (linalg.cross, np.linalg.cross, (STACK, A)),
}


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def flat(f):
    """A function whose results are one array."""
    return lambda *args: g.concat([g.reshape(part, (-1,)) for part in parts(f(*args))])


def weighted_symbolic(f):
    """A scalar of the squares of all results, whatever their sizes, and so of no signs."""
    return lambda *args: sum(g.sum(part**2) * (i + 1.5) for i, part in enumerate(parts(f(*args))))
