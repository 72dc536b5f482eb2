"""The programs to which the prices of the advice are fitted.

None is a workload, and each stresses a few terms. An engine with a slow compiler measures a few of them (`FEW`); an
engine that compiles in milliseconds measures all, with and without gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import graphs
from compare.workloads.base import Case

Params = dict[str, Any]
Array = Any


def chain(params: Params, x: Array) -> Array:
    """A loss of elementwise ops, one after the other."""
    for scale in params["scales"]:
        x = graphs.tanh(x * scale) + x / 3
    return graphs.mean(x)


def layers(params: Params, x: Array) -> Array:
    """A loss of matrix products, each with an activation."""
    for w, b in params["layers"]:
        x = graphs.tanh(x @ w + b)
    return graphs.mean(graphs.square(x))


def rows(params: Params, x: Array) -> Array:
    """A loss of row reductions, as in softmax and normalisation."""
    for gain in params["gains"]:
        centred = x - graphs.mean(x, axis=-1, keepdims=True)
        spread = graphs.sqrt(graphs.mean(graphs.square(centred), axis=-1, keepdims=True) + 1e-5)
        e = graphs.exp(centred / spread * gain)
        x = e / graphs.sum(e, axis=-1, keepdims=True) + x
    return graphs.mean(graphs.square(x))


def recurrent(params: Params, xs: Array) -> Array:
    """A loss of small products in a loop over the first axis, each followed by elementwise ops."""
    h = params["h"]
    for i in range(xs.shape[0]):
        h = graphs.tanh(h @ params["u"] + xs[i])
    return graphs.mean(graphs.square(h))


def branching(params: Params, x: Array) -> Array:
    """A loss in which Python branches on a value after each product."""
    for w in params["layers"]:
        x = graphs.tanh(x @ w)
        x = x * 2 if graphs.sum(x) < 1e6 else x / 2
    return graphs.mean(graphs.square(x))


def iterated_layer(params: Params, x: Array) -> Array:
    """A loss of one layer, repeated in a loop whose condition is a value that Python reads after each turn."""
    turns = params["most"]
    while turns > 0:
        x = graphs.tanh(x @ params["w"] + params["b"])
        turns = turns - 1
    return graphs.mean(graphs.square(x))


def attention(params: Params, x: Array) -> Array:
    """A loss of attention: products of projected rows, with a softmax between."""
    q, k, v = (x @ params[name] for name in "qkv")
    scores = q @ graphs.matrix_transpose(k) / 8
    e = graphs.exp(scores - graphs.max(scores, axis=-1, keepdims=True))
    return graphs.mean(graphs.square((e / graphs.sum(e, axis=-1, keepdims=True)) @ v))


def polynomial(params: Params, x: Array) -> Array:
    """A loss of cheap elementwise ops on two arrays."""
    for scale in params["scales"]:
        x = (x * scale + 0.5) * x - scale
    return graphs.sum(x)


def gated_rows(params: Params, x: Array) -> Array:
    """A loss of rows divided by 1 + their mean square, and scaled."""
    for scale in params["scales"]:
        x = x / (1 + graphs.mean(x * x, axis=-1, keepdims=True)) * scale
    return graphs.sum(graphs.abs(x))


def lookup_rows(params: Params, index: Array) -> Array:
    """A loss that looks rows up in a table, joins them with the table and classifies them."""
    h = graphs.concat([graphs.take(params["table"], index, axis=0), params["table"]], axis=1)
    return graphs.cross_entropy(h @ params["w"], index)


def reading(params: Params, index: Array) -> Array:
    """A loss that reads rows of a table in turn, attends over the rows read so far, and predicts the next index."""
    h, losses = params["table"][:1], []
    for i in range(index.shape[0] - 1):
        h = graphs.concat([h, graphs.take(params["table"], index[i : i + 1], axis=0)])
        mixed = graphs.softmax(h[-1] @ graphs.matrix_transpose(h)) @ h
        losses.append(graphs.take(graphs.log_softmax(mixed @ params["w"]), index[i + 1]))
    return -graphs.mean(graphs.stack(losses))


def many(params: Params) -> Array:
    """A loss with one short term for each of many parameters."""
    total = graphs.sum(params["arrays"][0])
    for x in params["arrays"][1:]:
        total = total + graphs.sum(x * x)
    return total


def convolution_net(params: Params, x: Array) -> Array:
    """A loss of convolutions, each with an activation, and max pooling."""
    for w in params["filters"]:
        x = graphs.relu(graphs.conv2d(x, w))
    return graphs.mean(graphs.max_pool2d(x, 2))


def _array(*shape: int) -> Array:
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) / max(1, shape[0] if len(shape) > 1 else 1) ** 0.5).astype(np.float32)


def _case(loss: Callable[..., Any], params: Params, *inputs: Array) -> Case:
    return Case(loss, params, (inputs,), (1,))


def _chain_case(ops: int, size: int, loss: Callable[..., Any] = chain) -> Case:
    return _case(loss, {"scales": [_array(1) for _ in range(ops)]}, _array(size))


def _scale_case(ops: int, *shape: int, loss: Callable[..., Any] = polynomial) -> Case:
    return _case(loss, {"scales": [_array(shape[-1]) for _ in range(ops)]}, _array(*shape))


def _layer_case(count: int, batch: int, width: int) -> Case:
    return _case(
        layers, {"layers": [(_array(width, width), _array(width)) for _ in range(count)]}, _array(batch, width)
    )


def _row_case(count: int, *shape: int) -> Case:
    return _case(rows, {"gains": [_array(shape[-1]) for _ in range(count)]}, _array(*shape))


def _recurrence_case(steps: int, width: int, *batch: int) -> Case:
    return _case(recurrent, {"u": _array(width, width), "h": _array(*batch, width)}, _array(steps, *batch, width))


def _attending(length: int, width: int) -> Case:
    return _case(attention, {name: _array(width, width) for name in "qkv"}, _array(length, width))


def _branch_case(count: int, batch: int, width: int) -> Case:
    case = _case(branching, {"layers": [_array(width, width) for _ in range(count)]}, _array(batch, width))
    return replace(case, branches=True)


def _iteration_case(most: int, batch: int, width: int) -> Case:
    params = {"w": _array(width, width), "b": _array(width), "most": np.float32(most)}
    return replace(_case(iterated_layer, params, _array(batch, width)), branches=True)


def _table_case(length: int, width: int) -> Case:
    params = {"table": _array(length, width), "w": _array(2 * width, length)}
    return _case(lookup_rows, params, np.arange(length))


def _read(length: int, rows: int, width: int) -> Case:
    params = {"table": _array(rows, width), "w": _array(width, rows)}
    return _case(reading, params, np.arange(length) * 7 % rows)


def _several(arrays: int, elements: int) -> Case:
    return _case(many, {"arrays": [_array(elements) for _ in range(arrays)]})


def _filter_case(batch: int, channels: int, side: int) -> Case:
    params = {"filters": [_array(channels, channels, 3, 3) for _ in range(2)]}
    return _case(convolution_net, params, _array(batch, channels, side, side))


def _table(make: Callable[..., Case], name: str, *shapes: tuple[int, ...], **options: Any) -> dict[str, Probe]:
    return {f"{name} {' × '.join(map(str, shape))}": partial(make, *shape, **options) for shape in shapes}


Probe = Callable[[], Case]
FEW: dict[str, Probe] = {
    "chain of 6, 64 floats": partial(_chain_case, 6, 64),
    "chain of 24, 1,024 floats": partial(_chain_case, 24, 1024),
    "chain of 12, 65,536 floats": partial(_chain_case, 12, 1 << 16),
    "chain of 6, 1,048,576 floats": partial(_chain_case, 6, 1 << 20),
    "2 layers of 32": partial(_layer_case, 2, 16, 32),
    "6 layers of 64": partial(_layer_case, 6, 32, 64),
    "3 layers of 512": partial(_layer_case, 3, 128, 512),
    "rows of 64": partial(_row_case, 2, 32, 64),
    "rows of 1,024": partial(_row_case, 3, 256, 1024),
    "8 steps of 32": partial(_recurrence_case, 8, 32, 8),
    "24 steps of 64": partial(_recurrence_case, 24, 64, 16),
    "2 branches, layers of 32": partial(_branch_case, 2, 16, 32),
    "5 branches, layers of 128": partial(_branch_case, 5, 64, 128),
    "attention over 64": partial(_attending, 64, 64),
    "attention over 256": partial(_attending, 256, 256),
}
"""The probes of an engine with a slow compiler."""
# The smallest come first: memory that a process has freed changes the cost of its next allocations.
MORE: dict[str, Probe] = {
    **_table(_scale_case, "polynomial", (1, 4), (6, 4), (20, 4)),
    **_table(_layer_case, "layers", (1, 2, 4), (5, 2, 4), (6, 1, 16)),
    **_table(_recurrence_case, "steps", (6, 4, 4), (9, 4), (12, 32, 4), (30, 64, 16), (40, 16)),
    **_table(_scale_case, "gated", (3, 4, 4), (4, 48, 32), (10, 64, 64), loss=gated_rows),
    **_table(_table_case, "table", (4, 3), (200, 16), (1000, 64)),
    **_table(_read, "reading", (2, 5, 4), (5, 30, 16), (12, 60, 64)),
    **_table(_several, "many", (10, 4), (100, 4), (20, 2000)),
    **_table(_iteration_case, "iterated", (4, 2, 4), (20, 8, 16), (12, 32, 64), (40, 4, 8)),
    **_table(_branch_case, "branches", (1, 2, 4), (4, 8, 16), (9, 4, 8)),
    **_table(_filter_case, "filters", (2, 4, 10), (8, 8, 14)),
    **_table(_scale_case, "polynomial", (8, 3000), (5, 20_000), (30, 20_000), (4, 100_000), (10, 300_000)),
    **_table(_layer_case, "layers", (3, 32, 64), (4, 256, 128), (2, 400, 100)),
    **_table(_scale_case, "gated", (6, 256, 256), loss=gated_rows),
    **_table(_several, "many", (10, 200_000)),
    **_table(_layer_case, "layers", (3, 300, 600)),
    **_table(_scale_case, "gated", (4, 2000, 500), loss=gated_rows),
    **_table(_scale_case, "polynomial", (4, 400_000)),
}
"""The further probes of an engine that compiles in milliseconds."""
ALL = {**MORE, **FEW}
