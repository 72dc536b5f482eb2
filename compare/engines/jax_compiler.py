"""What compiles in JAX: `jax.jit` with a mode's options, functions that a user's file compiles, and compile events."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import Any

from compare.engines.base import Compiler, Engine
from compare.engines.leaves import SpecialisedFunction, Trace, reason_of, trace_of
from compare.engines.mode import CONFIG, PROCESS, Mode
from compare.engines.pytrees import DonatingStep, Donations, Pytrees
from compare.engines.step import Compilation, Function
from compare.engines.uncompiled import Maker, UncompiledFunction, WrittenStep, watch_makers

REMAT, DONATED = "remat", "donate_argnums"


@contextmanager
def compiled_anew(around: UncompiledFunction, args: Sequence[Any]) -> Iterator[None]:
    """A context in which the file compiles nothing, and code that eager compiles in each call is not kept on the disk.

    In a process of its user's such code, a loop for example, compiles each time: from the disk it would seem several
    times faster.
    """
    import jax

    least = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, least)
    with around.within(args):
        jax.config.update(least, float("inf"))
        try:
            yield
        finally:
            jax.config.update(least, before)


def jit(mode: Mode, maker: Function, function: Function, owners: Sequence[int]) -> Function:
    """Return a function compiled by `maker`, which is `jax.jit` or one in its place, with the options of a mode.

    `owners` is the number of the user's argument for each argument of the function.
    """
    options = {name: value for name, value in mode.options.items() if name not in (REMAT, CONFIG, *PROCESS)}
    if DONATED in options:
        donated = options[DONATED] if isinstance(options[DONATED], (tuple, list)) else (options[DONATED],)
        options[DONATED] = tuple(place for place, owner in enumerate(owners) if owner in donated)
    compiled: Function = maker(function, **options)
    return compiled


def recomputing(mode: Mode, function: Function) -> Function:
    """Return a function whose backward pass computes what `remat` says again: True for all, or the name of a policy."""
    import jax

    policy = mode.options.get(REMAT)
    if not policy:
        return function
    kept = getattr(jax.checkpoint_policies, policy) if isinstance(policy, str) else None
    return functools.wraps(function)(jax.checkpoint(function, policy=kept))


@contextmanager
def settings(mode: Mode) -> Iterator[None]:
    """A context with a mode's settings of `jax.config`."""
    import jax

    values = mode.options.get(CONFIG, {})
    before = {name: jax.config.values[name] for name in values}
    try:
        for name, value in values.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def without_compilation(engine: Engine, function: Function) -> UncompiledFunction:
    """Return a function whose own jitted parts run as written; sets the engine's `compiles` if it has any."""
    return UncompiledFunction(function, find_jitted, partial(setattr, engine, "compiles", True), makers())


def written_step(step: Function, around: UncompiledFunction) -> WrittenStep:
    """Return a step whose file compiles functions by itself.

    The names of functions that its code compiles, or that are present in arguments, are noted for `_record_event`, and
    the arguments of a step that is compiled itself.
    """
    for noted in (written_names, compilations, traces, arguments):
        noted.clear()

    def write(function: Any) -> Any:
        written_names.append(f"jit({getattr(function, '__name__', '')})")
        return function

    def noting(args: Sequence[Any]) -> AbstractContextManager[None]:
        if around.is_compiled:
            arguments[:] = [f"jit({around.function.__name__})", args]
        for entry in around.of_objects(args):
            write(entry.read())
        return watch_makers(makers(), lambda function, maker: write(maker(function)))

    for value in around.written:
        write(value)
    return WrittenStep(step, noting)


class JaxCompiler(Compiler):
    """The compiler role of JAX; `donations` has the copied arguments of bound calls."""

    def __init__(self, engine: Engine, donations: Donations) -> None:
        super().__init__(engine)
        self._donations = donations

    def eagerly(self, function: Function) -> AbstractContextManager[object]:
        """A context in which the user's own jitted functions run as written."""
        return without_compilation(self.engine, function).within()

    def own_mode(self, function: Function) -> str:
        """Return the mode `jit` for a function that its file compiles."""
        return self.engine.mode_names[1] if find_jitted(function) else ""

    def owning(self, built: Function) -> Function:
        """Return a step whose calls copy their arrays, since a function may donate its arguments."""
        return DonatingStep(built, self._donations)

    def compiled(self, mode: str, function: Function) -> Function:
        """Return the function compiled by `jax.jit`."""
        import jax

        traits = self.engine.traits(mode)
        return SpecialisedFunction(recomputing(traits, function), partial(jit, traits, jax.jit), Pytrees())

    def forget(self) -> None:
        """Clear every cache in memory, with that of primitives."""
        import jax

        jax.clear_caches()


def makers() -> list[Maker]:
    """Return the functions that compile: `jax.jit`, and those of loaded libraries in its place."""
    places = (("jax", "jit"), ("equinox", "filter_jit"), ("flax.nnx", "jit"))
    return [(sys.modules[module], name) for module, name in places if module in sys.modules]


@cache
def _jitted_kind(module: str, name: str) -> type:
    return type(getattr(sys.modules[module], name)(len))


def find_jitted(value: Any) -> Function | None:
    """Return the function that was passed to one of the `makers`, from the jitted function that it returned."""
    kinds = tuple(_jitted_kind(module.__name__, name) for module, name in makers())
    inner: Function | None = getattr(value, "__wrapped__", None) if isinstance(value, kinds) else None
    return inner


written_names: list[str] = []
"""JAX's names of the user's compiled functions."""
compilations: list[Compilation] = []
arguments: list[Any] = []
"""JAX's name of a step that its file compiles itself, and the arguments of the present call."""
traces: list[Trace] = []
"""The traces of that step."""
_listening: list[bool] = []
_STAGES = ("/jax/core/compile/jaxpr_to_mlir_module_duration", "/jax/core/compile/backend_compile_duration")
_STEP = ("jit(run)", "run")  # what JAX calls a step; older versions give no name


def listen() -> None:
    """Start to listen for JAX's compile events."""
    import jax

    if not _listening:
        jax.monitoring.register_event_duration_secs_listener(_record_event)
        _listening.append(True)


def _record_event(event: str, seconds: float, fun_name: str = _STEP[0], **_: Any) -> None:
    """Add the seconds of lowering and compiling to the last trace, if the event has the step's name."""
    if event in _STAGES and fun_name in _STEP and SpecialisedFunction.latest is not None:
        SpecialisedFunction.latest.seconds += seconds
    if event == _STAGES[-1] and fun_name in written_names:
        reason = f"{fun_name} met arguments that were new to it"
        if arguments and fun_name == arguments[0]:
            trace = trace_of(Pytrees(), arguments[1], seconds)
            reason = reason_of(trace, traces)
            traces.append(trace)
        compilations.append(Compilation(reason, seconds))
