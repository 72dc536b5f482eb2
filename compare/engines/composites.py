"""Functions that a framework may lack, composed of others; control flow is Python's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Array = Any
Functions = dict[str, Callable[..., Any]]


def compose(of: Functions) -> Functions:
    """Return `of` and the functions that it lacks and that can be composed.

    The framework's own functions take priority.
    """
    all_: Functions = {**_PYTHON, **of}
    for name, make in _MAKERS.items():
        all_.setdefault(name, make(all_))
    return all_


def _cross_entropy(of: Functions) -> Callable[..., Array]:
    def cross_entropy(logits: Array, labels: Array) -> Array:
        chosen = of["take_along_axis"](of["log_softmax"](logits), of["expand_dims"](labels, -1))
        return -of["mean"](chosen)

    return cross_entropy


def _layer_norm(of: Functions) -> Callable[..., Array]:
    def layer_norm(x: Array, scale: Array, shift: Array, eps: float = 1e-5) -> Array:
        centred = x - of["mean"](x, axis=-1, keepdims=True)
        spread = of["sqrt"](of["mean"](centred * centred, axis=-1, keepdims=True) + eps)
        return centred / spread * scale + shift

    return layer_norm


def _attention(of: Functions) -> Callable[..., Array]:
    def attention(query: Array, key: Array, value: Array, mask: Array = None) -> Array:
        scores = query @ of["matrix_transpose"](key) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = of["where"](mask, scores, -math.inf)
        return of["softmax"](scores) @ value

    return attention


def _embedding(of: Functions) -> Callable[..., Array]:
    return lambda table, ids: of["take"](table, ids, axis=0)


def _softmax(of: Functions) -> Callable[..., Array]:
    return lambda x, axis=-1: of["exp"](of["log_softmax"](x, axis=axis))


def _silu(of: Functions) -> Callable[..., Array]:
    return lambda x: x * of["sigmoid"](x)


_MAKERS = {
    "silu": _silu,
    "softmax": _softmax,
    "cross_entropy": _cross_entropy,
    "layer_norm": _layer_norm,
    "attention": _attention,
    "embedding": _embedding,
}


def _cond(predicate: Any, then: Any, otherwise: Any, *operands: Any) -> Any:
    return then(*operands) if predicate else otherwise(*operands)


def _switch(index: Any, branches: Any, *operands: Any) -> Any:
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def _while_loop(test: Any, body: Any, state: Any) -> Any:
    while test(state):
        state = body(state)
    return state


def _fori_loop(low: int, high: int, body: Any, state: Any) -> Any:
    for i in range(low, high):
        state = body(i, state)
    return state


_PYTHON: Functions = {"cond": _cond, "switch": _switch, "while_loop": _while_loop, "fori_loop": _fori_loop}


def loop_scan(stack: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `scan` as a Python loop, for a framework that has none; `stack` joins the outputs."""

    def scan(step: Any, state: Any, xs: Any) -> Any:
        outputs = []
        for x in xs:
            state, output = step(state, x)
            outputs.append(output)
        return state, () if isinstance(outputs[0], tuple) and not outputs[0] else stack(outputs)

    return scan
