"""Made-up programs that a machine is calibrated on. No workload is among them: those are for the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import graphs as g
import static
from graphs.errors import GraphError
from graphs.ir import Graph, Node
from graphs.op import Op, registered
from graphs.spec import TensorSpec

Array = Any
SIZES = (1, 1000, 15_000, 120_000, 1_000_000)
"""Elements of the arrays that kernels are timed on: no powers of two, whose arrays share the sets of a cache."""
SIDES = (4, 16, 64, 160, 512)
"""Of square products."""
TOUCHED = tuple(1 << exponent for exponent in range(18, 28))
"""Bytes that are touched in turn."""
PIECE = 15_000
"""Elements of the arrays that this is done in."""
LANE = 1000
"""The length of the rows that reductions are timed on, where there are as many elements."""


class Synthetic(NamedTuple):
    """A loss `f(params, *inputs)` with values."""

    f: Callable[..., Any]
    params: Any
    inputs: tuple[Any, ...] = ()


def kernels() -> Iterator[Graph]:
    """Graphs whose nodes are timed one by one: every elementwise op and reduction, and ops of the other families."""
    for size in SIZES:
        for op in registered().values():
            yield from _elementwise(op, size)
        lane = min(size, LANE)
        yield from _traced(_reductions, TensorSpec((size // lane, lane), "float32"))
        yield from _traced(_moves, TensorSpec((max(2, size // 64), 64), "float32"))
    for side in SIDES:
        yield from _traced(_product, *[TensorSpec((side, side), "float32")] * 2)
        yield from _traced(_convolved, TensorSpec((2, 8, side // 4 + 3, side // 4 + 3), "float32"), _FILTERS)


def thin_products() -> Iterator[tuple[float, Graph]]:
    """Products that are bound by the bytes of the first matrix, with its elements."""
    for side in (4, 64, 512, 3072):
        specs = TensorSpec((side, side), "float32"), TensorSpec((side, 4), "float32")
        yield side * side, next(_traced(_product, *specs))


def vector_products() -> Iterator[tuple[float, Graph]]:
    """Products of a matrix and a vector, with the elements of the matrix."""
    for side in (4, 64, 512, 2048):
        yield side * side, next(_traced(_product, TensorSpec((side, side), "float32"), TensorSpec((side,), "float32")))


def short_rows() -> Node:
    """An op whose innermost loop is short."""
    return next(static.trace(g.add, TensorSpec((8192, 8), "float32"), TensorSpec((8,), "float32")).calls)


def short_lanes() -> Node:
    """A sum of many short rows."""
    return next(static.trace(lambda x: g.sum(x, axis=1), TensorSpec((8192, 4), "float32")).calls)


def tiny() -> list[Synthetic]:
    """Steps with next to no arithmetic, so that what they take is the engine's."""
    made = [chain(depth, 4) for depth in (1, 6, 20)]
    made += [perceptron(layers, 4, 2) for layers in (1, 5)]
    made += [recurrent(6, 4), recurrent(9, 4, ()), normalised(3, 4, 4)]
    return [*made, many(10, 4), looked_up(4, 3)]


def larger() -> list[Synthetic]:
    """Steps between tiny and large, on which the prediction is checked, by what they hold."""
    small = [chain(8, 3000), recurrent(12, 32), normalised(4, 32, 48), looked_up(200, 16), perceptron(3, 64, 32)]
    return [*small, many(20, 2000), chain(5, 20_000), chain(4, 100_000), perceptron(2, 100, 400), chain(4, 400_000)]


def chain(depth: int, elements: int) -> Synthetic:
    """Elementwise ops, one after another."""

    def f(params: dict[str, Array]) -> Array:
        h = params["x"]
        for _ in range(depth):
            h = g.sin(h) * params["a"] + h * 0.5
        return g.sum(h)

    return Synthetic(f, {"x": _values(elements), "a": _values(elements)})


