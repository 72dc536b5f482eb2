"""Programs that the model of a framework is calibrated on: none is a workload, and each stresses a few terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import graphs

Params = dict[str, Any]


class Probe(NamedTuple):
    """A loss of parameters and data, over `graphs`, and the arguments that it is run on."""

    loss: Callable[..., Any]
    args: tuple[Any, ...]


def chain(params: Params, x: Any) -> Any:
    """Elementwise ops, one after the other."""
    for scale in params["scales"]:
        x = graphs.tanh(x * scale) + x / 3
    return graphs.mean(x)


def layers(params: Params, x: Any) -> Any:
    """Products, each with an activation."""
    for w, b in params["layers"]:
        x = graphs.tanh(x @ w + b)
    return graphs.mean(graphs.square(x))


def rows(params: Params, x: Any) -> Any:
    """Reductions of rows, as in a softmax and a normalisation."""
    for gain in params["gains"]:
        centred = x - graphs.mean(x, axis=-1, keepdims=True)
        spread = graphs.sqrt(graphs.mean(graphs.square(centred), axis=-1, keepdims=True) + 1e-5)
        e = graphs.exp(centred / spread * gain)
        x = e / graphs.sum(e, axis=-1, keepdims=True) + x
    return graphs.mean(graphs.square(x))


def recurrent(params: Params, xs: Any) -> Any:
    """Small products in a loop over the first axis, each with an elementwise tail."""
    h = params["h"]
    for i in range(xs.shape[0]):
        h = graphs.tanh(h @ params["u"] + xs[i])
    return graphs.mean(graphs.square(h))


def branching(params: Params, x: Any) -> Any:
    """A value that Python decides by, after each product."""
    for w in params["layers"]:
        x = graphs.tanh(x @ w)
        x = x * 2 if graphs.sum(x) < 1e6 else x / 2
    return graphs.mean(graphs.square(x))


def attention(params: Params, x: Any) -> Any:
    """Products of what has been turned, with a softmax between."""
    q, k, v = (x @ params[name] for name in "qkv")
    scores = q @ graphs.matrix_transpose(k) / 8
    e = graphs.exp(scores - graphs.max(scores, axis=-1, keepdims=True))
    return graphs.mean(graphs.square((e / graphs.sum(e, axis=-1, keepdims=True)) @ v))


def _probes() -> dict[str, Probe]:
    rng = np.random.default_rng(7)

    def array(*shape: int) -> Any:
        return (rng.standard_normal(shape) / max(1, shape[0] if len(shape) > 1 else 1) ** 0.5).astype(np.float32)

    def chained(ops: int, size: int) -> Probe:
        return Probe(chain, ({"scales": [array(1) for _ in range(ops)]}, array(size)))

    def layered(count: int, batch: int, width: int) -> Probe:
        return Probe(
            layers, ({"layers": [(array(width, width), array(width)) for _ in range(count)]}, array(batch, width))
        )

    def rowed(count: int, *shape: int) -> Probe:
        return Probe(rows, ({"gains": [array(shape[-1]) for _ in range(count)]}, array(*shape)))

    def recurred(steps: int, batch: int, width: int) -> Probe:
        return Probe(recurrent, ({"u": array(width, width), "h": array(batch, width)}, array(steps, batch, width)))

    def attending(length: int, width: int) -> Probe:
        return Probe(attention, ({name: array(width, width) for name in "qkv"}, array(length, width)))

    def branched(count: int, batch: int, width: int) -> Probe:
        return Probe(branching, ({"layers": [array(width, width) for _ in range(count)]}, array(batch, width)))

    return {
        "chain of 6, 64 floats": chained(6, 64),
        "chain of 24, 1,024 floats": chained(24, 1024),
        "chain of 12, 65,536 floats": chained(12, 1 << 16),
        "chain of 6, 1,048,576 floats": chained(6, 1 << 20),
        "2 layers of 32": layered(2, 16, 32),
        "6 layers of 64": layered(6, 32, 64),
        "3 layers of 512": layered(3, 128, 512),
        "rows of 64": rowed(2, 32, 64),
        "rows of 1,024": rowed(3, 256, 1024),
        "8 steps of 32": recurred(8, 8, 32),
        "24 steps of 64": recurred(24, 16, 64),
        "2 branches, layers of 32": branched(2, 16, 32),
        "5 branches, layers of 128": branched(5, 64, 128),
        "attention over 64": attending(64, 64),
        "attention over 256": attending(256, 256),
    }  # fmt: skip


PROBES = _probes()
"""By what they are called."""
