"""jit: compile a function when it is called, once for each kind of arguments its shape policy tells apart."""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from graphs import tree
from graphs.errors import ShapeError, ShapeLimitError, located
from static import shapes as policies
from static.buckets import optimal
from static.compile import compile
from static.executable import Executable
from static.padding import Cropping, bounds, check_padding, prove_padding
from static.shapes import Names, Policy, Specialised
from static.trace import is_traced, static_key

PolicyName = Literal["exact", "symbolic", "bucket", "pad"]


@dataclass
class Stats:
    """What a jitted function has done: `reasons` says for every compile why it was needed.

    `useful` and `computed` count elements of the arrays with padded axes, before and after padding.
    """

    compiles: int = 0
    hits: int = 0
    misses: int = 0
    evictions: int = 0
    compile_seconds: float = 0.0
    useful: int = 0
    computed: int = 0
    reasons: list[str] = field(default_factory=list)


class Jitted:
    """A function that compiles itself; `stats` counts, `executables` holds what was compiled."""

    def __init__(
        self,
        f: Callable[..., Any],
        shapes: PolicyName,
        limit: int | None,
        strict: bool,
        dims: Sequence[Any] | None,
        buckets: Sequence[int] | None,
        check: bool,
    ) -> None:
        functools.update_wrapper(self, f)
        self.f, self.limit, self.strict, self.check = f, limit, strict, check
        self.stats = Stats()
        self.executables: OrderedDict[Hashable, Executable] = OrderedDict()
        self._dims = dims
        self._policy = _policy(shapes, buckets)
        if isinstance(self._policy, policies.Padded) and not dims:
            raise ShapeError(f"shapes={shapes!r} pads named axes; name them, as in dims=(None, ('T', None))")
        self._croppings: dict[Hashable, Cropping] = {}
        self._proved: set[Hashable] = set()

    def __call__(self, *args: Any) -> Any:
        """Run, compiling first when these arguments are of a new kind.

        Raises ShapeLimitError past the limit when `strict`, and ShapeError where padding would change the result.
        """
        leaves, structure = tree.flatten(args)
        traced = [np.asarray(leaf) for leaf in leaves if is_traced(leaf)]
        statics = tuple([None if is_traced(leaf) else leaf for leaf in leaves])
        names: list[Names] = _axis_names(self._dims, args) if self._dims else [(None,) * a.ndim for a in traced]
        call = self._policy(traced, names)
        specs = tuple([(spec.shape, spec.dtype) for spec in call.specs])
        key = (tree.layout(args), tuple(map(static_key, statics)), specs)
        executable = self._found(key) or self._compiled(key, call, structure, statics)
        result = executable(*_filled(structure, statics, call.arrays))
        return self._cropped(result, executable, call, traced, names, structure, statics) if call.padded else result

    def _found(self, key: Hashable) -> Executable | None:
        executable = self.executables.get(key)
        if executable is not None:
            self.stats.hits += 1
            self.executables.move_to_end(key)
        return executable

    def _compiled(self, key: Any, call: Specialised, structure: Any, statics: tuple[Any, ...]) -> Executable:
        self.stats.misses += 1
        reason = self._reason(key)
        if self.limit is not None and len(self.executables) >= self.limit:
            if self.strict:
                kinds = f"more than {self.limit} kinds of arguments ({reason})"
                raise ShapeLimitError(located(f"{self.__name__}: {kinds}; raise limit, or use shapes='bucket'"))
            self.executables.popitem(last=False)
            self.stats.evictions += 1
        start = time.perf_counter()
        executable = compile(self.f, *_filled(structure, statics, call.specs))
        self.stats.compile_seconds += time.perf_counter() - start
        self.stats.compiles += 1
        self.stats.reasons.append(reason)
        self.executables[key] = executable
        return executable

    def _reason(self, key: Any) -> str:
        """What differs from the call compiled for last."""
        if not self.executables:
            return "first call" if not self.stats.compiles else "evicted before"
        last, newest = next(reversed(self.executables.items()))
        labels = [node.attrs["name"] for node in newest.graph.inputs]
        return _difference(last, key, labels)

    def _cropped(
        self, result: Any, executable: Executable, call: Specialised, traced: list[Any], names: list[Names],
        structure: Any, statics: tuple[Any, ...],
    ) -> Any:  # fmt: skip
        for before, after, axes in zip(traced, call.arrays, names, strict=True):
            if any(axes):
                self.stats.useful += before.size
                self.stats.computed += after.size

        def arguments(leaves: Sequence[Any]) -> list[Any]:
            return _filled(structure, statics, leaves)

        kind = (structure, tuple(map(static_key, statics)), tuple([a.ndim for a in traced]))
        if kind not in self._croppings:
            self._croppings[kind] = Cropping.of(self.f, arguments, call, names)
        cropping = self._croppings[kind]
        cropped = cropping(result, call.true)
        if self.check and dict(call.true) != dict(call.padded):
            if not self._proved:
                check_padding(self.f, executable, arguments, call, traced, names, cropped, cropping)
            self._prove(kind, executable, call, traced, names)
        return cropped

    def _prove(
        self, kind: Hashable, executable: Executable, call: Specialised, traced: list[Any], names: list[Names]
    ) -> None:
        at_most = bounds(traced, names, call.true)
        key = kind, tuple(call.true.items()), tuple(call.padded.items()), at_most
        if key not in self._proved:
            prove_padding(executable, call, names, at_most, self._croppings[kind])
            self._proved.add(key)

    __name__: str


