"""What random graphs are made of: each op twice, as `graphs` has it and in plain NumPy.

The NumPy side shares nothing with the op library: it is NumPy's function of that name, or the formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphs as g

Array = np.ndarray
Value = Any
Options = dict[str, Any]
Random = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """One kind of step: `ours(*values, **options)` and `numpy(*arrays, **options)` mean the same.

    numpy     None where NumPy has nothing like it: then `ours` on arrays of float64 is the reference
    options   `options(random, *arrays)` draws the options, or says None where the op does not apply
    takes     the kinds of dtypes of its inputs, for all of them or for each: f float, i int, u unsigned, b bool
    guards    for each input the kind that brings it into the domain first, or None
    edge      `edge(*arrays, **options)`: how far each element is from a kink or jump; None without one
    jumps     whether there the value jumps, so that rounding decides it, and not the gradient alone
    differs   whether the engines call other ops: control flow is one op in a trace and just runs on a tape, and what
              depends on no input is computed once in a trace and on every run of a tape
    """

    name: str
    ours: Callable[..., Value]
    numpy: Callable[..., Any] | None = None
    options: Callable[..., Options | None] = lambda random, *arrays: {}
    inputs: int = 1
    guards: tuple[str | None, ...] = (None, None, None)
    edge: Callable[..., Any] | None = None
    jumps: bool = False
    differs: bool = False
    takes: str | tuple[str, ...] = "f"

    def reference(self, *arrays: Array, **options: Any) -> Array:
        """The value by NumPy, in float64 if it is a float."""
        return as_double((self.numpy or self.ours)(*arrays, **options))

    def wanted(self) -> list[tuple[str, int]]:
        """The kinds of dtypes that it takes, each with the number of inputs that are drawn together."""
        return [(self.takes, self.inputs)] if isinstance(self.takes, str) else [(kinds, 1) for kinds in self.takes]


def as_double(x: Any) -> Array:
    """An array in float64 if it is one of floats; ints and bools stay what they are."""
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


# Options ----------------------------------------------------------------------------------------------------------


def axis(random: Random, x: Array, *others: Array) -> Options | None:
    return {"axis": int(random.integers(-x.ndim, x.ndim))} if x.ndim else None


def filled_axis(random: Random, x: Array) -> Options | None:
    drawn = axis(random, x)
    return drawn if drawn and x.shape[drawn["axis"]] else None


def axes(random: Random, x: Array) -> Options:
    """No axis, all, one, or several in any order; keepdims or not."""
    several = tuple(int(a) for a in random.permutation(x.ndim)[: random.integers(0, x.ndim + 1)])
    drawn = several[0] if len(several) == 1 and random.random() < 0.7 else several
    return {"axis": None if random.random() < 0.2 else drawn, "keepdims": bool(random.integers(2))}


def filled_axes(random: Random, x: Array) -> Options | None:
    drawn = axes(random, x)
    return drawn if x.size else None


def slices(random: Random, x: Array) -> Options | None:
    """Slices forwards and backwards, ints, None and an Ellipsis."""
    if not x.ndim or not x.size:
        return None
    parts = [slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None), slice(-2, None), 0, -1, None]
    key = [parts[i] for i in random.integers(0, len(parts), random.integers(1, x.ndim + 1))]
    return {"key": tuple(key) if random.random() < 0.5 else (Ellipsis, *key)}


def indices(random: Random, x: Array) -> Options | None:
    drawn = filled_axis(random, x)
    if drawn is None:
        return None
    size = x.shape[drawn["axis"]]
    shape = [(), (3,), (2, 2), (0,)][random.integers(4)]
    return drawn | {"indices": np.asarray(random.integers(-size, size, shape))}


def permutation(random: Random, x: Array) -> Options:
    return {"axes": tuple(int(a) for a in random.permutation(x.ndim))}


def borders(random: Random, x: Array) -> Options:
    return {"pad_width": tuple((int(b), int(a)) for b, a in random.integers(0, 2, (x.ndim, 2)))}


def matrices(random: Random, x: Array, y: Array) -> Options | None:
    try:
        np.matmul(x, y)
    except ValueError:
        return None
    return {}


def together(random: Random, x: Array, y: Array) -> Options | None:
    """An axis along which two arrays can be joined."""
    drawn = axis(random, x) if x.ndim == y.ndim else None
    rest = [np.delete(a.shape, drawn["axis"]).tolist() for a in (x, y)] if drawn else [0, 1]
    return drawn if rest[0] == rest[1] else None


def broadcastable(random: Random, *arrays: Array) -> Options | None:
    try:
        np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        return None
    return {}


def square_of(random: Random, x: Array) -> Options | None:
    return {"k": int(random.integers(-1, 2))} if x.ndim >= 2 else None


def rows(random: Random, x: Array) -> Options | None:
    return {} if x.ndim and x.shape[0] else None


def wide(random: Random, x: Array) -> Options | None:
    return {} if x.ndim and x.shape[-1] > 1 else None


def if_filled(random: Random, x: Array) -> Options | None:
    return {} if x.size else None


# Distances to kinks -----------------------------------------------------------------------------------------------


def from_zero(x: Array) -> Array:
    return x


def from_whole(x: Array) -> Array:
    return x - np.rint(x)


def from_half(x: Array) -> Array:
    return x - np.floor(x) - 0.5


def apart(x: Array, y: Array, *_: Array, **__: Any) -> Array:
    return x - y


def neighbours(x: Array, *, axis: Any = None, **_: Any) -> Array:
    """The smallest distance between two elements that are compared, whichever they are."""
    return np.diff(np.sort(x, axis=None))


# Formulas of what NumPy does not have -------------------------------------------------------------------------------


def places(x: Value) -> Value:
    """0, 1, 2 ... along the last axis: known now, unless its size is symbolic."""
    size = x.shape[-1]
    return np.arange(size, dtype=x.dtype) if isinstance(size, int) else g.arange(size, dtype=x.dtype)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array, axis: int) -> Array:
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


def layer_norm(x: Array) -> Array:
    along = np.arange(x.shape[-1])
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * (1 + along / 4) + along / 8 - 0.5


def our_layer_norm(x: Value) -> Value:
    along = places(x)
    return g.layer_norm(x, 1 + along / 4, along / 8 - 0.5)


def our_scan(x: Value) -> Value:
    def step(state: Value, row: Value) -> tuple[Value, Value]:
        state = g.tanh(state * 0.5 + row)
        return state, state * row

    last, each = g.scan(step, g.zeros_like(x[0]), x)
    return each + last


def scan(x: Array) -> Array:
    state, each = np.zeros(x.shape[1:]), []
    for row in x:
        state = np.tanh(state * 0.5 + row)
        each.append(state * row)
    return np.stack(each) + state


def our_while(x: Value) -> Value:
    return g.while_loop(lambda v: g.sum(g.square(v)) > 2.0, lambda v: v * 0.75 - g.sin(v) * 0.125, x)


def while_loop(x: Array) -> Array:
    while np.sum(x**2) > 2:
        x = x * 0.75 - np.sin(x) * 0.125
    return x


def from_two(x: Array) -> list[float]:
    distances = [np.sum(x**2) - 2]
    while distances[-1] > 0:
        x = x * 0.75 - np.sin(x) * 0.125
        distances.append(np.sum(x**2) - 2)
    return distances


def one_hot_of_argmax(x: Array) -> Array:
    return np.asarray(np.arange(x.shape[-1]) == np.argmax(x, -1)[..., None], float) * x


# The kinds --------------------------------------------------------------------------------------------------------

ONE, TWO = ("positive",), (None, "positive")


def _same(names: str, **more: Any) -> list[Kind]:
    """Kinds that have one name here and in NumPy."""
    return [Kind(name, getattr(g, name), getattr(np, name), **more) for name in names.split()]


ELEMENTWISE = [
    *_same("sin cos tanh atan asinh negative"),
    *_same("log log1p log2 log10 sqrt reciprocal", guards=ONE),
    *_same("exp expm1 square sinh cosh tan asin acos atanh", guards=("bounded",)),
    *_same("abs", edge=from_zero),
    *_same("floor ceil trunc", edge=from_whole, jumps=True),
    *_same("sign", edge=from_zero, jumps=True),
    *_same("round", edge=from_half, jumps=True),
    *_same("add subtract multiply logaddexp", inputs=2, options=broadcastable),
    *_same("divide hypot atan2", inputs=2, options=broadcastable, guards=TWO),
    *_same("maximum minimum", inputs=2, options=broadcastable, edge=apart),
    Kind("positive", lambda x: g.square(x) + 0.5, lambda x: x**2 + 0.5),
    Kind("bounded", lambda x: g.tanh(x) * 0.9, lambda x: np.tanh(x) * 0.9),
    Kind("scalars", lambda x: 1 - (2 * x - 0.5) / 3, lambda x: 1 - (2 * x - 0.5) / 3),
    Kind("cubed", lambda x: x**3 * 0.1, lambda x: x**3 * 0.1),
    Kind("pow", g.pow, np.power, broadcastable, 2, ("positive", "bounded")),
    Kind("remainder", g.remainder, np.remainder, broadcastable, 2, TWO, lambda x, y: from_whole(x / y), True),
    Kind("relu", g.relu, lambda x: np.maximum(x, 0), edge=from_zero),
    Kind("clip", lambda x: g.clip(x, -0.5, 0.75), lambda x: np.clip(x, -0.5, 0.75),
         edge=lambda x: (x + 0.5) * (x - 0.75)),
    Kind("sigmoid", g.sigmoid, sigmoid),
    Kind("silu", g.silu, lambda x: x * sigmoid(x)),
    Kind("softplus", g.softplus, lambda x: np.log1p(np.exp(x))),
    Kind("stop_gradient", lambda x: g.stop_gradient(x) * x, lambda x: x * x),
    # functions, not operators: those of tensors promote as PyTorch's, those of symbols as NumPy's
    Kind("where", lambda x, y: g.where(g.greater(x, y), x, y * 2), lambda x, y: np.where(x > y, x, y * 2),
         broadcastable, 2, edge=apart, jumps=True),
    Kind("logic", lambda x, y: g.where(g.logical_and(x > 0, ~g.less_equal(y, x)), x, y),
         lambda x, y: np.where((x > 0) & (y > x), x, y), broadcastable, 2, edge=lambda x, y: x * (y - x), jumps=True),
]  # fmt: skip

REDUCTIONS = [
    *_same("sum", options=axes),
    *_same("mean var", options=filled_axes),
    *_same("prod", options=axes, guards=("bounded",)),
    *_same("max min", options=filled_axes, edge=neighbours),
    Kind("logsumexp", g.logsumexp, lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
         filled_axes),
    Kind("cumulative_sum", g.cumulative_sum, np.cumsum, axis),
    Kind("cumulative_prod", g.cumulative_prod, np.cumprod, axis, guards=("bounded",)),
    Kind("softmax", g.softmax, softmax, filled_axis),
    Kind("log_softmax", g.log_softmax, lambda x, axis: np.log(softmax(x, axis)), filled_axis),
    Kind("layer_norm", our_layer_norm, layer_norm, wide),
    Kind("sort", g.sort, np.sort, axis, edge=neighbours),
    Kind("argmax", lambda x: g.one_hot(g.argmax(x, axis=-1), x.shape[-1], dtype=x.dtype) * x, one_hot_of_argmax,
         wide, edge=neighbours, jumps=True, differs=True),
]  # fmt: skip

MOVEMENT = [
    Kind("permute_dims", g.permute_dims, np.transpose, permutation),
    Kind("matrix_transpose", g.matrix_transpose, lambda x: np.swapaxes(x, -1, -2),
         lambda random, x: {} if x.ndim >= 2 else None),
    Kind("flatten", lambda x: g.reshape(x, (-1,)), np.ravel, if_filled),
    Kind("merge", lambda x: g.reshape(x, (-1, *x.shape[2:])), lambda x: x.reshape(-1, *x.shape[2:]),
         lambda random, x: {} if x.ndim >= 2 and x.size else None),
    Kind("expand_dims", g.expand_dims, np.expand_dims,
         lambda random, x: {"axis": int(random.integers(-x.ndim - 1, x.ndim + 1))}),
    Kind("squeeze", g.squeeze, np.squeeze, lambda random, x: {"axis": x.shape.index(1)} if 1 in x.shape else None),
    Kind("flip", g.flip, np.flip, axis),
    Kind("roll", lambda x, axis: g.roll(x, 2, axis=axis), lambda x, axis: np.roll(x, 2, axis), axis),
    Kind("broadcast_to", lambda x: g.broadcast_to(x, (2, *x.shape)), lambda x: np.stack([x, x])),
    Kind("tile", lambda x: g.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
    Kind("repeat", lambda x, axis: g.repeat(x, 2, axis=axis), lambda x, axis: np.repeat(x, 2, axis), axis),
    Kind("pad", g.pad, lambda x, pad_width: np.pad(x, pad_width) if x.ndim else x, borders),
    Kind("concat", lambda x, y, axis: g.concat([x, y, x], axis=axis),
         lambda x, y, axis: np.concatenate([x, y, x], axis), together, 2),
    Kind("stack", lambda x, axis: g.stack([x, -x], axis=axis), lambda x, axis: np.stack([x, -x], axis), axis),
    Kind("getitem", lambda x, key: x[key], lambda x, key: x[key], slices),
    Kind("take", lambda x, indices, axis: g.take(x, indices, axis=axis), np.take, indices),
    Kind("take_along_axis", lambda x, axis: g.take_along_axis(x, g.argsort(x, axis=axis), axis=axis), np.sort,
         axis, edge=neighbours),
    Kind("tril", g.tril, np.tril, square_of, differs=True),
    Kind("triu", g.triu, np.triu, square_of, differs=True),
]  # fmt: skip

LINALG = [
    Kind("matmul", g.matmul, np.matmul, matrices, 2),
    Kind("gram", lambda x: g.matmul(x, g.matrix_transpose(x)), lambda x: np.einsum("...ij,...kj->...ik", x, x),
         lambda random, x: {} if x.ndim >= 2 else None, guards=("bounded",)),
    Kind("einsum", lambda x, y: g.einsum("...i,...i->...", x, y), lambda x, y: np.sum(x * y, -1),
         lambda random, x, y: broadcastable(random, x, y) if x.ndim and y.ndim else None, 2,
         ("bounded", None)),
]  # fmt: skip

CONTROL = [
    Kind("scan", our_scan, scan, rows, differs=True),
    Kind("cond", lambda x: g.cond(g.sum(x) > 0, lambda v: v * 2, lambda v: g.sin(v) - 2, x),
         lambda x: x * 2 if np.sum(x) > 0 else np.sin(x) - 2, edge=np.sum, jumps=True, differs=True),
    Kind("while_loop", our_while, while_loop, edge=from_two, jumps=True, differs=True),
    Kind("fori_loop", lambda x: g.fori_loop(0, 3, lambda i, v: g.sin(v) + x, x),
         lambda x: np.sin(np.sin(np.sin(x) + x) + x) + x, differs=True),
]  # fmt: skip

FAMILIES = (ELEMENTWISE, REDUCTIONS, MOVEMENT, LINALG, CONTROL)
KINDS = {kind.name: kind for family in FAMILIES for kind in family}
