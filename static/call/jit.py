"""jit: compile a function when it is called, once for each kind of arguments that its shape policy tells apart.

Read `Jitted` and `jit` first. `Cache` maps the layout of a call to a function that runs it, and holds the executables
in order of use. A layout is the exact description of the arguments: containers, order of keys, types, shapes, dtypes,
static values. A call with a known layout skips flattening, shape policy and keys.

`Padding` runs on padded arrays: it cuts the result to the true sizes, and proves that padding does not change it.

`key_difference` says why a function was compiled again: the first thing in which the keys of two calls differ. A key is
the layout of the arguments, the keys of the static values, the shape and dtype of every array, and the values of the
guards.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from graphs import tree
from graphs.capture import VOID, Guards
from graphs.errors import DTypeError, ShapeError, ShapeLimitError, ShapeLimitWarning, locate, warn
from graphs.spec import OfTensor, TensorSpec
from static.call import policies
from static.call.backend import check_options
from static.call.buckets import optimal
from static.call.compile import compile
from static.call.containers import Reader, finder, kind
from static.call.executable import Executable
from static.call.policies import Widening, axis_names, pad_axes
from static.convert import converted
from static.padding import Cropping, Names, Specialisation, bounds, prove_padding
from static.trace.symbol import callee
from static.trace.tracing import check_arguments, is_tensor, is_traced, static_key, trace

LIMIT = 64  # executables that are kept by default
Runner = Callable[[Sequence[Any]], Any]
PolicyName = Literal["auto", "exact", "symbolic", "bucket", "pad"]


class Jitted:
    """A function that compiles itself; `stats` has counts, and `executables` the compiled graphs."""

    def __init__(
        self,
        f: Callable[..., Any],
        shapes: PolicyName,
        limit: int | None,
        strict: bool,
        dims: Sequence[Any] | None,
        buckets: Sequence[int] | None,
        check: bool,
        backend: str = "numpy",
        threads: int | Literal["all"] = 1,
        convert: bool = False,
        fast_math: bool = False,
    ) -> None:
        if hasattr(f, "__name__"):
            functools.update_wrapper(self, f)
        else:  # an object that is called, such as a module: its attributes are its own
            self.__name__ = type(f).__name__
        self.f, self.limit, self.strict = f, limit, strict
        self._again = functools.partial(
            Jitted, shapes=shapes, limit=limit, strict=strict, dims=dims, buckets=buckets, check=check, backend=backend,
            threads=threads, convert=convert, fast_math=fast_math,
        )  # fmt: skip
        self._by_words: dict[tuple[str, ...], Jitted] = {}
        self._shapes, self._has_warned = shapes, False
        self._compile = functools.partial(
            compile, backend=backend, threads=threads, convert=convert, fast_math=fast_math
        )
        self.convert = convert
        self._cache = Cache()
        self._version = 0  # the policy's version at the last call
        self._dims = dims
        self._policy = policies.policy(shapes, buckets)
        if isinstance(self._policy, policies.AxisPadding) and not dims:
            raise ShapeError(f"shapes={shapes!r} pads named axes; name them, as in dims=(None, ('T', None))")
        traced = converted(f) if convert else f  # the function that `compile` traces
        self._padding = Padding(traced, check, self.stats)
        self._widening = Widening(traced) if shapes == "auto" and limit is not None and not strict else None
        self._guards: Guards = {}  # the guards of all executables
        self._guarded: tuple[Any, ...] = ()  # their values at the call seen last

    def __call__(self, *args: Any, **words: Any) -> Any:
        """Run, compiling first when the arguments are of a new kind.

        Raises ShapeLimitError past the limit when `strict`, and ShapeError where padding would change the result.
        """
        if words:
            return self._with_words(args, words)
        if self._guards:
            self._look()
        result = self._cache(args)
        return self._closely(args) if result is NotImplemented else result

    def _with_words(self, args: tuple[Any, ...], words: dict[str, Any]) -> Any:
        """Call with keywords passed by position; a wrapper takes keyword-only arguments by position.

        Raises TypeError for keywords that the function does not take.
        """
        bound = inspect.signature(self.f).bind(*args, **words)
        bound.apply_defaults()
        by_name = {name: value for name, value in bound.kwargs.items() if name in words}
        if not by_name:
            return self(*bound.args)
        names = tuple(by_name)
        if names not in self._by_words:
            self._by_words[names] = self._again(_by_places(self.f, names))
        return self._by_words[names](*bound.args, *by_name.values())

    @property
    def stats(self) -> Stats:
        """The counts of compilations, hits and evictions."""
        return self._cache.stats

    @property
    def executables(self) -> Mapping[Hashable, Executable]:
        """The executables by key, the one used last at the end."""
        return MappingProxyType(self._cache.executables)

    def _look(self) -> None:
        """Forget the layouts if a guard has changed, so that only executables compiled for the present values run."""
        values = tuple([guard.now() for guard in self._guards.values()])
        if values != self._guarded:
            self._guarded = values
            self._cache.forget()

    def _closely(self, args: tuple[Any, ...]) -> Any:
        """Call with arguments unlike those seen before: of a new kind, or not in plain containers of arrays."""
        leaves, structure = tree.flatten(args)
        traced = [np.asarray(leaf) for leaf in leaves if is_traced(leaf)]
        statics = tuple([None if is_traced(leaf) else leaf for leaf in leaves])
        names: list[Names] = axis_names(self._dims, args) if self._dims else [(None,) * a.ndim for a in traced]
        laid = ArgumentLayout(structure, statics, names, tuple([is_tensor(leaf) for leaf in leaves if is_traced(leaf)]))
        call = self._specialise(args, traced, names)
        kind = (tree.layout(args), laid.tensors), tuple(map(static_key, statics))
        key = (*kind, _specs_of_call(call), self._guarded)
        if self._widening is not None and key not in self._cache.executables:
            dtypes = tuple([(a.ndim, a.dtype) for a in traced])
            asked = (*kind, dtypes, self._guarded)
            wide = self._widening.specialise(asked, traced, names, laid.filled, self._is_full)
            if wide is not None:
                call, key = wide, (*kind, _specs_of_call(wide), self._guarded)
        executable = self._cache.executables[key] if self._cache.is_hit(key) else self._compiled(key, call, laid)
        run = self._runner(executable, call, laid, traced)
        result = run(traced)
        if self._guarded == key[3]:  # else it was compiled, and its key has grown
            self._cache.note(key[0], leaves, structure, Entry(key, run))
        return result

    def _runner(
        self, executable: Executable, call: Specialisation, laid: ArgumentLayout, traced: Sequence[Any]
    ) -> Runner:
        """Return a function that runs arrays of these shapes; it holds no reference to this object, which holds it."""
        if executable.traced.reads:
            if call.padded:
                raise ShapeError(
                    locate(f"{self.__name__}: reads tensors that are no arguments, which nothing can pad; pass them")
                )
            return executable.run_reading
        if call.padded:
            return self._padding.runner(executable, call, laid)
        return functools.partial(executable.run_leaves, tuple([a.shape for a in traced]))

    def _specialise(self, args: tuple[Any, ...], traced: list[Any], names: list[Names]) -> Specialisation:
        try:
            call = self._policy(traced, names)
        except DTypeError:
            check_arguments(self.f, args)
            raise
        if self._version != self._policy.version:
            self._version = self._policy.version
            self._cache.forget()
        return call

    def _compiled(self, key: Any, call: Specialisation, laid: ArgumentLayout) -> Executable:
        self.stats.misses += 1
        reason = self._reason(key)
        if self._is_full:
            self._make_room(reason, self._widening is not None and any(spec.symbols for spec in call.specs))
        start = time.perf_counter()
        executable = self._compile(self.f, *laid.filled(call.specs))
        self.stats.compile_seconds += time.perf_counter() - start
        self.stats.compiles += 1
        self.stats.reasons.append(reason)
        self._guards |= {(id(guard.owner), guard.attribute): guard for guard in executable.traced.guards}
        self._guards = {key: VOID if guard.varies else guard for key, guard in self._guards.items()}
        self._look()
        self._cache.keep((*key[:3], self._guarded), executable)
        return executable

    @property
    def _is_full(self) -> bool:
        return self.limit is not None and len(self._cache.executables) >= self.limit

    def _make_room(self, reason: str, for_all: bool) -> None:
        """Drop the executable used longest ago, and warn (or raise ShapeLimitError) with advice."""
        rule = f"{self.__name__}: more than {self.limit} kinds of arguments ({reason})"
        refusal = "" if self._widening is None else self._widening.refusal
        advice = remedy(reason, self._shapes, bool(refusal))
        if self.strict:
            raise ShapeLimitError(locate(f"{rule}; {advice}"))
        if for_all:
            self._tell(
                f"{rule}, so that one graph serves all other sizes; use shapes='symbolic' for one from the start"
            )
        else:
            why = f", and one graph for all sizes cannot be made ({refusal})" if refusal else ""
            self._tell(f"{rule}, of which {self.limit} are kept and the others compiled again{why}; {advice}")
        self._cache.drop()

    def _tell(self, message: str) -> None:
        """Warn at the user's line, once for each function."""
        if not self._has_warned:
            self._has_warned = True
            warn(locate(message), ShapeLimitWarning)

    def _reason(self, key: Any) -> str:
        """Return in words how this key differs from the key compiled last."""
        if not self._cache.executables:
            return "first call" if not self.stats.compiles else "evicted before"
        last, newest = next(reversed(self._cache.executables.items()))
        labels = [node.attrs["name"] for node in newest.graph.inputs[: len(key[2])]]
        return key_difference(last, key, labels)

    __name__: str


