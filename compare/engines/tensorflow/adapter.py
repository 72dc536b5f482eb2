"""The adapter of TensorFlow: eager on a gradient tape, and functions that AutoGraph reads and compiles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare import text
from compare.engines.base import CallState, Compiler, Devices, Engine, Errors, Mode, Numbers, Process
from compare.engines.composites import compose
from compare.engines.containers import to_containers
from compare.engines.framework import Framework
from compare.engines.leaves import Everything, SpecialisedFunction
from compare.engines.nudge import FloatChange
from compare.engines.reach import ReachedCode
from compare.engines.step import (
    Bindable,
    BoundCall,
    Compilation,
    Function,
    Observations,
    StateReader,
    TrainingFunction,
    ValueStep,
    WholeStep,
    loss_in,
)
from compare.engines.tensorflow import refusals
from compare.engines.tensorflow.functions import NUMBER, functions
from compare.engines.tensorflow.state import is_trained, making, nudge_variables, snapshot, state_reader, switches
from compare.engines.uncompiled import (
    Substitution,
    UncompiledFunction,
    UncompiledStep,
    WrittenStep,
    training_step,
    watch_makers,
)
from compare.errors import NoGradientsError, without_folders
from compare.records.record import WRITTEN, Device

EAGER = Mode("eager")
FUNCTION = Mode("function", traces=True)
RELAXED = Mode("function-relaxed", traces=True, relaxes=True)
XLA = Mode("function-xla", traces=True)
AS_WRITTEN = Mode(WRITTEN, usual=False, suite=False)
_OPTIONS: dict[Mode, dict[str, Any]] = {FUNCTION: {}, RELAXED: {"reduce_retracing": True}, XLA: {"jit_compile": True}}


class TensorFlow(Framework):
    """The adapter of TensorFlow. Gradients come from a GradientTape that watches the parameters only."""

    name, title, module, package, prefix = "tensorflow", "TensorFlow", "tensorflow", "tensorflow>=2.18", "tf"
    modes = (EAGER, FUNCTION, RELAXED, XLA, AS_WRITTEN)
    written = AS_WRITTEN
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
        self.errors = TensorFlowErrors(self)

    @staticmethod
    def environment(cache: Path, device: Device = "cpu") -> dict[str, str]:
        """Return variables for one thread, and for no log of missing devices; TensorFlow keeps no compiled code."""
        hidden = {"CUDA_VISIBLE_DEVICES": "-1"} if device == "cpu" else {}
        return {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", **hidden}

    def start(self, seed: int, *, doubles: bool | None = False, device: Device = "cpu") -> None:
        """Prepare this process: one thread and the seed; our own functions get NumPy's rules for mixed operators.

        For the CPU every GPU is hidden, since TensorFlow computes there unasked.
        """
        import tensorflow as tf

        super().start(seed, device=device)
        if device == "cpu" and self.devices.gpu():
            tf.config.set_visible_devices([], "GPU")
        with suppress(RuntimeError):  # TensorFlow has computed already, and keeps its threads
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)
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

    options = dict(_OPTIONS[mode])
    if signature := getattr(written, "input_signature", None):
        options["input_signature"] = signature
    return SpecialisedFunction(step, lambda f: tf.function(f, **options), Everything(), written)


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


class TensorFlowCompiler(Compiler):
    """The compiler role of TensorFlow."""

    def eagerly(self, function: Function) -> AbstractContextManager[object]:
        """A context in which the user's own `tf.function` objects run as written."""
        return without_compilation(self.engine, function).within()

    def compiled(self, mode: str, function: Function) -> Function:
        """Return the function compiled by `tf.function`."""
        return specialise(self.engine.traits(mode), function, function)


class TensorFlowState(CallState):
    """The state role of TensorFlow."""

    kept = staticmethod(snapshot)
    making = staticmethod(making)

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """Return a training step where a call of the function changes trainable variables; else None."""
        around = without_compilation(self.engine, function)
        around(*calls[0])
        if not is_trained(changed()):
            return None
        return training_step(
            self.engine,
            around,
            calls[0],
            lambda: FunctionsStep(function, around),
            lambda mode: self.engine.compiler.compiled(mode, function),
        )

    def reader(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
    ) -> StateReader:
        """Return a reader of the variables that a call has changed."""
        return state_reader(changed)


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
        return isinstance(error, NotImplementedError) or any(words in said for words in refusals.REFUSALS)

    def said(self, error: BaseException) -> str | None:
        """Return the sentence for an error of a trace or a graph; None for other errors."""
        return refusals.sentence(error)

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
        self.entries += self.around.of_objects(args)
        return watch_makers(self.around.makers, self._noted)

    def _noted(self, function: Function, maker: Function) -> Any:
        self.made.append(maker(function))
        return self.made[-1]

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


