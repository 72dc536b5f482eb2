"""Watching every array that the dynamic engine makes, without changing how long it lives.

`dispatch.observed` sends ops the long way round, on which operands live a little longer than they do where nobody
looks. Here the engine's compiled loops, generated code and chains run as ever; only the kernels that they hold are
seen.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

import numpy as np

import dynamic
from dynamic import native
from dynamic.learned import Chain
from graphs import dispatch

T = TypeVar("T")
Tell = Callable[[np.ndarray[Any, Any]], None]
_KINDS = (np.ufunc, FunctionType, BuiltinFunctionType)
_WRITTEN_IN = str(Path(dynamic.__file__).parent / "<")
"""How the names of files begin that the engine's generated functions are said to be from."""


@contextmanager
def watched(tell: Tell) -> Iterator[None]:
    """Tell of each array that a kernel has made, inside the block; functions that exist already are watched."""

    def observer(_op: Any, _arrays: Any, _attrs: Any, out: Any) -> None:
        tell(out)

    gc.unfreeze()  # what is frozen is not listed
    spaces = [one.__globals__ for one in _all(FunctionType) if one.__code__.co_filename.startswith(_WRITTEN_IN)]
    chains = [chain.links for chain in _all(Chain)]
    before, links = [dict(space) for space in spaces], [list(chain) for chain in chains]
    for space in spaces:
        space.update({name: _telling(value, tell) for name, value in space.items() if _makes_arrays(name, value)})
    for chain in chains:
        chain[:] = [link._replace(kernel=_telling(link.kernel, tell)) for link in chain]
    native.watchers.append(tell)
    try:
        with dispatch.observed(observer, detour=False):
            yield
    finally:
        native.watchers.remove(tell)
        for space, values in zip(spaces, before, strict=True):
            space.update(values)
        for chain, unwatched in zip(chains, links, strict=True):
            chain[:] = unwatched


def _all(kind: type[T]) -> list[T]:
    return [one for one in gc.get_objects() if type(one) is kind]


def _makes_arrays(name: str, value: Any) -> bool:
    """Whether this is something that may return a new array."""
    own = isinstance(value, FunctionType) and value.__code__.co_filename.startswith(_WRITTEN_IN)
    return isinstance(value, _KINDS) and not own and name != "new"


def _telling(kernel: Any, tell: Tell) -> Any:
    @functools.wraps(kernel)
    def told(*args: Any, **options: Any) -> Any:
        out = kernel(*args, **options)
        if type(out) is np.ndarray:
            tell(out)
        return out

    return told
