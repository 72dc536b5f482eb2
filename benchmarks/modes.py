"""What is measured side by side: NumPy, careful and plain, both engines with their rungs, and the peers."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import dynamic
import static
from benchmarks import handwritten, plain
from benchmarks.rows import Row
from compare.errors import UnsupportedError
from static.passes import pipeline


class Mode(NamedTuple):
    """A training step on the values of a row, to be run in `context`; `arrays(step())` is `(loss, {name: array})`."""

    step: Callable[[], Any]
    arrays: Callable[[Any], Any] = lambda result: result
    context: AbstractContextManager[Any] = nullcontext()


def threads() -> int:
    """How many threads this process may use, as the variable of OpenMP says; 1 where it says nothing."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def _handwritten(row: Row) -> Mode:
    return Mode(partial(handwritten.build(row), row.params, *row.inputs))


def _plain(row: Row) -> Mode:
    if row.loss.__name__ not in plain.STEPS:
        raise UnsupportedError("nobody has written this step in plain NumPy")
    return Mode(partial(plain.STEPS[row.loss.__name__], row.params, *row.inputs))


def _static(row: Row, **options: Any) -> Mode:
    step = static.compile(static.value_and_grad(row.loss), row.params, *row.inputs, **options)
    return Mode(partial(step, row.params, *row.inputs))


def _native(row: Row) -> Mode:
    return _static(row, backend="native", threads=threads())


def _dynamic(row: Row) -> Mode:
    return Mode(partial(dynamic.value_and_grad(row.loss), row.params, *row.inputs))


def _pooled(row: Row) -> Mode:
    pool: Any = getattr(dynamic, "pool", None)
    if pool is None:
        raise UnsupportedError("this version has no dynamic.pool")
    return _dynamic(row)._replace(context=pool())


def _peer(module: str, function: str, row: Row) -> Mode:
    return getattr(import_module(f"benchmarks.peers.{module}"), function)(row)


MODES: dict[str, Callable[[Row], Mode]] = {
    "hand-written": _handwritten,
    "plain": _plain,
    "static-replay": partial(_static, passes=pipeline.REPLAY, arena=False),
    "static-simplify": partial(_static, passes=pipeline.SIMPLIFY, arena=False),
    "static-plan": partial(_static, passes=pipeline.SIMPLIFY),
    "static": _static,
    "static-native": _native,
    "dynamic": _dynamic,
    "dynamic-pool": _pooled,
    "torch": partial(_peer, "torch_steps", "op_by_op"),
    "torch-fused": partial(_peer, "torch_steps", "eager"),
    "torch.compile": partial(_peer, "torch_steps", "compiled"),
    "jax": partial(_peer, "jax_steps", "jitted"),
    "tf.function": partial(_peer, "tf_steps", "function"),
}
PEERS = ("torch", "torch-fused", "torch.compile", "jax", "tf.function")