def _specs_of_call(call: Specialisation) -> tuple[Any, ...]:
    """Return the specs of a call in the form that keys have."""
    return tuple([(spec.shape, spec.dtype) for spec in call.specs])


def jit(
    f: Callable[..., Any],
    *,
    shapes: PolicyName = "auto",
    limit: int | None = LIMIT,
    strict: bool = False,
    dims: Sequence[Any] | None = None,
    buckets: Sequence[int] | int | None = None,
    lengths: Sequence[int] | None = None,
    check: bool = True,
    backend: str = "numpy",
    threads: int | Literal["all"] = 1,
    fast_math: bool = False,
    convert: bool = False,
) -> Jitted:
    """Compile `f` when it is called, for the kinds of arguments that the shape policy tells apart.

    Array leaves are traced; every other leaf is a static value. By default each combination of sizes is compiled by
    itself up to the limit. From then on one graph serves all sizes, where it is proved, size by size, to be the graph
    that `f` leaves there; a ShapeLimitWarning says so once.

    `dims` names the axes that vary, an entry per argument: None, or a name (or None) per axis, as in `dims=(None, ("T",
    None))`. At most `limit` executables are kept. Past it the one used longest ago is dropped, with one
    ShapeLimitWarning for the function, or with `strict` ShapeLimitError is raised. An executable keeps its arena: 0.3
    to 6 MiB each for training steps of the recurrent nets and encoders in `compare.workloads`, so that 64 of them take
    20 to 400 MiB. `buckets` gives the sizes to pad to, or their number: then they are chosen to waste least for the
    expected `lengths`. For each padded size it is proved that padding reaches no result (ShapeError if it may), unless
    `check` is False. `backend`, `threads`, `fast_math` and `convert`, which lets Python's own control flow depend on
    values, are those of `compile`. Raises ValueError for a limit below 1, an unknown policy, and a number of buckets
    without lengths; GraphError for an unknown backend.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is 1 or more, or None for no limit, not {limit}")
    check_options(backend, threads, fast_math)
    sizes = _boundaries(buckets, lengths)
    return Jitted(f, shapes, limit, strict, dims, sizes, check, backend, threads, convert, fast_math)


def _boundaries(buckets: Sequence[int] | int | None, lengths: Sequence[int] | None) -> Sequence[int] | None:
    if isinstance(buckets, int) and lengths is not None:
        return optimal(lengths, buckets)
    if isinstance(buckets, int) or lengths is not None:
        raise ValueError("buckets are as many as you say for the lengths you expect: give both, buckets=4, lengths=...")
    return buckets


def _by_places(f: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return the function with these keyword arguments as its last positional ones."""

    @functools.wraps(f)
    def wrapper(*args: Any) -> Any:
        first = len(args) - len(names)
        return callee(f)(*args[:first], **dict(zip(names, args[first:], strict=True)))

    return wrapper


