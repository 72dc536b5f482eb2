"""What a file compiles by itself, run as its author wrote it: for frameworks that have no switch for that file alone.

A framework's own switch concerns its library as well: `jax.disable_jit` has `jnp.mean` run op by op, and `lax.scan` in
Python. So it is only the user's compiled functions that give way, where the user's code finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from compare.engines.reached import ReachedCode, is_users_class
from compare.engines.step import Bindable, BoundCall, Function, bound
from compare.errors import is_users

Inner = Callable[[Any], Function | None]
"""The function that a framework's compiled one was made of; None for any other value."""


class UncompiledFunction:
    """A function whose compiled parts give way to what they compile, `within`. `met` is told where there are any."""

    def __init__(self, function: Function, inner: Inner, met: Callable[[], None]) -> None:
        code = ReachedCode(function)
        self.met = met
        self.function: Function = _of_users(function, inner) or function
        spaces = [(place.space, place.name, place.read()) for place in code.places]
        self.places = [(space, name, held) for space, name, held in spaces if _of_users(held, inner)]
        kinds = {kind for value in code.values for kind in _classes(value)}
        methods = [(kind, name, held) for kind in kinds for name, held in vars(kind).items()]
        self.methods = [(kind, name, held) for kind, name, held in methods if _of_users(held, inner)]
        self.inner = inner
        self.compiles = self.function is not function or bool(self.places or self.methods)

    def __call__(self, *args: Any) -> Any:
        """What the function gives, where nothing of the file is compiled."""
        with self.within():
            return self.function(*args)

    @contextmanager
    def within(self) -> Iterator[None]:
        """Inside, nothing of the file is compiled."""
        if self.compiles:
            self.met()
        try:
            for space, name, held in self.places:
                space[name] = _of_users(held, self.inner)
            for kind, name, held in self.methods:
                setattr(kind, name, _of_users(held, self.inner))
            yield
        finally:
            for space, name, held in self.places:
                space[name] = held
            for kind, name, held in self.methods:
                setattr(kind, name, held)


class UncompiledStep(Bindable):
    """A step that runs where nothing of the file is compiled."""

    def __init__(self, step: Function, around: UncompiledFunction) -> None:
        self.step, self.around = step, around

    def bind(self, *args: Any) -> BoundCall:
        """See the base."""
        call = bound(self.step, args)
        return BoundCall(call.run, call.result, self.around.within)


def _classes(value: Any) -> Iterator[type]:
    kind = value if isinstance(value, type) else type(value)
    return filter(is_users_class, kind.__mro__)


def _of_users(value: Any, inner: Inner) -> Function | None:
    """What a compiled function of the user's compiles."""
    function = inner(value)
    written = function.func if isinstance(function, partial) else function
    code = getattr(written, "__code__", None)
    return function if code is not None and is_users(code.co_filename) else None
