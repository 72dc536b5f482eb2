"""What a function is compiled for: arrays go into it, and it is specialised to all else.

A framework calls the function when it traces it, and never afterwards: what it is called with then tells why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Protocol

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
"""Differences that a reason names."""
LONGEST = 40
"""Characters of a value that a reason shows."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, Enum, np.dtype, range, type(...))


class Leaves(Protocol):
    """How a framework takes arguments apart.

    `remedy` is what to do about a value that it has no place for. One that `unwraps` names the line and the parameters
    of what a function wraps.
    """

    remedy: str
    unwraps: bool

    def flatten(self, args: Any) -> tuple[list[Any], Any]:
        """The leaves, and what they lie in."""

    def unflatten(self, structure: Any, leaves: Sequence[Any]) -> Any:
        """The same with other leaves."""

    def paths(self, args: Any) -> list[str]:
        """The place of each leaf: `0['w']`, its argument first."""

    def is_traced(self, leaf: Any) -> bool:
        """Whether the framework traces it, and is not specialised to it."""

    def decides(self, function: Function, args: Any) -> bool:
        """Whether the function decides on a number of Python's, which then is a constant."""

    def parted(self, value: Any) -> tuple[Any, Function]:
        """Of what a function gives what a trace may give, and what makes the whole of that again."""


class Everything:
    """Leaves of a framework that is given arguments as they are, and knows by itself what is an array in them."""

    remedy, unwraps = "make it a NamedTuple, a dict or what the framework takes apart", False

    def flatten(self, args: Any) -> tuple[list[Any], Any]:
        """See the base."""
        return optree.tree_flatten(args, none_is_leaf=True)

    def unflatten(self, structure: Any, leaves: Sequence[Any]) -> Any:
        """See the base."""
        return optree.tree_unflatten(structure, leaves)

    def paths(self, args: Any) -> list[str]:
        """See the base."""
        return [
            f"{path[0]}{''.join(f'[{key!r}]' for key in path[1:])}"
            for path in optree.tree_paths(args, none_is_leaf=True)
        ]

    def is_traced(self, leaf: Any) -> bool:
        """What is a constant the framework says; but for what it could not find again, such as most dataclasses."""
        return type(leaf).__hash__ is not None or hasattr(leaf, "dtype") or hasattr(leaf, "__tf_flatten__")

    def decides(self, function: Function, args: Any) -> bool:
        """No number is traced."""
        return False

    def parted(self, value: Any) -> tuple[Any, Function]:
        """All: what a trace may not give, the framework says."""
        return value, as_it_is


@dataclass
class Trace:
    """One time that a function was traced: the place of each leaf and what it was, and the seconds that it took.

    `structure` is what the leaves lie in.
    """

    paths: Sequence[str]
    leaves: Sequence[str]
    seconds: float
    structure: Any = None


class SpecialisedFunction(Bindable):
    """A function compiled once for each structure of its arguments and each value in them that is not traced.

    Where all is traced the framework's own function is given the arguments as the user gives them. `latest` is what was
    traced last in this process, by whichever. Messages name the arguments as `written` does.
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
        """The call of what is compiled for these arguments, on the arrays among them."""
        leaves, structure = self.leaves.flatten(args)
        if self.fixes_numbers is None:
            self.fixes_numbers = self.leaves.decides(self.function, args)
        at = [i for i, leaf in enumerate(leaves) if self._is_traced(leaf)]
        if len(at) == len(leaves):
            return self._call(None, partial(self._compiled(None, self.function), *args))
        constants = {i: leaf for i, leaf in enumerate(leaves) if not self._is_traced(leaf)}
        paths = self.leaves.paths(args)
        key = (structure, tuple(at), tuple(self._key(paths[i], leaf) for i, leaf in constants.items()))

        def whole(*arrays: Any) -> Any:
            placed = {**constants, **dict(zip(at, arrays, strict=True))}
            return self.function(*self.leaves.unflatten(structure, [placed[i] for i in range(len(placed))]))

        described = {path: _describe_leaf(leaf) for path, leaf in zip(paths, leaves, strict=True)}
        traced = [paths[i] for i in at]
        return self._call(key, partial(self._compiled(key, whole, described, traced), *(leaves[i] for i in at)))

    def _call(self, key: Any, run: Callable[[], Any]) -> BoundCall:
        return BoundCall(run, partial(self._again, key))

    def _again(self, key: Any, returned: Any) -> Any:
        """The whole of what the function gives, with what is beside the arrays."""
        again: Function = self.whole.get(key, as_it_is)
        return again(returned)

    def _is_traced(self, leaf: Any) -> bool:
        is_number = isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic)
        return self.leaves.is_traced(leaf) and not (self.fixes_numbers and is_number)

    def _compiled(
        self, key: Any, whole: Function, constants: dict[str, str] | None = None, traced: Sequence[str] = ()
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
            self.made[key] = self.compile(run)
        made: Function = self.made[key]
        return made

    def _key(self, path: str, leaf: Any) -> Any:
        """What tells a constant from others. Raises UnsupportedError where there is nothing."""
        key = constant(leaf)
        if key is None:
            number, rest = int(path.partition("[")[0].partition(".")[0]), path.lstrip("0123456789")
            name = tree.argument_names(self.written, number + 1)[number]
            raise UnsupportedError(
                f"`{name}{rest}` is a {type(leaf).__name__}, not an array, a container or a plain value; "
                f"{self.leaves.remedy}"
            )
        return key

    def observed(self) -> Observations:
        """A compilation for each trace, with its reason and seconds."""
        return Observations(
            [Compilation(reason, trace.seconds) for reason, trace in zip(self.reasons(), self.traces, strict=True)]
        )

    def reasons(self) -> Iterator[str]:
        """Why the function was traced each time: in what its arguments differ from the likest ones before."""
        for number, trace in enumerate(self.traces):
            earlier = self.traces[:number]
            alike = [before for before in earlier if before.paths == trace.paths]
            differences = min((_differences(before, trace) for before in alike), key=len, default=[])
            if alike and not differences and all(before.structure != trace.structure for before in alike):
                yield STATIC
            else:
                yield _list_differences(differences) if alike else OTHER if earlier else FIRST


def constant(leaf: Any) -> Any:
    """What tells a plain value from others: equal for what a function cannot tell apart; None of what is not plain.

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
    """Equal to itself alone; it keeps the value, so that no other has its id."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _describe_leaf(leaf: Any) -> str:
    """`float32[2, 3]` of an array, a plain value itself, and the class of what is neither."""
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if dtype is not None and shape is not None:
        number = " of a number" if getattr(leaf, "weak_type", False) else ""
        return f"{getattr(dtype, 'name', dtype)}{list(shape)}{number}"
    said = repr(leaf) if constant(leaf) is not None and not callable(leaf) else type(leaf).__name__
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def _differences(before: Trace, now: Trace) -> list[str]:
    """`argument 1: float32[2, 3] before, float32[5, 3] now` for each leaf that differs."""
    rows = zip(now.paths, before.leaves, now.leaves, strict=True)
    return [f"argument {path}: {was} before, {is_} now" for path, was, is_ in rows if was != is_]


def _list_differences(differences: list[str]) -> str:
    more = f", and {len(differences) - MOST} more" if len(differences) > MOST else ""
    return ", ".join(differences[:MOST]) + more if differences else AGAIN
