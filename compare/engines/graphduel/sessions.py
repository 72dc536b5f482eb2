"""A function whose graphs onnxruntime runs: what a graph is worth once it has left Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

import static
from compare.errors import UnsupportedError
from graphs import tree
from static.call.jit import Stats
from static.trace.tracing import is_traced, static_key

Run = Callable[[Sequence[Any]], Any]
FATAL = 4
"""The least that onnxruntime logs."""


class SessionFunction:
    """A function that is exported when a call is of a new kind, and run by an onnxruntime session from then on.

    A kind of call is its containers, shapes, dtypes and static values, as those of `static.jit` with exact shapes;
    `stats` counts as there. The session has one thread. A call raises UnsupportedError where ONNX, or onnxruntime for
    these dtypes, has not what the function needs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.stats = function, Stats()
        self._runs: dict[Hashable, Run] = {}

    def __call__(self, *args: Any) -> Any:
        """What the function returns, of arrays."""
        leaves, structure = tree.flatten(args)
        key = (structure, *map(_kind, leaves))
        if key not in self._runs:
            self._runs[key] = self._compiled(args)
        return self._runs[key]([leaf for leaf in leaves if is_traced(leaf)])

    def _compiled(self, args: tuple[Any, ...]) -> Run:
        start = time.perf_counter()
        structures: list[tree.Structure] = []

        def flat(*symbols: Any) -> list[Any]:
            leaves, structure = tree.flatten(self.function(*symbols))
            structures.append(structure)
            return leaves

        session = _session(flat, args)
        names = [place.name for place in session.get_inputs()]
        self.stats.compiles += 1
        self.stats.reasons.append("a call of a new kind" if self._runs else "first call")
        self.stats.compile_seconds += time.perf_counter() - start
        return lambda arrays: tree.unflatten(structures[-1], session.run(None, dict(zip(names, arrays, strict=True))))


def _kind(leaf: Any) -> Hashable:
    return (np.shape(leaf), np.asarray(leaf).dtype) if is_traced(leaf) else static_key(leaf)


def _session(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        import onnxruntime

        from static.exporting.writer import UnwritableError
    except ImportError as error:
        raise UnsupportedError(f"{error}; pip install 'graphduel[onnxruntime]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
    try:
        model = static.export(function, *args)
    except UnwritableError as error:
        raise UnsupportedError(str(error)) from None
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  (its errors have no base of their own, and say which op it has not)
        raise UnsupportedError(f"onnxruntime refuses the graph: {error}") from None
