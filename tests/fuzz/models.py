"""Steps of models: products, matrices, layers, windows, random numbers, and loops over parts of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs as g
from tests.fuzz.dtypes import drawn
from tests.helpers import random_control
from tests.helpers.random_ops import (
    Array,
    Kind,
    Options,
    Random,
    Value,
    axis,
    broadcastable,
    filled_axis,
    from_zero,
    neighbours,
    rows,
    wide,
)

EINSUMS = ("ij,jk->ik", "ij,ij->", "i,j->ij", "ij,kj->ki", "i,i->i", "ii->i", "ij->ji", "...j,...j->...", "ij->j",
           "ijk,k->ij", "i...->...", "bi,bj->bij")  # fmt: skip


# Options ----------------------------------------------------------------------------------------------------------


def subscripts(random: Random, *arrays: Array) -> Options | None:
    text = drawn(random, [s for s in EINSUMS if s.count(",") == len(arrays) - 1])
    try:
        g.einsum(text, *arrays)
    except g.GraphError:
        return None
    return {"subscripts": text}


def small_square(random: Random, x: Array) -> Options | None:
    """A matrix, or a batch of them, from which a well conditioned one is made."""
    fits = x.ndim in (2, 3) and 1 <= x.shape[-2] <= 6 and x.shape[-1] >= 1 and x.size
    return {"of": drawn(random, list(OF_MATRIX))} if fits else None


def matrix(random: Random, x: Array) -> Options | None:
    return {} if x.ndim >= 2 else None


def image(random: Random, x: Array) -> Options | None:
    return {"padding": int(random.integers(0, 2))} if x.ndim in (2, 3) and x.size and x.shape[-1] >= 2 else None


def any_axis(random: Random, x: Array) -> Options | None:
    options = axis(random, x)
    return options if x.ndim and x.size else None


def reverse(random: Random, x: Array) -> Options | None:
    return {"reverse": bool(random.integers(2))} if x.ndim else None


def nested(random: Random, x: Array, y: Array) -> Options:
    """A program of control flow, which may be nested."""
    return {"expression": random_control.draw(random, int(random.integers(1, 4)), 2, loops=random.random() < 0.3)}


# What is done -----------------------------------------------------------------------------------------------------


def positive_definite(x: Value) -> Value:
    """tanh(x) @ tanh(x).mT with a large diagonal."""
    y = g.tanh(x)
    size = x.shape[-2]
    return y @ g.matrix_transpose(y) + g.eye(size, dtype=x.dtype) * g.arange(2, size + 2, dtype=x.dtype)


def _solved(x: Value) -> Value:
    return g.linalg.solve(positive_definite(x), x)


OF_MATRIX: dict[str, Any] = {
    "inv": lambda x: g.linalg.inv(positive_definite(x)),
    "solve": _solved,
    "logdet": lambda x: g.linalg.slogdet(positive_definite(x)).logabsdet,
    "det": lambda x: g.linalg.det(positive_definite(x)) * 1e-3,
    "cholesky": lambda x: g.linalg.cholesky(positive_definite(x)),
    "eigvalsh": lambda x: g.sum(g.linalg.eigvalsh(positive_definite(x)), axis=-1),
    "svdvals": lambda x: g.linalg.svdvals(positive_definite(x))[..., 0],
    "qr": lambda x: g.square(g.linalg.qr(positive_definite(x)).R),
    "power": lambda x: g.linalg.matrix_power(positive_definite(x) * 0.2, 3),
    "norm": lambda x: g.linalg.matrix_norm(positive_definite(x)),
}


def of_matrix(x: Value, of: str) -> Value:
    return OF_MATRIX[of](g.astype(x, "float32") if x.dtype == "float16" else x)


def convolved(x: Value, padding: int) -> Value:
    channels = x.shape[-2]
    weight = g.reshape(g.cos(g.arange(3 * channels * 2, dtype=x.dtype)), (3, channels, 2))
    return g.conv1d(x, weight, padding=padding)


def attended(x: Value) -> Value:
    return g.attention(x, x * 0.5, g.sin(x))


def labelled(x: Value) -> Value:
    return g.cross_entropy(x, g.argmax(x * 2, axis=-1))


def noise(x: Value, key: Any) -> Value:
    """Of a key that is known, split."""
    one, other = g.random_key(key), g.split_key(g.random_key(key))[1]
    return x * g.normal(one, x.shape) + g.astype(g.uniform(other, x.shape), "float64")


def folded(x: Value, i: Value) -> Value:
    """Of a key that is computed."""
    key = g.fold_in(g.random_key(3), g.astype(g.sum(i) & 7, "int64"))
    return g.add(g.where(g.bernoulli(key, 0.5, x.shape), x, -x), g.normal(key, ()))


def carried(x: Value, reverse: bool) -> Value:
    """What each step was given and what the last one left: a max over steps."""
    last, each = g.scan(
        lambda c, row: (c * 0.5 + row, (c, {"row": row * 2})), g.zeros_like(g.sum(x, axis=0)), x, reverse=reverse
    )
    return g.max(g.concat([each[0], each[1]["row"]], axis=0), axis=0) + last


def carried_apart(x: Array, reverse: bool) -> Array:
    state, each = np.zeros(x.shape[1:]), [*(x * 2)]
    for row in x[::-1] if reverse else x:
        each.append(state)
        state = state * 0.5 + row
    return np.diff(np.sort(np.stack(each), axis=0), axis=0) if len(each) > 1 else np.ones(1)


def counted_steps(x: Value) -> Value:
    """A loop whose state holds an int, a bool and an array."""

    def step(i: Value, state: Any) -> Any:
        count, even, value = state
        return count + i * 2, g.logical_not(even), g.where(even, g.sin(value), value * 0.5) + x * 0.25

    count, even, value = g.fori_loop(0, 3, step, (0, True, x))
    return value + count + even


def branch(x: Value, i: Value) -> Value:
    """One of several branches, by a number that is computed, each with a loop or a view."""
    return g.switch(
        g.sum(i) % 3,
        [lambda v: v * 2, lambda v: g.fori_loop(0, 2, lambda _, w: g.tanh(w + x), v), lambda v: g.flip(v) * x],
        x,
    )


def controlled(x: Value, y: Value, expression: Any) -> Value:
    return random_control.evaluate(expression, [vector(x), vector(y)])


def vector(x: Value) -> Value:
    """Three numbers of an array, in float64."""
    return g.sin(g.sum(g.astype(x, "float64")) * 0.3 + np.arange(random_control.SIZE))


# The kinds --------------------------------------------------------------------------------------------------------

PRODUCTS = [
    Kind("einsum_one", lambda x, subscripts: g.einsum(subscripts, x), lambda x, subscripts: np.einsum(subscripts, x),
         subscripts, guards=("bounded",), differs=True),
    Kind("einsum_two", lambda x, y, subscripts: g.einsum(subscripts, x, y),
         lambda x, y, subscripts: np.einsum(subscripts, x, y), subscripts, 2, ("bounded", None), differs=True),
    Kind("of_matrix", of_matrix, None, small_square, differs=True),
    Kind("outer", lambda x, y: g.outer(g.reshape(x, (-1,)), g.reshape(y, (-1,))), np.outer,
         lambda random, x, y: {} if 0 < x.size < 8 and 0 < y.size < 8 else None, 2),
    Kind("inner", g.inner, np.inner, lambda random, x, y: {} if x.shape[-1:] == y.shape[-1:] else None, 2,
         ("bounded", None)),
    Kind("norm", lambda x: g.vector_norm(x + 0.25, axis=-1), lambda x: np.linalg.norm(x + 0.25, axis=-1), wide,
         edge=lambda x: x + 0.25),
    Kind("trace", lambda x: g.trace(x) + g.sum(g.diagonal(x, offset=1), axis=-1), None, matrix, differs=True),
    Kind("kron", g.kron, np.kron, lambda random, x, y: {} if x.ndim == y.ndim == 2 and x.size and y.size else None, 2),
]  # fmt: skip

LAYERS = [
    Kind("gelu", g.gelu), Kind("elu", g.elu, edge=from_zero), Kind("leaky_relu", g.leaky_relu, edge=from_zero),
    Kind("erf", lambda x: g.erf(x) - g.erfc(x * 0.5)), Kind("sinc", g.sinc, np.sinc),
    Kind("rms_norm", lambda x: g.rms_norm(x + 0.5, g.cos(x[..., :1])), None, wide),
    Kind("batch_norm", g.batch_norm, None, lambda random, x: {} if x.ndim >= 2 and x.size else None),
    Kind("conv1d", convolved, None, image, differs=True),
    Kind("max_pool1d", lambda x, padding: g.max_pool1d(x, 2, 1, padding), None, image,
         edge=lambda x, padding: neighbours(x)),
    Kind("avg_pool1d", lambda x, padding: g.avg_pool1d(x, 2, 1, padding), None, image),
    Kind("attention", attended, None, lambda random, x: {} if x.ndim >= 2 and x.size else None),
    Kind("cross_entropy", labelled, None, wide, edge=neighbours, jumps=True),
    Kind("mse_loss", g.mse_loss, None, broadcastable, 2), Kind("huber", g.huber_loss, None, broadcastable, 2),
    Kind("recurrence", lambda x, axis: g.linear_recurrence(g.sigmoid(x), x, axis=axis), None, any_axis),
    Kind("std", lambda x: g.std(g.concat([x, x + 1], axis=-1), axis=-1, correction=1, keepdims=True), None, wide),
]  # fmt: skip

MOVES = [
    Kind("rot90", g.rot90, np.rot90, lambda random, x: {"k": int(random.integers(-1, 4))} if x.ndim >= 2 else None),
    Kind("diff", g.diff, np.diff, filled_axis),
    Kind("moveaxis", lambda x: g.moveaxis(x, -1, 0), lambda x: np.moveaxis(x, -1, 0),
         lambda random, x: {} if x.ndim else None),
    Kind("unstack", lambda x: sum(r * k for k, r in enumerate(g.unstack(x, axis=-1), 1)), None, wide),
    Kind("meshgrid", lambda x, y: g.stack(g.meshgrid(x, y)), lambda x, y: np.stack(np.meshgrid(x, y)),
         lambda random, x, y: {} if x.ndim == y.ndim == 1 else None, 2),
    Kind("hstack", lambda x, y: g.hstack([x, y]), None, lambda random, x, y: {} if x.shape == y.shape else None, 2),
    Kind("append", g.append, np.append, lambda random, x, y: {}, 2),
    Kind("slope", lambda x: g.gradient(x, axis=-1), lambda x: np.gradient(x, axis=-1), wide),
]  # fmt: skip

RANDOM = [
    Kind("noise", noise, None, lambda random, x: {"key": int(random.integers(9))}, differs=True),
    Kind("folded", folded, None, lambda random, x, i: {}, 2, takes=("f", "i")),
    Kind("dropout", lambda x: g.dropout(x, 0.4, g.random_key(5)), differs=True),
]  # fmt: skip

LOOPS = [
    Kind("carried", carried, None, lambda random, x: reverse(random, x) if rows(random, x) is not None else None,
         edge=carried_apart, differs=True),
    Kind("counted_steps", counted_steps, differs=True),
    Kind("branch", branch, None, lambda random, x, i: {}, 2, takes=("f", "i"), differs=True),
    Kind("controlled", controlled, None, nested, 2, differs=True, takes="fiub"),
    Kind("controlled_again", controlled, None, nested, 2, differs=True),
]  # fmt: skip

# Each breaks a rule of its op, whatever it is given.
BROKEN = (
    Kind("index_outside", lambda x: g.take(g.reshape(x, (-1,)), np.array([1000]))),
    Kind("axis_outside", lambda x: g.sum(x, axis=9)),
    Kind("wrong_reshape", lambda x: g.reshape(x, (1009, 7))),
    Kind("wrong_shapes", lambda x: g.matmul(g.stack([g.sum(x)] * 2), g.zeros(3))),
    Kind("wrong_dtype", lambda x: g.bitwise_and(g.astype(x, "float64"), 1)),
    Kind("wrong_subscripts", lambda x: g.einsum("ijklmn->i", x)),
    Kind("no_square", lambda x: g.linalg.inv(g.zeros((2, 3)) + g.sum(x))),
    Kind("no_index", lambda x: g.take(g.ones(4), g.astype(x, "float64"))),
)