class TapeStep(Bindable):
    """`step(*args) -> (value, gradients)`; the tape watches only the differentiated tensors.

    These are the trainable variables that the loss reaches by itself (`reached`), if there are any, or else the floats
    of one argument; for a model its variables. The step raises NoGradientsError where there is no loss, or no float.
    """

    def __init__(self, loss: Function, argnum: int, reached: Sequence[Any] = ()) -> None:
        self.loss, self.argnum, self.reached = loss, argnum, reached
        self.gradients_in = ""

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; missing gradients become zeros after the run."""
        import tensorflow as tf

        loss, argument = self.loss, args[self.argnum] if args else ()
        outer = _floats([*{id(each): each for holder in self.reached for each in _variables(holder)}.values()])
        if outer and not hasattr(argument, "trainable_variables"):
            argument = list(outer.values())
        named = _floats(argument)
        leaves = list(named.values())
        if not leaves:
            raise NoGradientsError("the first argument holds no floats; give the parameters first")
        self.gradients_in = text.count_noun(len(leaves), "trained variable") if outer else ""
        watched = leaves[0] if leaves[0] is argument else leaves

        is_loss = False  # if the first run returned just the loss, later runs skip the search

        def run() -> tuple[Any, Any]:
            nonlocal is_loss
            with tf.GradientTape() as tape:
                tape.watch(watched)
                value = loss(*args)
            of = value if is_loss else _scalar(loss_in(value))
            is_loss = of is value
            return value, tape.gradient(of, watched)

        def result(returned: tuple[Any, Any]) -> tuple[Any, Any]:
            value, gradients = returned
            gradients = gradients if watched is leaves else [gradients]
            dense = {
                name: tf.zeros_like(leaf) if gradient is None else tf.convert_to_tensor(gradient)
                for (name, leaf), gradient in zip(named.items(), gradients, strict=True)
            }
            return value, _place_gradients(argument, dense)

        return BoundCall(run, result)


def trainables_in(function: Any) -> list[Any]:
    """Return the trainable objects that a function reaches by itself: variables, and holders of variables."""
    import tensorflow as tf

    values = ReachedCode(function).values
    return [value for value in values if isinstance(value, (tf.Variable, tf.Module)) or _is_layer(value)]


def _is_layer(value: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(value, (keras.Layer, keras.Variable))


def _variables(holder: Any) -> list[Any]:
    """Return the trainable variables of a variable, module or layer."""
    inside = getattr(holder, "trainable_variables", None)
    return list(inside) if inside is not None else [holder] if holder.trainable else []


def _floats(argument: Any) -> dict[int, Any]:
    """Return the floats to differentiate in an argument, by the index of the leaf or of a model's variable."""
    import tensorflow as tf

    model = getattr(argument, "trainable_variables", None)
    leaves = list(model) if model is not None else optree.tree_leaves(argument)
    are = (tf.Tensor, tf.Variable)
    tensors = {
        i: leaf.value if hasattr(leaf, "path") and hasattr(leaf, "value") else leaf for i, leaf in enumerate(leaves)
    }
    return {i: x for i, x in tensors.items() if isinstance(x, are) and (x.dtype.is_floating or x.dtype.is_complex)}


def _place_gradients(argument: Any, gradients: dict[int, Any]) -> Any:
    """Return the gradients in the argument's structure; by index for a model, or where only some leaves are floats."""
    leaves, structure = optree.tree_flatten(argument)
    if len(gradients) != len(leaves) or hasattr(argument, "trainable_variables"):
        return gradients
    return optree.tree_unflatten(structure, list(gradients.values()))


def _scalar(loss: Any) -> Any:
    """Return the loss. Raises NoGradientsError where the value is no scalar float."""
    import tensorflow as tf

    if not tf.is_tensor(loss):
        raise NoGradientsError(f"the function gives a {type(loss).__name__} and no loss; return one float")
    if loss.shape.rank not in (0, None) or not loss.dtype.is_floating:
        raise NoGradientsError(f"the function gives {loss.dtype.name}{list(loss.shape)}; return one float")
    return loss
