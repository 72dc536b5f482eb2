"""The adapter of JAX, whose eager mode runs op by op, and whose jit mode is compiled whole by XLA."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from compare.engines import pytrees
from compare.engines.base import (
    CallState,
    Devices,
    Engine,
    Errors,
    ModeTrials,
    Numbers,
    Ops,
    Process,
    Words,
)
from compare.engines.framework import Framework
from compare.engines.jax_compiler import (
    DONATED,
    REMAT,
    JaxCompiler,
    compilations,
    compiled_anew,
    jit,
    listen,
    recomputing,
    settings,
    without_compilation,
    written_step,
)
from compare.engines.leaves import SpecialisedFunction
from compare.engines.library import compose
from compare.engines.mode import CONFIG, PROCESS, Mode, ModeTrial, Offer
from compare.engines.nudge import FloatChange
from compare.engines.process import Switch
from compare.engines.pytrees import DonatingStep, Donations, Pytrees, copy_arguments
from compare.engines.state import Piece
from compare.engines.step import (
    Context,
    Function,
    Observations,
    StateReader,
    TrainingFunction,
    ValueStep,
    WholeStep,
)
from compare.engines.uncompiled import (
    UncompiledStep,
    WrittenStep,
    training_step,
)
from compare.engines.words import text
from compare.records.own import RanOp
from compare.records.record import WRITTEN, Device, Records
from compare.text import join_words

EAGER = Mode("eager")
JIT = Mode("jit", "jit()", traces=True)
AS_WRITTEN = Mode(WRITTEN, usual=False, suite=False)
UNWRITTEN = ("fun", "in_shardings", "out_shardings", "static_argnums", "static_argnames", "donate_argnames", "device")
"""The parameters of `jax.jit` that no word has: objects, and names of arguments that the comparison gives itself."""


class Jax(Framework):
    """The adapter of JAX. Gradients come from `jax.value_and_grad`; control flow of a loss may use `jax.lax`."""

    name, title, module, package = "jax", "JAX", "jax", "jax>=0.4.30"
    arrays_of = "jaxlib"
    callbacks = ("jax/_src/debugging.py", "jax/_src/callback.py")
    caches = ("jax/_src/compilation_cache.py",)
    modes = (EAGER, JIT, AS_WRITTEN)
    written, rethreads = AS_WRITTEN, False
    remark = (
        "JAX's eager mode compiles each primitive alone, and is slow. "
        "So the graph mode of jit is not the reason for all that it saves."
    )
    idioms = MappingProxyType(
        {name: f"jax.lax.{name}" for name in ("cond", "switch", "while_loop", "fori_loop", "scan")}
    )

    def __init__(self) -> None:
        super().__init__()
        self.process = JaxProcess(self)
        self.devices = JaxDevices(self)
        self.numbers = JaxNumbers(self)
        donations = Donations()
        self.compiler = JaxCompiler(self, donations)
        self.ops = JaxOps(self)
        self.state = JaxState(self, donations)
        self.errors = JaxErrors(self)
        self.words = JaxWords(self)
        self.trials = JaxTrials(self)

    @staticmethod
    def environment(cache: Path, device: Device = "cpu", threads: int = 1) -> dict[str, str]:
        """Return variables for the threads, which flags alone do not ensure, and for the cache folder.

        Flags in the user's environment count; of two that say the same, XLA takes the last.
        """
        shares = "false" if threads == 1 else "true"
        flags = f"--xla_cpu_multi_thread_eigen={shares} intra_op_parallelism_threads={threads}"
        return {
            "JAX_PLATFORMS": "cpu" if device == "cpu" else "cuda,cpu",
            "XLA_FLAGS": " ".join(filter(None, (os.environ.get("XLA_FLAGS"), flags))),
            "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }

    def start(self, seed: int, *, doubles: bool | None = False, device: Device = "cpu", threads: int = 1) -> None:
        """Prepare this process; JAX has no global seed."""
        import jax

        super().start(seed, device=device, threads=threads)
        if doubles is not None:
            jax.config.update("jax_enable_x64", doubles)

    def functions(self) -> dict[str, Function]:
        """Return JAX's functions under the names of `graphs`."""
        return compose(_functions())

    def arrays(self, tree: Any) -> Any:
        """Return a container with copied JAX arrays; on the GPU existing JAX arrays are moved too."""
        import jax
        import jax.numpy as jnp

        def place(leaf: Any) -> Any:
            if self.device == "cuda" and isinstance(leaf, (np.ndarray, jax.Array)):
                return jax.device_put(leaf, jax.devices("cuda")[0])
            return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

        return pytrees.map_arrays(place, tree)

    def numpy(self, tree: Any) -> Any:
        """Return a container with NumPy arrays."""
        return pytrees.plain(tree)

    def build(self, mode: str, loss: Function, argnum: int | None) -> Function:
        """Return a whole step; `jit` compiles it once per structure of arguments and value of each non-array."""
        import jax

        around, traits = without_compilation(self, loss), self.traits(mode)
        run = around.function if traits is EAGER else recomputing(traits, loss)
        step = ValueStep(run) if argnum is None else pytrees.DifferentiatedStep(run, argnum)
        if traits is EAGER:
            return UncompiledStep(step, partial(compiled_anew, around))
        if traits is AS_WRITTEN or (around.is_compiled and traits is JIT and argnum is None):
            return written_step(step, around)
        built = SpecialisedFunction(step, partial(jit, traits, jax.jit), Pytrees(), loss)
        return UncompiledStep(built, lambda _: settings(traits)) if CONFIG in traits.options else built

    def observed(self, step: Function) -> Observations:
        """Return the traces of the step, how their arguments differ, and the seconds of tracing, lowering and XLA."""
        step = step.run if isinstance(step, DonatingStep) else step
        step = step.run if isinstance(step, WholeStep) else step
        if isinstance(step, WrittenStep):
            return Observations(list(compilations))
        step = step.step if isinstance(step, UncompiledStep) else step
        return step.observed() if isinstance(step, SpecialisedFunction) else Observations()


