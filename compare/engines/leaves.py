"""Arguments taken apart: arrays go into a compiled function, and it is specialised to all else.

A framework calls the function when it traces it, and never afterwards: what it is called with then tells why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import optree

from compare.engines.step import Bindable, BoundCall, Compilation, Observed

FIRST = "the first call"
OTHER = "other containers, or another number of leaves in them"
AGAIN = "arguments that it was traced for before"
MOST = 3
"""Differences that a reason names."""


@dataclass
class Trace:
    """One time that a function was traced: its arguments, arrays as (dtype, shape), and the seconds that it took."""

    structure: Any
    leaves: list[Any]
    seconds: float


class Specialised(Bindable):
    """A function compiled once for each structure of its arguments and each value in them that is no array.

    `latest` is what was traced last in this process, by whichever.
    """

    latest: ClassVar[Trace | None] = None

    def __init__(self, function: Callable[..., Any], compile_: Callable[..., Any], array: type) -> None:
        self.function = function
        self.compile = compile_
        self.array = array
        self.made: dict[Any, Any] = {}
        self.traces: list[Trace] = []

    def bind(self, *args: Any) -> BoundCall:
        """The call of what is compiled for these arguments, on the arrays among them."""
        arguments: Any = args
        leaves, structure = optree.tree_flatten(arguments, none_is_leaf=True)
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, self.array)]
        static = [None if isinstance(leaf, self.array) else leaf for leaf in leaves]
        key = (structure, tuple(at), tuple(map(repr, static)))
        if key not in self.made:
            self.made[key] = self.compile(self._of_arrays(static, structure, at))
        return BoundCall(partial(self.made[key], *(leaves[i] for i in at)))

    def _of_arrays(self, static: list[Any], structure: Any, at: list[int]) -> Callable[..., Any]:
        def run(*arrays: Any) -> Any:
            start = time.perf_counter()
            leaves, specs = list(static), list(static)
            for i, array in zip(at, arrays, strict=True):
                leaves[i], specs[i] = array, Spec(array.dtype, array.shape)
            result = self.function(*optree.tree_unflatten(structure, leaves))
            Specialised.latest = Trace(structure, specs, time.perf_counter() - start)
            self.traces.append(Specialised.latest)
            return result

        return run

    def observed(self) -> Observed:
        """A compilation for each trace, with its reason and seconds."""
        return Observed(
            [Compilation(reason, trace.seconds) for reason, trace in zip(self.reasons(), self.traces, strict=True)]
        )

    def reasons(self) -> Iterator[str]:
        """Why the function was traced each time: in what its arguments differ from the likest ones before."""
        for number, trace in enumerate(self.traces):
            earlier = self.traces[:number]
            alike = [_differences(before, trace) for before in earlier if before.structure == trace.structure]
            yield _listed(min(alike, key=len)) if alike else OTHER if earlier else FIRST


@dataclass(frozen=True)
class Spec:
    """What an array is: `float32[2, 3]`."""

    dtype: Any
    shape: Any

    def __repr__(self) -> str:
        return f"{getattr(self.dtype, 'name', self.dtype)}{list(self.shape)}"


def _differences(before: Trace, now: Trace) -> list[str]:
    """`argument 1: float32[2, 3] before, float32[5, 3] now` for each leaf that differs."""
    pairs = zip(optree.treespec_paths(now.structure), before.leaves, now.leaves, strict=True)
    return [f"{_place(path)}: {was!r} before, {is_!r} now" for path, was, is_ in pairs if repr(was) != repr(is_)]


def _place(path: Sequence[Any]) -> str:
    number, *keys = path
    return f"argument {number}" + "".join(f"[{key!r}]" for key in keys)


def _listed(differences: list[str]) -> str:
    more = f", and {len(differences) - MOST} more" if len(differences) > MOST else ""
    return ", ".join(differences[:MOST]) + more if differences else AGAIN
