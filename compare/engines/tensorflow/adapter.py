"""The adapter of TensorFlow: eager on a gradient tape, and functions that AutoGraph reads and compiles."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare.engines.base import CallState, Compiler, Devices, Engine, Errors, Numbers, Ops, Process, Words
from compare.engines.containers import to_containers
from compare.engines.framework import Framework
from compare.engines.leaves import Leaves, SpecialisedFunction
from compare.engines.library import compose
from compare.engines.mode import PROCESS, Mode, Offer
from compare.engines.nudge import FloatChange
from compare.engines.step import (
    Compilation,
    Function,
    Observations,
    StateReader,
    TrainingFunction,
    ValueStep,
    WholeStep,
)
from compare.engines.tensorflow.functions import NUMBER, functions
from compare.engines.tensorflow.step import (
    TapeStep,
    is_trained,
    making,
    nudge_variables,
    snapshot,
    state_reader,
    switches,
    trainables_in,
)
from compare.engines.uncompiled import (
    Substitution,
    UncompiledFunction,
    UncompiledStep,
    WrittenStep,
    training_step,
    watch_makers,
)
from compare.errors import is_users, place_of, without_folders
from compare.records.record import WRITTEN, Device

EAGER = Mode("eager")
AS_WRITTEN = Mode(WRITTEN, usual=False, suite=False)
MODES = (
    EAGER,
    Mode("function", "function()", traces=True),
    Mode("function-relaxed", "function(reduce_retracing=True)", traces=True, relaxes=True),
    Mode("function-xla", "function(jit_compile=True)", traces=True),
    AS_WRITTEN,
)


LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL", "3"
UNWRITTEN = ("func", "input_signature")
"""The parameters of `tf.function` that are objects; a signature is the author's own (`input_signature`)."""


class TensorFlow(Framework):
    """The adapter of TensorFlow. Gradients come from a GradientTape that watches the parameters only."""

    name, title, module, package, prefix = "tensorflow", "TensorFlow", "tensorflow", "tensorflow>=2.18", "tf"
    modes = MODES
    written, rethreads = AS_WRITTEN, False
    internals = ("tensorflow.python.eager", "tensorflow.python.framework", "tensorflow.python.distribute")
    builders = ("keras", "tensorflow")
    draws_otherwise = "for one seed TensorFlow draws other random numbers in a graph than in eager"
    idioms = MappingProxyType(
        {"cond": "tf.cond", "switch": "tf.switch_case", "while_loop": "tf.while_loop", "scan": "tf.while_loop"}
    )

    def __init__(self) -> None:
        super().__init__()
        self.process = TensorFlowProcess(self)
        self.devices = TensorFlowDevices(self)
        self.compiler = TensorFlowCompiler(self)
        self.state = TensorFlowState(self)
        self.numbers = TensorFlowNumbers(self)
        self.ops = TensorFlowOps(self)
        self.errors = TensorFlowErrors(self)
        self.words = TensorFlowWords(self)

    @staticmethod
    def environment(cache: Path, device: Device = "cpu", threads: int = 1) -> dict[str, str]:
        """Return variables for the threads, and for no log of missing devices; TensorFlow keeps no compiled code."""
        hidden = {"CUDA_VISIBLE_DEVICES": "-1"} if device == "cpu" else {}
        return {LOG_LEVEL[0]: LOG_LEVEL[1], "OMP_NUM_THREADS": str(threads), **hidden}

    def start(self, seed: int, *, doubles: bool | None = False, device: Device = "cpu", threads: int = 1) -> None:
        """Prepare this process: its threads and the seed; our own functions get NumPy's rules for mixed operators.

        For the CPU every GPU is hidden, since TensorFlow computes there unasked.
        """
        import tensorflow as tf

        super().start(seed, device=device, threads=threads)
        if device == "cpu" and self.devices.gpu():
            tf.config.set_visible_devices([], "GPU")
        with suppress(RuntimeError):  # TensorFlow has computed already, and keeps its threads
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.random.set_seed(seed)
        if doubles is not None:
            tf.experimental.numpy.experimental_enable_numpy_behavior()
            NUMBER[:] = [np.float64 if doubles else np.float32]

    def functions(self) -> dict[str, Function]:
        """Return TensorFlow's functions under the names of `graphs`."""
        return compose(functions())

    def arrays(self, tree: Any) -> Any:
        """Return a container with tensors copied to the device; tensors that lie there already stay."""
        import tensorflow as tf

        def place(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray):
                return tf.constant(leaf)
            return tf.identity(leaf) if isinstance(leaf, tf.Tensor) and self.device == "cuda" else leaf

        with tf.device("GPU:0" if self.device == "cuda" else "CPU:0"):
            return optree.tree_map(place, tree, none_is_leaf=True)

    def numpy(self, tree: Any) -> Any:
        """Return a container with copied NumPy arrays; sparse and ragged tensors become dense."""
        import tensorflow as tf

        def numbers(value: Any) -> Any:
            if isinstance(value, tf.RaggedTensor):
                value = value.to_tensor()
            if isinstance(value, (tf.IndexedSlices, tf.SparseTensor)):
                sparse = isinstance(value, tf.SparseTensor)
                value = tf.sparse.to_dense(tf.sparse.reorder(value)) if sparse else tf.convert_to_tensor(value)
            return value.numpy() if isinstance(value, (tf.Tensor, tf.Variable)) else None

        return to_containers(tree, numbers)

    def build(self, mode: str, loss: Function, argnum: int | None) -> Function:
        """Return the whole step, traced for each signature in the modes that compile."""
        around = without_compilation(self, loss)
        run = around.function if self.traits(mode) is EAGER else loss
        step = ValueStep(run) if argnum is None else TapeStep(run, argnum, trainables_in(loss))
        if self.traits(mode) is AS_WRITTEN:
            return FunctionsStep(step, around)
        if self.traits(mode) is EAGER:
            return UncompiledStep(step, around.within)
        return specialise(self.traits(mode), step, loss)

    def observed(self, step: Function) -> Observations:
        """Return the traces of the step, how their arguments differ, and the seconds of tracing alone."""
        step = step.run if isinstance(step, WholeStep) else step
        return step.observed() if isinstance(step, (SpecialisedFunction, FunctionsStep)) else Observations()


