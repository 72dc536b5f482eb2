"""The exponential of square matrices, by scaling, squaring and a Padé approximation.

N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26
(2005), algorithm 2.3 with the approximation of degree 13 alone; in float64, whatever comes in.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.op import Array, Op
from graphs.ops.elementwise import multiply
from graphs.ops.linalg import transposed
from graphs.ops.movement import concat
from graphs.ops.slicing import getitem
from graphs.ops.solving import cubed, solver, square
from graphs.spec import TensorSpec

_DEGREE = 13
_LARGEST = 5.371920351148152  # the 1-norm up to which the approximation is as exact as float64
_PADE = [
    math.factorial(2 * _DEGREE - j) / (math.factorial(_DEGREE - j) * math.factorial(j)) for j in range(_DEGREE + 1)
]


def _pade(x: Array) -> Array:
    """exp(x) as a quotient of polynomials, of the even and the odd powers of x."""
    square_of_x, powers = x @ x, [np.broadcast_to(np.eye(x.shape[-1]), x.shape)]
    for _ in range(_DEGREE // 2):
        powers.append(powers[-1] @ square_of_x)
    even = sum(b * power for b, power in zip(_PADE[::2], powers, strict=True))
    odd = x @ sum(b * power for b, power in zip(_PADE[1::2], powers, strict=True))
    return np.asarray(np.linalg.solve(even - odd, even + odd))


def _matrix_exp(x: Array, out: Array) -> Array:
    wide = x.astype(np.float64)
    norms = np.abs(wide).sum(-2).max(-1, initial=0)
    with np.errstate(divide="ignore"):
        halvings = np.where(np.isfinite(norms), np.maximum(np.ceil(np.log2(norms / _LARGEST)), 0), 0)
    power = _pade(wide * (0.5**halvings)[..., None, None])
    for done in range(int(halvings.max(initial=0))):
        power = np.where((halvings > done)[..., None, None], power @ power, power)
    out[...] = power
    return out


def _rule(g: Array, x: Array) -> Array:
    """The derivative along y is the upper right part of exp([[x, y], [0, x]]); its adjoint has x transposed."""
    size = x.shape[-1]
    below = transposed(x)
    whole = concat([concat([below, g], axis=-1), concat([multiply(below, 0), below], axis=-1)], axis=-2)
    return getitem(matrix_exp(whole), (..., slice(0, size), slice(size, None)))


matrix_exp: Op = solver(
    "matrix_exp",
    _matrix_exp,
    lambda x: TensorSpec((*x.shape[:-1], square(x)), x.dtype),
    _rule,
    flops=lambda x: cubed(x) * 20,
    doc="The exponential of square matrices.",
)