class JaxProcess(Process):
    """The process role of JAX."""

    def settings(self, mode: str) -> Context:
        """Return the context with the mode's settings of `jax.config`."""
        return partial(settings, self.engine.traits(mode))

    def switches(self) -> Sequence[Switch]:
        """Return one switch for all settings of `jax.config`."""
        import jax

        def write(before: dict[str, Any]) -> None:
            for name, value in before.items():
                if jax.config.values[name] != value:
                    jax.config.update(name, value)

        return [Switch(lambda: dict(jax.config.values), write)]

    def listen(self) -> None:
        """Start to listen for JAX's compile events."""
        listen()


class JaxDevices(Devices):
    """The devices role of JAX."""

    def gpu(self) -> str | None:
        """Return the kind of the first GPU; None where JAX raises because there is no such platform."""
        import jax

        try:
            return str(jax.devices("cuda")[0].device_kind)
        except RuntimeError:
            return None

    @property
    def waits(self) -> Function:
        """Return `jax.block_until_ready`, which waits for every array."""
        import jax

        waits: Function = jax.block_until_ready
        return waits


class JaxNumbers(Numbers):
    """The numbers role of JAX."""

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """Return arguments with changed floats; objects of nnx stay, and `meanwhile` changes their variables."""
        return pytrees.map_arrays(_function(change), tree)

    @contextmanager
    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> Iterator[None]:
        """A context with changed floats, by `jax_enable_x64` for float64; variables of nnx get other arrays."""
        import jax

        wide = jax.enable_x64(True) if change.seed is None else nullcontext()
        with wide, super().meanwhile(holders, change), pytrees.changed_variables(holders, _function(change)):
            yield

    def draws_inside(self, function: Function, call: tuple[Any, ...]) -> bool:
        """Return whether the jaxpr draws random numbers; for a function that has none, whether it gets a random key."""
        try:
            return pytrees.draws(pytrees.nested_jaxprs(pytrees.jaxpr_of(function, call)))
        except Exception:  # noqa: BLE001  (the mode that compiles it says why)
            return pytrees.has_key(call)


class JaxWords(Words):
    """The words role of JAX."""

    def offer(self) -> Offer:
        """Return the parameters of `jax.jit` that may be written out, with `remat` and the settings of `jax.config`."""
        import jax

        names = [name for name in inspect.signature(jax.jit).parameters if name not in UNWRITTEN]
        return Offer({"jit": (*names, REMAT, CONFIG, *PROCESS)}, {CONFIG: list(jax.config.values)})


RETURNED = "returned"
"""The fact of a first look: arguments whose arrays have the shapes and dtypes of results, as `0 params`."""