def without_compilation(engine: Engine, function: Function) -> UncompiledFunction:
    """Return a function whose own `tf.function` parts run as written; sets the engine's `compiles` if it has any."""
    import tensorflow as tf

    met = partial(setattr, engine, "compiles", True)
    return UncompiledFunction(function, python_function, met, [(tf, "function")], keras_models)


def specialise(mode: Mode, step: Function, written: Function) -> SpecialisedFunction:
    """Return a step compiled for the author's `input_signature`, or for each signature that it meets."""
    import tensorflow as tf

    options = {name: value for name, value in mode.options.items() if name not in PROCESS}
    if signature := getattr(written, "input_signature", None):
        options["input_signature"] = signature
    return SpecialisedFunction(step, lambda f, _: tf.function(f, **options), Leaves(), written)


class TensorFlowProcess(Process):
    """The process role of TensorFlow."""

    switches = staticmethod(switches)

    def reset(self, seed: int) -> None:
        """Seed every generator."""
        import tensorflow as tf

        tf.random.set_seed(seed)


class TensorFlowDevices(Devices):
    """The devices role of TensorFlow."""

    def gpu(self) -> str | None:
        """Return the name of the first physical GPU; None where there is none."""
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        return str(tf.config.experimental.get_device_details(devices[0]).get("device_name", "GPU")) if devices else None

    @property
    def waits(self) -> Function | None:
        """Return a function that waits for all devices; None on the CPU."""
        import tensorflow as tf

        return (lambda _: tf.test.experimental.sync_devices()) if self.engine.device == "cuda" else None


class TensorFlowWords(Words):
    """The words role of TensorFlow."""

    def offer(self) -> Offer:
        """Return the parameters of `tf.function` that may be written out."""
        os.environ.setdefault(*LOG_LEVEL)
        import tensorflow as tf

        names = [name for name in inspect.signature(tf.function).parameters if name not in UNWRITTEN]
        return Offer({"function": (*names, *PROCESS)})

    def traits(self, rows: Sequence[Mode], options: Mapping[str, Any]) -> Mode:
        """Return the traits of a function; `reduce_retracing=True` traces for shapes that vary."""
        return replace(rows[0], relaxes=bool(options.get("reduce_retracing")))


