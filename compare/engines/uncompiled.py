"""A file's own compiled functions, run as written, for frameworks without a switch for one file alone.

A framework's own switch concerns its library as well: `jax.disable_jit` makes `jnp.mean` run op by op, and `lax.scan`
in Python. So only the user's compiled functions are replaced, in the places where the user's code finds them: globals,
outer variables, attributes and containers. Functions that its code asks to compile as it runs are not compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial, reduce
from itertools import chain
from types import MethodType
from typing import Any, NamedTuple

from compare.engines.base import Engine
from compare.engines.mode import Mode
from compare.engines.reach import MISSING, ReachedCode, is_users_class
from compare.engines.step import Bindable, BoundCall, Context, Function, TrainingFunction, bind_call, inside
from compare.errors import is_users

MOST = 1000
"""The most items of a container that is searched."""
Inner = Callable[[Any], Function | None]
"""A function that returns the Python function inside a framework's compiled one; None for any other value."""
Maker = tuple[Any, str]
"""A function that compiles: its module, and its name there."""
Made = Callable[[Function, Function], Any]
"""A function `made(function, compile)` whose result the user's code gets when it asks a maker to compile."""


class Substitution(NamedTuple):
    """A place, and the value that replaces a compiled function there.

    `always` is False where the replacement matters only if a run writes something else to the place.
    """

    space: Any
    name: Any
    instead: Any
    always: bool = True

    def read(self) -> Any:
        """Return the value at the place."""
        if isinstance(self.space, type):
            return vars(self.space)[self.name]
        return self.space[self.name]

    def put(self, value: Any) -> None:
        """Write a value to the place."""
        if isinstance(self.space, type):
            type.__setattr__(self.space, self.name, value)
        else:
            self.space[self.name] = value


class UncompiledFunction:
    """A function whose compiled parts are replaced by their Python functions inside `within`.

    `met` is called where there are any. `makers` are functions that compile; `others(value)` yields more
    substitutions, for objects that compile by themselves.
    """

    def __init__(
        self,
        function: Function,
        inner: Inner,
        met: Callable[[], None],
        makers: Sequence[Maker] = (),
        others: Callable[[Any], Iterator[Substitution]] = lambda _: iter(()),
    ) -> None:
        code = ReachedCode(function)
        self.met, self.inner, self.makers = met, inner, makers
        self.written = [value for value in code.values if _of_users(value, inner)]
        """The compiled functions that the code reaches."""
        self.function: Function = self._instead(function)
        self.is_compiled = self.function is not function
        """Whether the file compiles the function itself, and not only parts of it."""
        self.others = others
        placed = [self._switches_in(place.space, place.name, place.read()) for place in code.places]
        self.entries = [*chain.from_iterable(placed), *self.of_objects(code.values)]

    def __call__(self, *args: Any) -> Any:
        """Return the result of the function, with nothing of the file compiled."""
        with self.within(args):
            return self.function(*args)

    @contextmanager
    def within(self, args: Sequence[Any] = ()) -> Iterator[None]:
        """A context in which nothing of the file is compiled, nor of objects among these arguments."""
        entries = [*self.entries, *self.of_objects(args)]
        if self.written or any(entry.always for entry in entries):
            self.met()
        with put(entries), watch_makers(self.makers, self._without_compilation):
            yield
            if any(entry.read() is not entry.instead for entry in entries):
                self.met()

    def _without_compilation(self, function: Function, _: Function) -> Function:
        self.met()
        return function

    def of_objects(self, values: Sequence[Any]) -> Iterator[Substitution]:
        """Yield the substitutions in attributes of objects and of their classes."""
        for value in values:
            yield from self.others(value)
            for kind in filter(is_users_class, (value if isinstance(value, type) else type(value)).__mro__):
                for name, held in vars(kind).items():
                    yield from self._switches_in(kind, name, held)
            space = getattr(value, "__dict__", None)
            if type(space) is dict and is_users_class(type(value)):
                for name, held in space.items():
                    yield from self._switches_in(space, name, held)

    def _switches_in(self, space: Any, name: Any, held: Any, around: tuple[int, ...] = ()) -> Iterator[Substitution]:
        """Yield the substitutions of a place and of the containers there; very large containers are taken for data."""
        instead = self._instead(held)
        if instead is not held:
            yield Substitution(space, name, instead)
        elif type(held) in (dict, list) and len(held) <= MOST and id(held) not in around:
            for key, part in held.items() if isinstance(held, dict) else enumerate(held):
                yield from self._switches_in(held, key, part, (*around, id(held)))

    def _instead(self, value: Any) -> Any:
        if type(value) is tuple and len(value) <= MOST:
            parts = tuple(map(self._instead, value))
            return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
        if isinstance(value, partial) and (function := self._instead(value.func)) is not value.func:
            return partial(function, *value.args, **value.keywords)
        if isinstance(value, MethodType) and (function := self._instead(value.__func__)) is not value.__func__:
            return MethodType(function, value.__self__)
        for module, name in self.makers:
            if value is getattr(module, name):
                return _WatchedMaker(value, self._without_compilation)
        return _of_users(value, self.inner) or value