class JaxTrials(ModeTrials):
    """The trials role of JAX: arguments whose arrays come back changed are donated."""

    tries = True
    keeps = "Keep compiled code: jax.config.update('jax_compilation_cache_dir', FOLDER)"

    def facts(
        self, function: Function, calls: Sequence[tuple[Any, ...]], fresh: Context | None = None
    ) -> dict[str, list[str]]:  # fmt: skip
        """Return the arguments all of whose arrays have a result of their shape and dtype, by a trace.

        Those that the file donates by itself are left out.
        """
        import jax

        try:
            results = Counter(_specs(jax.eval_shape(function, *calls[0])))
            names = list(inspect.signature(function).parameters)
        except Exception:  # noqa: BLE001  (a function that cannot be traced has its reason in the gate)
            return {}
        donations = getattr(getattr(function, "_jit_info", None), DONATED, None) or ()  # private to JAX
        donors = []
        for place, (name, argument) in enumerate(zip(names, calls[0], strict=False)):
            specs = Counter(_specs(argument))
            if specs and specs <= results:
                results -= specs
                donors += [] if place in donations else [f"{place} {name}"]
        return {RETURNED: donors} if donors else {}

    def modes(self, records: Records, facts: Mapping[str, Any], *, remedies: bool) -> Sequence[ModeTrial]:
        """Return the mode that donates these arguments."""
        pairs = [word.split(" ", 1) for word in facts.get(RETURNED, ())] if remedies else []
        if not pairs:
            return []
        places, said = tuple(int(place) for place, _ in pairs), join_words([name for _, name in pairs])
        change = f"donate {said}, which come back: jax.jit(..., donate_argnums={places!r})"
        return [ModeTrial("donated", text("jit", {DONATED: places}), change)]


