"""The leaves of arguments: a function is compiled for arrays as inputs, and specialised to all other values.

A framework calls the Python function only when it traces it. The arguments of each trace then tell why it happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar

import numpy as np
import optree

from compare.engines.containers import named_parts
from compare.engines.step import Bindable, BoundCall, Compilation, Function, Observations, as_it_is
from compare.errors import UnsupportedError
from graphs import tree

FIRST = "the first call"
OTHER = "other containers, or another number of leaves in them"
AGAIN = "arguments that it was traced for before"
STATIC = "containers with other static fields"
MOST = 3
"""The most differences that a reason names."""
LONGEST = 40
"""The most characters of a value that a reason shows."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, Enum, np.dtype, range, type(...))


class Leaves:
    """The way in which a framework takes arguments apart; here one that finds the arrays in them by itself.

    `remedy` tells what to do about a value that is neither an array nor a constant. With `unwraps`, messages name the
    line and the parameters of the wrapped function.
    """

    remedy, unwraps = "make it a NamedTuple, a dict or what the framework takes apart", False

    def flatten(self, args: Any) -> tuple[list[Any], Any]:
        """Return the leaves and their structure."""
        return optree.tree_flatten(args, none_is_leaf=True)

    def unflatten(self, structure: Any, leaves: Sequence[Any]) -> Any:
        """Return the structure with other leaves."""
        return optree.tree_unflatten(structure, leaves)

    def paths(self, args: Any) -> list[str]:
        """Return the path of each leaf, beginning with the argument's number: `0['w']`."""
        return [
            f"{path[0]}{''.join(f'[{key!r}]' for key in path[1:])}"
            for path in optree.tree_paths(args, none_is_leaf=True)
        ]

    def is_traced(self, leaf: Any) -> bool:
        """Return whether the framework traces a leaf; it specialises to an unhashable one, which it cannot look up."""
        return type(leaf).__hash__ is not None or hasattr(leaf, "dtype") or hasattr(leaf, "__tf_flatten__")

    def decides(self, function: Function, args: Any) -> bool:
        """Return whether the function branches on a Python number, which then must be a constant."""
        return False

    def parted(self, value: Any) -> tuple[Any, Function]:
        """Return the part of a result that a trace may return, and a function that makes the whole result from it."""
        return value, as_it_is


@dataclass
class Trace:
    """One trace of a function: the path and description of each leaf, the seconds, and the structure."""

    paths: Sequence[str]
    leaves: Sequence[str]
    seconds: float
    structure: Any = None