def jit(
    f: Callable[..., Any],
    *,
    shapes: PolicyName = "exact",
    limit: int | None = 8,
    strict: bool = False,
    dims: Sequence[Any] | None = None,
    buckets: Sequence[int] | int | None = None,
    lengths: Sequence[int] | None = None,
    check: bool = True,
) -> Jitted:
    """Compile `f` when it is called, for the kinds of arguments that the shape policy tells apart.

    Array leaves are traced; every other leaf is a static value. `dims` names the axes that vary, an entry per
    argument: None, or a name (or None) per axis, `dims=(None, ("T", None))`. At most `limit` executables are kept,
    the one used longest ago is dropped, or with `strict` ShapeLimitError is raised. `buckets` gives the sizes to pad
    to, or how many there shall be: those that waste least for the `lengths` that are expected. The first call that
    pads is compared with the unpadded function, and for each size it is proved that padding reaches no result
    (ShapeError if it may), unless `check` is False.
    Raises ValueError for a limit below 1, an unknown policy, and a number of buckets without lengths.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is 1 or more, or None for no limit, not {limit}")
    return Jitted(f, shapes, limit, strict, dims, _boundaries(buckets, lengths), check)


def _boundaries(buckets: Sequence[int] | int | None, lengths: Sequence[int] | None) -> Sequence[int] | None:
    if isinstance(buckets, int) and lengths is not None:
        return optimal(lengths, buckets)
    if isinstance(buckets, int) or lengths is not None:
        raise ValueError("buckets are as many as you say for the lengths you expect: give both, buckets=4, lengths=...")
    return buckets


def _policy(shapes: str, buckets: Sequence[int] | None) -> Policy:
    if shapes == "exact":
        return policies.Exact()
    if shapes == "symbolic":
        return policies.Symbolic()
    if shapes == "bucket":
        return policies.Padded(policies.Boundaries(buckets) if buckets else policies.power_of_two)
    if shapes == "pad":
        return policies.Padded(policies.Boundaries(buckets) if buckets else policies.Largest())
    raise ValueError(f"shapes is 'exact', 'symbolic', 'bucket' or 'pad', not {shapes!r}")


def _filled(structure: Any, statics: tuple[Any, ...], traced: Sequence[Any]) -> list[Any]:
    """Arguments from the static leaves and the traced ones in turn."""
    rest = iter(traced)
    return list(tree.unflatten(structure, [next(rest) if leaf is None else leaf for leaf in statics]))


def _axis_names(dims: Sequence[Any], args: Sequence[Any]) -> list[Names]:
    """A name, or None, for each axis of each traced leaf."""
    result: list[Names] = []
    for position, arg in enumerate(args):
        names = dims[position] if position < len(dims) else None
        for leaf in tree.leaves(arg):
            if is_traced(leaf):
                result.append(tuple(names) if names is not None else (None,) * np.ndim(leaf))
                if len(result[-1]) != np.ndim(leaf):
                    raise ShapeError(
                        located(f"dims names {len(result[-1])} axes of argument {position}, which has {np.ndim(leaf)}")
                    )
    return result


def _shown(key: Any) -> str:
    kind, value = key
    return value if kind is float else repr(value)


def _difference(before: Any, now: Any, labels: Sequence[str]) -> str:
    """The first thing in which two keys differ, in words."""
    if before[0] != now[0]:
        return "the arguments are nested differently"
    for old, new in zip(before[1], now[1], strict=True):
        if old != new:
            return f"a static value was {_shown(old)}, now {_shown(new)}"
    for label, (old_shape, old_dtype), (shape, dtype) in zip(labels, before[2], now[2], strict=True):
        if old_dtype != dtype:
            return f"{label}: dtype was {old_dtype}, now {dtype}"
        if len(old_shape) != len(shape):
            return f"{label}: had {len(old_shape)} axes, now {len(shape)}"
        for axis, (old, new) in enumerate(zip(old_shape, shape, strict=True)):
            if str(old) != str(new):
                return f"{label}: dim {axis} was {old}, now {new}"
    return "evicted before"
