"""A small model, and arrays for tests of the tape."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import graphs as g
from dynamic import tapes


def digest(arrays: list[Any]) -> str:
    told = [f"{np.asarray(a).shape} {np.asarray(a).dtype}".encode() + np.asarray(a).tobytes() for a in arrays]
    return hashlib.sha256(b"|".join(told)).hexdigest()[:16]


def model(dtype: Any = np.float32) -> tuple[dict[str, Any], Any, Any]:
    rng = np.random.default_rng(0)
    shapes = {"w": (3, 5), "b": (5,), "v": (5, 2), "scale": ()}
    params = {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    return params, rng.normal(size=(4, 3)).astype(dtype), np.array([0, 1, 1, 0])


def loss(params: dict[str, Any], x: Any, y: Any) -> Any:
    h = g.tanh(x @ params["w"] + params["b"]) * 2.0 - 0.5
    z = g.log_softmax((h * h / 3 + 1) @ params["v"] * params["scale"], axis=-1)
    return -g.mean(g.sum(z * g.one_hot(y, 2, dtype=z.dtype), axis=1)) + g.max(h) * 1e-2


def raises(gradient: Any) -> None:
    raise ZeroDivisionError


@contextmanager
def watched(tell: Callable[[Any], None]) -> Iterator[None]:
    tapes.watchers.append(tell)
    try:
        yield
    finally:
        tapes.watchers.remove(tell)


X, W, NAN = np.linspace(0.5, 1, 12).reshape(4, 3), np.linspace(0, 1, 9).reshape(3, 3), float("nan")
ZEROS, MODEL = np.zeros(3), model()