def _specs(tree: Any) -> list[tuple[tuple[int, ...], str]]:
    """Return shape and dtype of each array that has axes."""
    import jax

    leaves = [leaf for leaf in jax.tree.leaves(tree) if getattr(leaf, "shape", ())]
    return [(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves]


class JaxOps(Ops):
    """The ops role of JAX."""

    def called(self, function: Function, call: tuple[Any, ...]) -> Any:
        """Return the result of a function on copies of its arguments."""
        return function(*copy_arguments(call))

    def dtypes(self, step: Function, call: tuple[Any, ...]) -> Iterable[Any]:
        """Return the dtypes of the values in the step's jaxpr, nested jaxprs included."""
        try:
            jaxprs = [*pytrees.nested_jaxprs(pytrees.jaxpr_of(step, call))]
        except Exception:  # noqa: BLE001  (the mode that compiles it says why)
            return super().dtypes(step, call)
        made = [var for each in jaxprs for equation in each.eqns for var in equation.outvars]
        made += [var for each in jaxprs for var in (*each.invars, *each.constvars)]
        return {str(var.aval.dtype) for var in made if hasattr(var.aval, "dtype")}

    def ran(self, step: Function, call: tuple[Any, ...]) -> list[RanOp]:
        """Return the primitives of the step's jaxpr: eager JAX runs each as one call of compiled code."""
        return [pytrees.ran_op(equation) for equation in pytrees.jaxpr_of(step, call).eqns]


class JaxState(CallState):
    """The state role of JAX; `donations` has the copied arguments of bound calls."""

    def __init__(self, engine: Engine, donations: Donations) -> None:
        super().__init__(engine)
        self._donations = donations

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """Return a training step where a call changes parameters of nnx; else None, as JAX's arrays never change."""
        if not pytrees.loaded_nnx():
            return None
        around = without_compilation(self.engine, function)

        def compile_mode(mode: str) -> Function:
            traits = self.engine.traits(mode)
            compile_ = partial(jit, traits, pytrees.loaded_nnx().jit)
            return SpecialisedFunction(recomputing(traits, function), compile_, Pytrees(), function)

        return training_step(
            self.engine,
            around,
            calls[0],
            lambda: pytrees.trains_nnx(changed()),
            lambda: written_step(function, around),
            compile_mode,
            JIT,
        )

    def reader(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
    ) -> StateReader:
        """Return a reader of the variables of nnx that a call has changed."""
        return pytrees.variable_reader(calls, changed, pytrees.plain)

    def kept(self, value: Any) -> Piece | None:
        """Return a piece that restores an array, which a function may donate, or a variable of nnx."""
        import jax

        return self._donations.kept(value) if isinstance(value, jax.Array) else pytrees.variable_piece(value)


class JaxErrors(Errors):
    """The errors role of JAX."""

    @contextmanager
    def checked(self) -> Iterator[None]:
        """A context with `jax_debug_nans` and `jax_debug_infs`: JAX runs a failing compiled step again op by op."""
        import jax

        with jax.debug_nans(True), jax.debug_infs(True):
            yield

    def summary(self, error: BaseException) -> str:
        """Return what a trace cannot do, with the user's arguments it depends on, and JAX's remedy."""
        import jax

        said = str(error)
        if FROM_OUTSIDE in said:
            words = said.partition(FROM_OUTSIDE)[0]
            return f"{words}{FROM_OUTSIDE}: give the object as an argument, as nnx.jit takes it"
        if not isinstance(error, (jax.errors.JAXTypeError, jax.errors.JAXIndexError)):
            return super().summary(error)
        what = said.splitlines()[0].partition(". ")[0].rstrip(".")
        names = re.search(r"the values? of the arguments? ([^.]+?)\.?\n", said)
        of = f", which depends on {names[1]}" if names else ""
        kinds = (kind for kind in type(error).__mro__ if kind.__name__ in _REMEDIES)
        remedy = next((f"; {_REMEDIES[kind.__name__]}" for kind in kinds), "")
        return f"{type(error).__name__}: {what}{of}{remedy}"

    def traced(self, error: BaseException) -> bool:
        """Return True for every error but that of the check for NaN: code compiled by XLA raises nothing else."""
        return not isinstance(error, FloatingPointError)

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """Return whether a trace cannot do something with a value, or an op has no derivative."""
        import jax

        refusals = (
            NotImplementedError,
            jax.errors.JAXTypeError,
            jax.errors.JAXIndexError,
            jax.errors.UnexpectedTracerError,
        )
        return isinstance(error, refusals) or any(words in str(error) for words in (FROM_OUTSIDE, pytrees.ONLY_FORWARD))


_REMEDIES = {
    "TracerBoolConversionError": "choose by jnp.where or jax.lax.cond, or repeat by jax.lax.while_loop",
    "TracerIntegerConversionError": "index with jnp.take or jax.lax.dynamic_slice",
    "TracerArrayConversionError": "compute with jax.numpy, or call NumPy by jax.pure_callback",
    "NonConcreteBooleanIndexError": "choose by jnp.where, whose result has a size that is known",
    "ConcretizationTypeError": "give sizes as numbers of Python's, or compute with jax.numpy",
    "UnexpectedTracerError": "return what a trace has computed, and keep it nowhere else",
}
"""The remedy that a message names, by the class of JAX's error."""
FROM_OUTSIDE = "different trace level"
"""The words of Flax's error where a compiled step changes an object that is not among its arguments."""


def _function(change: FloatChange) -> Function:
    """Return the function that changes one array; in float64 NumPy's arrays stay."""
    import jax
    import jax.numpy as jnp

    nudge = change.function()

    def change_leaf(leaf: Any) -> Any:
        if change.seed is None and not isinstance(leaf, jax.Array):
            return leaf
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        if change.seed is not None:
            return jnp.asarray(nudge(np.asarray(leaf)))
        return leaf.astype(np.complex128 if jnp.issubdtype(leaf.dtype, jnp.complexfloating) else np.float64)

    return change_leaf


def _functions() -> dict[str, Function]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    same = (
        "tanh exp log sin cos sqrt abs square floor round reshape where maximum minimum clip sum mean max min prod "
        "any all argmax argmin concat unstack squeeze matrix_transpose broadcast_to take_along_axis argsort sort "
        "cumulative_sum roll repeat zeros logical_and logical_not logical_or permute_dims moveaxis"
    )

    def conv2d(x: Any, weight: Any, bias: Any = None, stride: int = 1, padding: int = 0) -> Any:
        y = lax.conv_general_dilated(x, weight, (stride, stride), [(padding, padding)] * 2)
        return y if bias is None else y + bias[:, None, None]

    def max_pool2d(x: Any, size: int) -> Any:
        window = (1, 1, size, size)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")

    return {
        **{name: getattr(jnp, name) for name in same.split()},
        **{name: getattr(jax.nn, name) for name in ("sigmoid", "relu", "softmax", "log_softmax", "logsumexp")},
        "astype": lambda x, dtype: jnp.asarray(x).astype(dtype),
        "stack": lambda xs, axis=0: jnp.stack([jnp.asarray(x) for x in xs], axis=axis),
        "expand_dims": lambda x, axis=0: jnp.expand_dims(x, axis),
        "take": lambda x, indices, axis=0: jnp.take(x, jnp.asarray(indices), axis=axis),
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "stop_gradient": lax.stop_gradient,
        "conv2d": conv2d,
        "max_pool2d": max_pool2d,
        "cond": lax.cond,
        "switch": lax.switch,
        "while_loop": lax.while_loop,
        "fori_loop": lax.fori_loop,
        "scan": lax.scan,
    }
