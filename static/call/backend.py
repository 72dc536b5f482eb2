"""The backend that compiles a graph: NumPy's kernels, native code, or native code where it is available."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphs.errors import GraphError, warn
from graphs.ir import Graph
from static.codegen import binding, lowering
from static.codegen.binding import Binding
from static.codegen.lowering import LoweredGraph
from static.memory.schedule import schedule
from static.passes import pipeline

NAMES = ("numpy", "native", "auto")


class Backend(NamedTuple):
    """A backend: its default passes, `lower(graph, arena)`, and a function that binds the program to sizes.

    `shown` turns the kernels of a binding into kernels that can be read.
    """

    name: str
    passes: Sequence[pipeline.Pass]
    lower: Callable[[Graph, bool], LoweredGraph]
    bind: Callable[..., Binding]
    shown: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple


def _lower(graph: Graph, arena: bool) -> LoweredGraph:
    return lowering.lower(graph, schedule(graph), arena)


NUMPY = Backend("numpy", pipeline.DEFAULT, _lower, binding.bind)


class FallbackWarning(UserWarning):
    """Native code is not available here, so NumPy's kernels run."""


_told: set[str] = set()


def check_options(name: str, threads: int | str, fast_math: bool = False) -> None:
    """Raise GraphError for an unknown backend, and for threads or fast math that it cannot have."""
    if name not in NAMES:
        raise GraphError(f"there is no backend {name!r}; use one of {', '.join(map(repr, NAMES))}")
    if threads != "all" and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise GraphError(f"threads is 1 or more, or 'all', not {threads!r}")
    if name == "numpy" and threads != 1:
        raise GraphError(f"threads={threads!r} is of native code; use backend='native', or leave it out")
    if name == "numpy" and fast_math:
        raise GraphError("fast_math is of native code; use backend='native', or leave it out")


def choose_backend(name: str, threads: int | str = 1, fast_math: bool = False) -> Backend:
    """Return the backend of this name, for this number of threads, with short forms of some functions if asked for.

    Raises GraphError as `check_options` does, and NativeError where native code is not available.
    """
    check_options(name, threads, fast_math)
    if name == "numpy":
        return NUMPY
    try:
        return _native(threads, fast_math)
    except GraphError as error:
        if name == "native":
            raise
        if str(error) not in _told:
            _told.add(str(error))
            warn(f"NumPy's kernels run instead of native code: {error}", FallbackWarning)
        return NUMPY


def _native(threads: int | str, fast_math: bool) -> Backend:
    from static.native import binding, functions, layouts, pool, program, target
    from static.native import binding as native

    target.host()
    layouts.check_layout()
    bind = functools.partial(native.bind, threads=pool.count(threads))
    passes: Any = pipeline.SIMPLIFY + pipeline.RESTRUCTURE + pipeline.SIMPLIFY + pipeline.CLEAN

    def lower(graph: Graph, arena: bool) -> LoweredGraph:
        return program.lower(pipeline.apply(functions.with_fast_math, graph) if fast_math else graph, arena)

    return Backend("native", passes, lower, bind, binding.kernels_of)