class UncompiledStep(Bindable):
    """A step that runs with nothing of the file compiled, or in another context made from its arguments."""

    def __init__(self, step: Function, within: Callable[[Sequence[Any]], AbstractContextManager[object]]) -> None:
        self.step, self.within = step, within

    @property
    def gradients_in(self) -> str:
        """Return where the gradients are taken, once the step has run and if it tells."""
        return getattr(self.step, "gradients_in", "")

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; its context is entered around that of the call."""
        call = bind_call(self.step, args)
        return BoundCall(call.run, call.result, inside(partial(self.within, args), call.within))


class WrittenStep(UncompiledStep):
    """A step whose file compiles by itself."""

    def __call__(self, *args: Any) -> Any:
        """Return the result of the step; to be called `within`."""
        return self.step(*args)


def training_step(
    engine: Engine,
    around: UncompiledFunction,
    call: tuple[Any, ...],
    trains: Callable[[], bool],
    written: Callable[[], WrittenStep],
    compiled: Callable[[str], Function],
    own: Mode | None = None,
) -> TrainingFunction | None:
    """Return a whole training step: eager with nothing compiled, as its file has it, or `compiled(mode)`.

    A step that its file compiles itself is measured as that has it in the mode `own` too.
    None where a call, which is made here, `trains` nothing.
    """
    around(*call)
    if not trains():
        return None

    def run(mode: str) -> tuple[Function, Context]:
        traits = engine.traits(mode)
        if traits is engine.modes[0]:
            return around.function, partial(around.within, call)
        if traits is not engine.written and not (around.is_compiled and traits is own):
            return compiled(mode), engine.process.settings(mode)
        step = written()
        return step, partial(step.within, call)

    return TrainingFunction(run)


@contextmanager
def put(entries: Sequence[Substitution]) -> Iterator[None]:
    """A context in which these places hold their replacements."""
    before = [(entry, entry.read()) for entry in entries]
    try:
        for entry in entries:
            entry.put(entry.instead)
        yield
    finally:
        for entry, value in before:
            entry.put(value)


@contextmanager
def watch_makers(makers: Sequence[Maker], made: Made) -> Iterator[None]:
    """A context in which the user's code that calls a maker, by its module's name, gets the result of `made`."""
    before = [(module, name, getattr(module, name)) for module, name in makers]
    try:
        for module, name, maker in before:
            setattr(module, name, _WatchedMaker(maker, made))
        yield
    finally:
        for module, name, maker in before:
            setattr(module, name, maker)


class _WatchedMaker:
    """A maker that looks at its caller: only the user's code gets the result of `made`."""

    def __init__(self, maker: Function, made: Made) -> None:
        self.maker, self.made = maker, made

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not is_users(sys._getframe(1).f_code.co_filename):
            return self.maker(*args, **options)
        if not args:  # used as a decorator with options
            return partial(self, **options)
        function, *more = args
        return self.made(function, lambda of: self.maker(of, *more, **options))


def _of_users(value: Any, inner: Inner) -> Function | None:
    """Return the Python function of a compiled function of the user's; None for a library's function."""
    try:
        function = inner(value)
    except Exception:  # noqa: BLE001  (whatever an object of the user's raises as it is asked)
        return None
    if function is None:
        return None
    written = function.func if isinstance(function, partial) else function
    code = getattr(written, "__code__", None)
    if code is not None and is_users(code.co_filename):
        return function
    # a library's function is what its module has under its qualified name
    module: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    path = str(getattr(value, "__qualname__", "?")).split(".")
    named = reduce(lambda holder, name: getattr(holder, name, MISSING), path, module)
    return function if named is not value else None