class SpecialisedFunction(Bindable):
    """A function compiled once for each structure of its arguments and each value of the leaves that are not traced.

    Where every leaf is traced, the framework's compiled function gets the user's arguments unchanged, else the arrays
    in them. `compile_(function, owners)` compiles; `owners` is the number of the user's argument for each argument of
    the function. `latest` is the last trace in this process, of any function. Messages name the arguments as `written`
    does.
    """

    latest: ClassVar[Trace | None] = None

    def __init__(self, function: Function, compile_: Function, leaves: Leaves, written: Function | None = None) -> None:
        self.function, self.compile, self.leaves = function, compile_, leaves
        self.written = written or function
        self.made: dict[Any, Any] = {}
        self.traces: list[Trace] = []
        self.fixes_numbers: bool | None = None
        self.whole: dict[Any, Function] = {}

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the function compiled for these arguments to the arrays among them."""
        leaves, structure = self.leaves.flatten(args)
        if self.fixes_numbers is None:
            self.fixes_numbers = self.leaves.decides(self.function, args)
        at = [i for i, leaf in enumerate(leaves) if self._is_traced(leaf)]
        if len(at) == len(leaves):
            return self._call(None, partial(self._compiled(None, self.function, range(len(args))), *args))
        constants = {i: leaf for i, leaf in enumerate(leaves) if not self._is_traced(leaf)}
        paths = self.leaves.paths(args)
        key = (structure, tuple(at), tuple(self._key(paths[i], leaf) for i, leaf in constants.items()))

        def whole(*arrays: Any) -> Any:
            placed = {**constants, **dict(zip(at, arrays, strict=True))}
            return self.function(*self.leaves.unflatten(structure, [placed[i] for i in range(len(placed))]))

        described = {path: _describe_leaf(leaf) for path, leaf in zip(paths, leaves, strict=True)}
        traced = [paths[i] for i in at]
        owners = list(map(_argument, traced))
        return self._call(key, partial(self._compiled(key, whole, owners, described, traced), *(leaves[i] for i in at)))

    def _call(self, key: Any, run: Callable[[], Any]) -> BoundCall:
        """Bind a call whose result has the arrays that a run returned, and the parts that are no arrays."""

        def result(returned: Any) -> Any:
            again: Function = self.whole.get(key, as_it_is)  # which the run, if it traces, has just set
            return again(returned)

        return BoundCall(run, result)

    def _is_traced(self, leaf: Any) -> bool:
        is_number = isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic)
        return self.leaves.is_traced(leaf) and not (self.fixes_numbers and is_number)

    def _compiled(
        self,
        key: Any,
        whole: Function,
        owners: Sequence[int],
        constants: dict[str, str] | None = None,
        traced: Sequence[str] = (),
    ) -> Function:
        if key not in self.made:

            def run(*args: Any) -> Any:
                start = time.perf_counter()
                structure = key and key[0]
                if constants is None:
                    leaves, structure = self.leaves.flatten(args)
                    now = dict(zip(self.leaves.paths(args), map(_describe_leaf, leaves), strict=True))
                else:
                    now = constants | dict(zip(traced, map(_describe_leaf, args), strict=True))
                try:
                    value, self.whole[key] = self.leaves.parted(whole(*args))
                    return value
                finally:
                    SpecialisedFunction.latest = Trace([*now], [*now.values()], time.perf_counter() - start, structure)
                    self.traces.append(SpecialisedFunction.latest)

            if constants is None and self.leaves.unwraps:
                vars(run)["__wrapped__"] = self.written
            self.made[key] = self.compile(run, owners)
        made: Function = self.made[key]
        return made

    def _key(self, path: str, leaf: Any) -> Any:
        """Return the key of a constant leaf. Raises UnsupportedError for a leaf that has none."""
        key = constant(leaf)
        if key is None:
            number, rest = _argument(path), path.lstrip("0123456789")
            name = tree.argument_names(self.written, number + 1)[number]
            raise UnsupportedError(
                f"`{name}{rest}` is a {type(leaf).__name__}, not an array, a container or a plain value; "
                f"{self.leaves.remedy}"
            )
        return key

    def observed(self) -> Observations:
        """Return one compilation per trace, with its reason and its seconds."""
        return Observations(
            [Compilation(reason, trace.seconds) for reason, trace in zip(self.reasons(), self.traces, strict=True)]
        )

    def reasons(self) -> Iterator[str]:
        """Yield the reason of each trace."""
        for number, trace in enumerate(self.traces):
            yield reason_of(trace, self.traces[:number])


def trace_of(leaves: Leaves, args: Any, seconds: float = 0.0) -> Trace:
    """Return the trace that these arguments ask for, as a framework takes them apart."""
    values, structure = leaves.flatten(args)
    return Trace(leaves.paths(args), list(map(_describe_leaf, values)), seconds, structure)


def reason_of(trace: Trace, earlier: Sequence[Trace]) -> str:
    """Return the reason of a trace: how its arguments differ from those of the most similar trace before."""
    alike = [before for before in earlier if before.paths == trace.paths]
    differences = min((_differences(before, trace) for before in alike), key=len, default=[])
    if alike and not differences and all(before.structure != trace.structure for before in alike):
        return STATIC
    more = f", and {len(differences) - MOST} more" if len(differences) > MOST else ""
    listed = ", ".join(differences[:MOST]) + more if differences else AGAIN
    return listed if alike else OTHER if earlier else FIRST


def _argument(path: str) -> int:
    """Return the number of the argument in which a path begins."""
    return int(path.partition("[")[0].partition(".")[0])


def constant(leaf: Any) -> Any:
    """Return a key for a plain value, equal for values that a function cannot tell apart; None for other values.

    Functions are plain, and so are slices, and dataclasses and containers of plain values.
    """
    if isinstance(leaf, _PLAIN):
        return type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf
    if callable(leaf):
        return _Same(leaf)
    if isinstance(leaf, slice):
        return slice, *map(constant, (leaf.start, leaf.stop, leaf.step))
    parts = named_parts(leaf)
    if parts is None and isinstance(leaf, (list, tuple, set, frozenset)):
        parts = dict(enumerate(leaf))
    if parts is None:
        return None
    keys = [(constant(name), constant(part)) for name, part in parts.items()]
    return None if any(key is None for pair in keys for key in pair) else (type(leaf), *keys)


class _Same:
    """A key that equals only itself; it keeps the value alive, so that no other object gets its id."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _describe_leaf(leaf: Any) -> str:
    """Return `float32[2, 3]` for an array, the repr of a plain value, and the class name of any other."""
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if dtype is not None and shape is not None:
        number = " of a number" if getattr(leaf, "weak_type", False) else ""
        return f"{getattr(dtype, 'name', dtype)}{list(shape)}{number}"
    said = repr(leaf) if constant(leaf) is not None and not callable(leaf) else type(leaf).__name__
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def _differences(before: Trace, now: Trace) -> list[str]:
    """Return `argument 1: float32[2, 3] before, float32[5, 3] now` for each leaf that differs."""
    rows = zip(now.paths, before.leaves, now.leaves, strict=True)
    return [f"argument {path}: {was} before, {is_} now" for path, was, is_ in rows if was != is_]