class TensorFlowCompiler(Compiler):
    """The compiler role of TensorFlow."""

    def eagerly(self, function: Function) -> AbstractContextManager[object]:
        """A context in which the user's own `tf.function` objects run as written."""
        return without_compilation(self.engine, function).within()

    def compiled(self, mode: str, function: Function) -> Function:
        """Return the function compiled by `tf.function`."""
        return specialise(self.engine.traits(mode), function, function)

    def own_mode(self, function: Function) -> str:
        """Return the mode that has the options with which a file compiles a function."""
        if python_function(function) is None:
            return ""
        usual = {"autograph": True, "reduce_retracing": False, "jit_compile": None}
        said = {name: getattr(function, f"_{name}", value) for name, value in usual.items()}  # private to TensorFlow
        own = {name: value for name, value in said.items() if value != usual[name]}
        return next((self.engine.words.full_name(each.name) for each in MODES if each.word and each.options == own), "")


class TensorFlowState(CallState):
    """The state role of TensorFlow."""

    kept = staticmethod(snapshot)
    making = staticmethod(making)

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """Return a training step where a call of the function changes trainable variables; else None."""
        around = without_compilation(self.engine, function)
        return training_step(
            self.engine,
            around,
            calls[0],
            lambda: is_trained(changed()),
            lambda: FunctionsStep(function, around),
            lambda mode: self.engine.compiler.compiled(mode, function),
        )

    def reader(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
    ) -> StateReader:
        """Return a reader of the variables that a call has changed."""
        return state_reader(changed)


class TensorFlowOps(Ops):
    """The ops role of TensorFlow."""

    def dtypes(self, step: Function, call: tuple[Any, ...]) -> Iterable[Any]:
        """Return the dtypes of the results of a call's ops: mixed precision computes in dtypes that no argument has."""
        from tensorflow.python.framework import op_callbacks

        seen = set[str]()

        def note(op: Any, inputs: Any, attributes: Any, outputs: Any, op_name: Any = None, graph: Any = None) -> None:
            seen.update(output.dtype.name for output in outputs if hasattr(output, "dtype"))

        op_callbacks.add_op_callback(note)
        try:
            step(*call)
        finally:
            op_callbacks.remove_op_callback(note)
        return seen


class TensorFlowNumbers(Numbers):
    """The numbers role of TensorFlow."""

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """Return arguments with changed floats; for float64, tensors are cast."""
        if change.seed is not None:
            return super().changed(tree, change)
        import tensorflow as tf

        wide = dict.fromkeys((tf.float16, tf.bfloat16, tf.float32), tf.float64) | {tf.complex64: tf.complex128}
        return optree.tree_map(
            lambda x: tf.cast(x, wide[x.dtype]) if tf.is_tensor(x) and x.dtype in wide else x, tree, none_is_leaf=True
        )

    @contextmanager
    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> Iterator[None]:
        """A context with changed floats in arrays and variables; variables cannot become float64."""
        with (
            super().meanwhile(holders, change),
            nudge_variables(holders, change) if change.seed is not None else nullcontext(),
        ):
            yield


class TensorFlowErrors(Errors):
    """The errors role of TensorFlow."""

    @contextmanager
    def checked(self) -> Iterator[None]:
        """A context with `tf.debugging.enable_check_numerics`."""
        import tensorflow as tf

        tf.debugging.enable_check_numerics()
        try:
            yield
        finally:
            tf.debugging.disable_check_numerics()

    def traced(self, error: BaseException) -> bool:
        """Return whether an error came before a graph ran."""
        return "Graph execution error" not in str(error)

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """Return whether AutoGraph or a graph does not support something; TensorFlow says so while it traces."""
        said = str(error)
        return isinstance(error, NotImplementedError) or any(words in said for words in REFUSALS)

    def said(self, error: BaseException) -> str | None:
        """Return the sentence for an error of a trace or a graph; None for other errors."""
        return sentence(error)

    def reason(self, error: BaseException) -> str:
        """Return the first sentence of the message's last line: before it AutoGraph quotes the user's code."""
        last = (str(error).strip().splitlines() or [""])[-1].strip().partition(". ")[0]
        name = type(error).__name__
        return without_folders(last if last.startswith(name) else f"{name}: {last}")


def python_function(value: Any) -> Function | None:
    """Return the Python function of a `tf.function` object; None for other values."""
    import tensorflow as tf

    return value.python_function if isinstance(value, tf.types.experimental.PolymorphicFunction) else None