def perceptron(layers: int, width: int, batch: int) -> Synthetic:
    """Products with a bias and a sigmoid."""

    def f(params: list[tuple[Array, Array]], x: Array) -> Array:
        for w, b in params:
            x = g.sigmoid(x @ w + b)
        return g.mean(x)

    return Synthetic(f, [(_values(width, width), _values(width)) for _ in range(layers)], (_values(batch, width),))


def normalised(layers: int, width: int, batch: int) -> Synthetic:
    """Rows divided by their own mean, scaled."""

    def f(params: list[Array], x: Array) -> Array:
        for scale in params:
            x = x / (1 + g.mean(x * x, axis=-1, keepdims=True)) * scale
        return g.sum(g.abs(x))

    return Synthetic(f, [_values(width) for _ in range(layers)], (_values(batch, width),))


def recurrent(steps: int, width: int, batch: tuple[int, ...] = (4,)) -> Synthetic:
    """A state that each row of the input changes; vectors where there is no batch."""

    def f(params: dict[str, Array], xs: Array) -> Array:
        h = xs[0]
        for t in range(steps):
            h = g.tanh(xs[t] + h @ params["u"])
        return g.sum(h * h)

    return Synthetic(f, {"u": _values(width, width)}, (_values(steps, *batch, width),))


def looked_up(rows: int, width: int) -> Synthetic:
    """Rows of a table, put beside each other and classified."""

    def f(params: dict[str, Array], index: Array) -> Array:
        h = g.concat([g.take(params["table"], index, axis=0), params["table"]], axis=1)
        return g.cross_entropy(h @ params["w"], index)

    values = {"table": _values(rows, width), "w": _values(2 * width, rows)}
    return Synthetic(f, values, (np.arange(rows),))


def many(arrays: int, elements: int) -> Synthetic:
    """One op for each of many parameters."""

    def f(params: list[Array]) -> Array:
        total = g.sum(params[0])
        for x in params[1:]:
            total = total + g.sum(x * x)
        return total

    return Synthetic(f, [_values(elements) for _ in range(arrays)])


_FILTERS = TensorSpec((8, 8, 3, 3), "float32")


def _values(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.1, 0.9, shape).astype(np.float32)


def _elementwise(op: Op, size: int) -> Iterator[Graph]:
    if op.family != "elementwise":
        return
    for dtype in ("float32", "int32", "bool"):
        first = "bool" if op.name == "where" else dtype
        specs = [TensorSpec((size,), first if i == 0 else dtype) for i in range(op.arity or 1)]
        found = list(_traced(op, *specs))
        if found:
            yield from found
            return


def _traced(f: Callable[..., Any], *specs: TensorSpec) -> Iterator[Graph]:
    """The graph of `f`, if it takes such values."""
    try:
        yield static.trace(f, *specs)
    except (GraphError, TypeError):
        return


def _reductions(x: Array) -> Any:
    yes = x > 0.5
    values = [op(x, axis=axis) for op in (g.sum, g.mean, g.prod, g.max, g.min, g.argmax, g.argmin) for axis in (0, 1)]
    sums = [op(x, axis=axis) for op in (g.cumulative_sum, g.cumulative_prod) for axis in (0, 1)]
    return [*values, *sums, *(op(yes, axis=axis) for op in (g.any, g.all) for axis in (0, 1))]


def _moves(x: Array) -> Any:
    index = np.zeros(x.shape[0], np.int64)

    def loss(x: Array) -> Array:
        picked = g.take_along_axis(x, np.zeros((x.shape[0], 1), np.int64), axis=1)
        parts = [x[1:], g.take(x, index, axis=0), g.concat([x, x]), g.pad(x, 1), g.roll(x, 1, axis=0), picked]
        return sum(g.sum(part) for part in parts)

    whole = [g.astype(x, "float64"), g.permute_dims(x, (1, 0)), g.reshape(x, (-1,)), g.full(x.shape, 1.0)]
    return static.value_and_grad(loss)(x), whole


def _product(x: Array, y: Array) -> Array:
    return x @ y


def _convolved(x: Array, w: Array) -> Any:
    return static.value_and_grad(lambda w, x: g.sum(g.max_pool2d(g.conv2d(x, w), 2)), (0, 1))(w, x)