LAYOUTS = 8  # kinds of containers and leaf types that get a reader function of their own; each is tried in turn
KINDS = 1024  # entries by kind of arguments; all are forgotten when there are more


@dataclass
class Stats:
    """Counts of a jitted function; `reasons` says for every compilation why it was needed.

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


class Entry(NamedTuple):
    """The entry of a layout: the key of the executable, and the function to call with the traced leaves as arrays."""

    key: Hashable
    run: Callable[[Sequence[Any]], Any]


class Cache:
    """Entries by the layout of a call, and executables by key, the one used last at the end.

    Nothing in it refers to the cache itself, so it is freed, with all its memory, as soon as nobody uses it.
    """

    def __init__(self) -> None:
        self.stats = Stats()
        self.executables: OrderedDict[Hashable, Executable] = OrderedDict()
        self._newest: Hashable = None
        self._entries: dict[Hashable, Entry] = {}
        self._numbers: dict[Hashable, int] = {}  # each kind of containers and leaf types, by order of arrival
        self._finders: list[Reader] = []  # may grow while another thread goes through it

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """Return the result for arguments of a known layout, else NotImplemented."""
        for find in self._finders:
            hit = find(self._entries, args)
            if hit is not NotImplemented:
                (key, run), arrays = hit
                return run(arrays) if self.is_hit(key) else NotImplemented
        return NotImplemented

    def note(self, containers: Hashable, leaves: Sequence[Any], structure: tree.Structure, entry: Entry) -> None:
        """Record this entry for calls laid out like these arguments; `containers` includes the order of keys.

        The caller must `forget` when the entry is no longer right for such arguments.
        """
        signature = containers, *map(type, leaves)
        if signature not in self._numbers:
            if len(self._numbers) >= LAYOUTS:
                return
            number = self._numbers[signature] = len(self._numbers)
            find = finder(leaves, structure, number)
            if find is not None:
                self._finders.append(find)
        if len(self._entries) >= KINDS:
            self._entries.clear()
        self._entries[kind(leaves, self._numbers[signature])] = entry

    def forget(self) -> None:
        """Forget every entry; the executables stay."""
        self._entries.clear()

    def is_hit(self, key: Hashable) -> bool:
        """Whether the executable of this key is held; if so, mark it as used last and count a hit."""
        if key is not self._newest:
            if key not in self.executables:
                return False
            self.executables.move_to_end(key)
            self._newest = key
        self.stats.hits += 1
        return True

    def keep(self, key: Hashable, executable: Executable) -> None:
        """Store the executable compiled for this key, as the one used last."""
        self.executables[key] = executable
        self._newest = key

    def drop(self) -> None:
        """Drop the executable used longest ago, and forget every entry."""
        self.executables.popitem(last=False)
        self._newest = None
        self.stats.evictions += 1
        self.forget()


class ArgumentLayout(NamedTuple):
    """The layout of arguments: their structure, their static values, and the axis names of the array leaves.

    `tensors` tells of each array leaf whether it is a tensor of the dynamic engine.
    """

    structure: tree.Structure
    statics: tuple[Any, ...]
    names: list[Names]
    tensors: tuple[bool, ...]

    def filled(self, specs: Sequence[TensorSpec]) -> list[Any]:
        """Return arguments made from the static leaves and from these specs for the traced leaves."""
        rest = iter([OfTensor(s.shape, s.dtype) if t else s for s, t in zip(specs, self.tensors, strict=True)])
        return list(tree.unflatten(self.structure, [next(rest) if leaf is None else leaf for leaf in self.statics]))


class Padding:
    """The padding of a function: how each kind of result is cut, and the sizes that were proved."""

    def __init__(self, f: Callable[..., Any], check: bool, stats: Stats) -> None:
        self.f, self.check, self.stats = f, check, stats
        self._croppings: dict[Hashable, Cropping] = {}
        self._proved: set[Hashable] = set()

    def runner(
        self, executable: Executable, call: Specialisation, laid: ArgumentLayout
    ) -> Callable[[Sequence[Any]], Any]:
        """Return a function that pads arrays of the sizes of this call, runs, cuts the result, and counts."""
        shapes = tuple([spec.shape for spec in call.specs])

        def run(arrays: Sequence[Any]) -> Any:
            wide = [pad_axes(a, axes, call.padded) for a, axes in zip(arrays, laid.names, strict=True)]
            for before, after, axes in zip(arrays, wide, laid.names, strict=True):
                if any(axes):
                    self.stats.useful += before.size
                    self.stats.computed += after.size
            return self._crop(executable.run_leaves(shapes, wide), executable, call, arrays, laid)

        return run

    def _crop(
        self, result: Any, executable: Executable, call: Specialisation, traced: Sequence[Any], laid: ArgumentLayout
    ) -> Any:
        kind = laid.structure, tuple(map(static_key, laid.statics)), tuple([a.ndim for a in traced])
        if kind not in self._croppings:
            self._croppings[kind] = Cropping.of(self.f, laid.filled, call, laid.names)
        cropping = self._croppings[kind]
        cropped = cropping(result, call)
        if self.check and call.true != call.padded:
            at_most = bounds(traced, laid.names, call.true)
            sizes = kind, tuple(call.true.items()), tuple(call.padded.items()), at_most
            if sizes not in self._proved:
                unpadded = trace(self.f, *laid.filled([TensorSpec(a.shape, a.dtype) for a in traced]))
                prove_padding(executable.traced.graph, unpadded, call, at_most, cropping)
                self._proved.add(sizes)
        return cropped


def key_difference(before: Any, now: Any, labels: Sequence[str]) -> str:
    """Return in words how two keys differ; `labels` are the names of the arrays."""
    if before[0] != now[0]:
        is_nested_alike = before[0][0] == now[0][0]
        return f"the arguments are {'arrays for tensors, or the reverse' if is_nested_alike else 'nested differently'}"
    for old, new in zip(before[1], now[1], strict=True):
        if old != new:
            return f"a static value was {_shown_key(old)}, now {_shown_key(new)}"
    for label, (old_shape, old_dtype), (shape, dtype) in zip(labels, before[2], now[2], strict=True):
        if old_dtype != dtype:
            return f"{label}: dtype was {old_dtype}, now {dtype}"
        if len(old_shape) != len(shape):
            return f"{label}: had {len(old_shape)} axes, now {len(shape)}"
        for axis, (old, new) in enumerate(zip(old_shape, shape, strict=True)):
            if str(old) != str(new):
                return f"{label}: dim {axis} was {old}, now {new}"
    return _guard_difference(before[3], now[3])


def _guard_difference(before: tuple[Any, ...], now: tuple[Any, ...]) -> str:
    if any(isinstance(value, bytes) for value in {*now} ^ {*before}):
        return "a tensor that Python decided by had another value"
    return "a module was in another mode" if before != now else "evicted before"


def remedy(reason: str, shapes: str, refused: bool = False) -> str:
    """Return the advice for a function with this shape policy that is compiled again and again for this reason.

    `refused` tells that no graph serves all sizes.
    """
    if reason.startswith("a static value"):
        return "pass the value as an array, or raise limit"
    if ": dim " not in reason:
        return "raise limit"
    if refused:
        return "use shapes='bucket' (few padded sizes), or raise limit"
    if shapes in ("auto", "exact"):
        return "use shapes='symbolic' (one compile for all sizes), or 'bucket' (few padded sizes), or raise limit"
    return "give fewer buckets, or raise limit" if shapes == "bucket" else "raise limit"


def _shown_key(key: Any) -> str:
    kind, value = key
    return value if kind is float else repr(value)