class FunctionsStep(WrittenStep):
    """A step whose file compiles by itself, with the functions that it compiles."""

    def __init__(self, step: Function, around: UncompiledFunction) -> None:
        super().__init__(step, self._noting)
        self.around, self.made, self.entries = around, list[Any](), list(around.entries)

    def _noting(self, args: Sequence[Any]) -> AbstractContextManager[None]:
        def make(function: Function, maker: Function) -> Any:
            self.made.append(maker(function))
            return self.made[-1]

        self.entries += self.around.of_objects(args)
        return watch_makers(self.around.makers, make)

    def observed(self) -> Observations:
        """Return one compilation per trace of a function."""
        held = [entry.space.get(entry.name) for entry in self.entries if isinstance(entry.space, dict)]
        functions = {id(each): each for each in (*self.around.written, *held, *self.made) if python_function(each)}
        return Observations(
            [
                Compilation(f"{function.python_function.__name__} was traced")
                for function in functions.values()
                for _ in range(traces(function))
            ]
        )


def traces(function: Any) -> int:
    """Return how often a `tf.function` was traced; a method has one function per object."""
    of_objects = getattr(function, "_descriptor_cache", {}).values()
    return sum(each.experimental_get_tracing_count() for each in (function, *of_objects))


RUNNERS = ("train_function", "test_function", "predict_function")
"""The attributes in which a Keras model holds its own compiled steps."""


def keras_models(value: Any) -> Iterator[Substitution]:
    """Yield the substitutions that make a Keras model run eagerly; cleared runners are made again on demand."""
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(value, keras.Model) or value.run_eagerly:
        return
    space = vars(value)
    yield Substitution(space, "_run_eagerly", True, always=False)
    yield from (Substitution(space, name, None, always=False) for name in RUNNERS if name in space)


_FILE = re.compile(r'File "([^"]+)", line (\d+), in ')
_NOISE = re.compile(
    r"\s*\[Op:\w+\]( name: ?\S*)?|\s*\[\[\{\{.*|^\s*\*?\s*File .*|\{\{(function_)?node [^}]*\}\}\s*|\[_XlaMust[^]]*\]",
    re.MULTILINE,
)
_CLASS = re.compile(r"generic TraceType for <?(?:class )?([\w.]+)")
_PLACES = ("Graph execution error", "Detected at node", "File ", "Stack trace")
"""The first words of lines that tell the place of a fault, and not the fault."""
REFUSALS = ("in user code", "XLA compilation requires", "Detected unsupported operations", "generic TraceType")
"""The words in errors about code that a graph does not support."""
_REMEDIES = {
    "has no attribute 'numpy'": "compute with tf, or call NumPy by tf.numpy_function",
    "to a NumPy array": "compute with tf, or call NumPy by tf.numpy_function",
    "as a Python `bool`": "choose by tf.cond or tf.where, or let AutoGraph read the function's source",
    "singleton tf.Variable": "make variables once, outside of the function",
    "XLA": "leave jit_compile to what XLA has kernels for",
}
"""The alternative in TensorFlow, by the words of its error."""


def sentence(error: BaseException) -> str | None:
    """Return `no attribute 'numpy'; compute with tf (mine.py:4)` for an error of a trace or a graph; else None."""
    text = str(error)
    if kind := _CLASS.search(text):
        return f"tf.function takes no {kind[1]}; make it a NamedTuple, a dict or a tf.experimental.ExtensionType"
    if not any(words in text for words in (*REFUSALS, "Graph execution error", "[Op:")):
        return None
    places = [f"{Path(file).name}:{line}" for file, line in _FILE.findall(text) if is_users(file)]
    lines = [
        line.strip() for line in _NOISE.sub("", text).splitlines() if line.strip() and "(most recent call" not in line
    ]
    telling = (line for line in lines if not line.startswith(_PLACES))
    said = lines[-1] if "in user code" in text else next(telling, lines[0])
    words = re.sub(r"^\w+(Error|Exception): | compatible with node.*", "", said).partition(". ")[0].rstrip(".")
    remedy = next((f"; {remedy}" for signs, remedy in _REMEDIES.items() if signs in text), "")
    place = places[-1] if places else place_of(error)
    return f"{words}{remedy}" + (f" ({place})" if place else "")
