"""TensorFlow: eager on a gradient tape, and as functions that AutoGraph reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare.engines.base import Mode
from compare.engines.composed import composed
from compare.engines.containers import opened
from compare.engines.framework import Framework
from compare.engines.leaves import Everything, Specialised
from compare.engines.reached import ReachedCode
from compare.engines.state import Piece
from compare.engines.step import (
    Bindable,
    BoundCall,
    Compilation,
    Function,
    Observed,
    StateReader,
    TrainingFunction,
    WholeStep,
    bound,
    loss_in,
)
from compare.engines.switches import Switch
from compare.engines.tensorflow.functions import NUMBER, functions
from compare.engines.tensorflow.state import TensorFlowTraining, is_trained, kept, making, state_reader, switches
from compare.engines.uncompiled import UncompiledFunction, UncompiledStep
from compare.errors import NoGradientsError, without_folders
from compare.records.device import Device
from compare.records.record import WRITTEN

EAGER = Mode("eager")
FUNCTION = Mode("function", traces=True)
RELAXED = Mode("function-relaxed", traces=True, relaxes=True)
XLA = Mode("function-xla", traces=True)
AS_WRITTEN = Mode(WRITTEN, usual=False, suite=False)
_OPTIONS: dict[Mode, dict[str, Any]] = {FUNCTION: {}, RELAXED: {"reduce_retracing": True}, XLA: {"jit_compile": True}}


class TensorFlow(Framework):
    """Gradients come from a GradientTape that watches the parameters alone; a step is compiled whole."""

    name, title, module, package, prefix = "tensorflow", "TensorFlow", "tensorflow", "tensorflow>=2.18", "tf"
    modes = (EAGER, FUNCTION, RELAXED, XLA, AS_WRITTEN)
    written = AS_WRITTEN
    internals = ("tensorflow.python.eager", "tensorflow.python.framework", "tensorflow.python.distribute")
    builders = ("keras", "tensorflow")
    draws_otherwise = "for one seed TensorFlow draws other random numbers in a graph than in eager"
    idioms = MappingProxyType(
        {"cond": "tf.cond", "switch": "tf.switch_case", "while_loop": "tf.while_loop", "scan": "tf.while_loop"}
    )

    @staticmethod
    def environment(cache: Path, device: Device = "cpu") -> dict[str, str]:
        """One thread, and no log of the devices that are not there; TensorFlow keeps no compiled code."""
        hidden = {"CUDA_VISIBLE_DEVICES": "-1"} if device == "cpu" else {}
        return {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", **hidden}

    def start(self, seed: int, *, doubles: bool | None = False) -> None:
        """One thread, and the seed; functions of ours take NumPy's rules for operators between tensors and numbers."""
        import tensorflow as tf

        super().start(seed)
        with suppress(RuntimeError):  # it has computed already, and keeps the threads that it has
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.random.set_seed(seed)
        if doubles is not None:
            tf.experimental.numpy.experimental_enable_numpy_behavior()
            NUMBER[:] = [np.float64 if doubles else np.float32]

    def switches(self) -> Sequence[Switch]:
        """What random numbers come from."""
        return switches()

    def use(self, device: Device) -> None:
        """See the base; for the CPU every GPU is hidden, since TensorFlow computes there unasked."""
        import tensorflow as tf

        super().use(device)
        if device == "cpu" and self.gpu():
            tf.config.set_visible_devices([], "GPU")

    def gpu(self) -> str | None:
        """The first physical one."""
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        return str(tf.config.experimental.get_device_details(devices[0]).get("device_name", "GPU")) if devices else None

    @property
    def waits(self) -> Function | None:
        """On a GPU, until it has done all that it was given."""
        import tensorflow as tf

        return (lambda _: tf.test.experimental.sync_devices()) if self.device == "cuda" else None

    def functions(self) -> dict[str, Function]:
        """See the class."""
        return composed(functions())

    def arrays(self, tree: Any) -> Any:
        """Tensors, copied to the device; those that lie there already stay."""
        import tensorflow as tf

        def placed(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray):
                return tf.constant(leaf)
            return tf.identity(leaf) if isinstance(leaf, tf.Tensor) and self.device == "cuda" else leaf

        with tf.device("GPU:0" if self.device == "cuda" else "CPU:0"):
            return optree.tree_map(placed, tree, none_is_leaf=True)

    def numpy(self, tree: Any) -> Any:
        """Arrays, copied."""
        import tensorflow as tf

        def numbers(value: Any) -> Any:
            if isinstance(value, tf.RaggedTensor):
                value = value.to_tensor()
            if isinstance(value, (tf.IndexedSlices, tf.SparseTensor)):
                sparse = isinstance(value, tf.SparseTensor)
                value = tf.sparse.to_dense(tf.sparse.reorder(value)) if sparse else tf.convert_to_tensor(value)
            return value.numpy() if isinstance(value, (tf.Tensor, tf.Variable)) else None

        return opened(tree, numbers)

    def build(self, arm: str, loss: Function, argnum: int | None) -> Function:
        """The whole step, traced for each signature."""
        around = UncompiledFunction(loss, python_function, self._met) if self.mode(arm) is EAGER else None
        run = around.function if around else loss
        step = (lambda *args: (run(*args), ())) if argnum is None else TapeStep(run, argnum)
        if self.mode(arm) is AS_WRITTEN:
            return WrittenStep(step, [value for value in (loss, *ReachedCode(loss).values) if python_function(value)])
        if around is None:
            return self.compiled(arm, step)
        return UncompiledStep(step, around) if around.compiles else step

    def eagerly(self, function: Function) -> AbstractContextManager[object]:
        """By what the user's own compiled functions compile."""
        return UncompiledFunction(function, python_function, self._met).within()

    def compiled(self, arm: str, function: Function) -> Function:
        """See the base."""
        import tensorflow as tf

        return Specialised(function, lambda f: tf.function(f, **_OPTIONS[self.mode(arm)]), Everything())

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """What a call of it shows to change variables that are trained."""
        around = UncompiledFunction(function, python_function, self._met)
        around(*calls[0])
        if not is_trained(changed()):
            return None
        eager = around if around.compiles else function
        plain = {EAGER: eager, AS_WRITTEN: function}
        return TensorFlowTraining(lambda arm: plain.get(self.mode(arm)) or self.compiled(arm, function))

    def state(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
    ) -> StateReader:
        """Variables that a call has changed."""
        return state_reader(changed)

    def kept(self, value: Any) -> Piece | None:
        """Variables."""
        return kept(value)

    def making(self, add: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Variables."""
        return making(add)

    def reset(self, seed: int) -> None:
        """The seed of every generator."""
        import tensorflow as tf

        tf.random.set_seed(seed)

    def doubled(self, tree: Any) -> Any:
        """See the base."""
        import tensorflow as tf

        wide = dict.fromkeys((tf.float16, tf.bfloat16, tf.float32), tf.float64) | {tf.complex64: tf.complex128}
        return optree.tree_map(
            lambda x: tf.cast(x, wide[x.dtype]) if tf.is_tensor(x) and x.dtype in wide else x, tree, none_is_leaf=True
        )

    def dtypes(self, step: Function, call: tuple[Any, ...]) -> Iterable[Any]:
        """Those of what the ops of a call give: a policy of mixed precision computes in what no argument is in."""
        from tensorflow.python.framework import op_callbacks

        seen = set[str]()

        def note(op: Any, inputs: Any, attributes: Any, outputs: Any, name: Any = None, graph: Any = None) -> None:
            seen.update(output.dtype.name for output in outputs if hasattr(output, "dtype"))

        op_callbacks.add_op_callback(note)
        try:
            step(*call)
        finally:
            op_callbacks.remove_op_callback(note)
        return seen

    def observed(self, step: Function) -> Observed:
        """Traces of the step, in what their arguments differ, and the seconds of tracing; what follows is not told."""
        step = step.run if isinstance(step, WholeStep) else step
        return step.observed() if isinstance(step, (Specialised, WrittenStep)) else Observed()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """`tf.debugging.enable_check_numerics`."""
        import tensorflow as tf

        tf.debugging.enable_check_numerics()
        try:
            yield
        finally:
            tf.debugging.disable_check_numerics()

    def traced(self, error: BaseException) -> bool:
        """Any but that of a graph that runs."""
        return "Graph execution error" not in str(error)

    def refuses(self, error: BaseException, arm: str = "") -> bool:
        """What AutoGraph and graphs do not take: TensorFlow raises these as it traces user code."""
        said = str(error)
        return isinstance(error, NotImplementedError) or "in user code" in said or "XLA compilation requires" in said

    def reason(self, error: BaseException) -> str:
        """The first sentence of the last line: what AutoGraph raises quotes the user's code before it."""
        last = (str(error).strip().splitlines() or [""])[-1].strip().partition(". ")[0]
        name = type(error).__name__
        return without_folders(last if last.startswith(name) else f"{name}: {last}")


def python_function(value: Any) -> Function | None:
    """What `tf.function` was given, of what it gives."""
    import tensorflow as tf

    return value.python_function if isinstance(value, tf.types.experimental.PolymorphicFunction) else None


class WrittenStep(Bindable):
    """A step whose file compiles by itself, and the functions that it compiles."""

    def __init__(self, step: Function, functions: Sequence[Any]) -> None:
        self.step, self.functions = step, list({id(each): each for each in functions}.values())

    def bind(self, *args: Any) -> BoundCall:
        """See the base."""
        return bound(self.step, args)

    def observed(self) -> Observed:
        """A compilation for each trace."""
        return Observed(
            [
                Compilation(f"{function.python_function.__name__} was traced")
                for function in self.functions
                for _ in range(function.experimental_get_tracing_count())
            ]
        )


class TapeStep(Bindable):
    """`step(*args) -> (what the loss returns, gradients)`; a tape watches the floats of one argument alone.

    Those of a model are its trainable variables. The step raises NoGradientsError where there is no loss, or no float.
    """

    def __init__(self, loss: Function, argnum: int) -> None:
        self.loss, self.argnum = loss, argnum

    def bind(self, *args: Any) -> BoundCall:
        """See the base; gradients that are none become zeros afterwards."""
        import tensorflow as tf

        loss, argument = self.loss, args[self.argnum]
        named = _floats(argument)
        leaves = list(named.values())
        if not leaves:
            raise NoGradientsError("the first argument holds no floats; give the parameters first")
        watched = leaves[0] if leaves[0] is argument else leaves

        def run() -> tuple[Any, Any]:
            with tf.GradientTape() as tape:
                tape.watch(watched)
                value = loss(*args)
            return value, tape.gradient(_scalar(loss_in(value)), watched)

        def result(returned: tuple[Any, Any]) -> tuple[Any, Any]:
            value, gradients = returned
            gradients = gradients if watched is leaves else [gradients]
            dense = {
                name: tf.zeros_like(leaf) if gradient is None else tf.convert_to_tensor(gradient)
                for (name, leaf), gradient in zip(named.items(), gradients, strict=True)
            }
            return value, _placed(argument, dense)

        return BoundCall(run, result)


def _floats(argument: Any) -> dict[int, Any]:
    """What is differentiated in an argument, by the place of its leaf, or of a variable of a model."""
    import tensorflow as tf

    model = getattr(argument, "trainable_variables", None)
    leaves = list(model) if model is not None else optree.tree_leaves(argument)
    are = (tf.Tensor, tf.Variable)
    tensors = {i: leaf.value if model is not None and hasattr(leaf, "path") else leaf for i, leaf in enumerate(leaves)}
    return {i: x for i, x in tensors.items() if isinstance(x, are) and (x.dtype.is_floating or x.dtype.is_complex)}


def _placed(argument: Any, gradients: dict[int, Any]) -> Any:
    """The gradients where their leaves lie; by number where there are others, and those of a model."""
    leaves, structure = optree.tree_flatten(argument)
    if len(gradients) != len(leaves) or hasattr(argument, "trainable_variables"):
        return gradients
    return optree.tree_unflatten(structure, list(gradients.values()))


def _scalar(loss: Any) -> Any:
    """The loss. Raises NoGradientsError where it is none."""
    import tensorflow as tf

    if not tf.is_tensor(loss):
        raise NoGradientsError(f"the function gives a {type(loss).__name__} and no loss; return one float")
    if loss.shape.rank not in (0, None) or not loss.dtype.is_floating:
        raise NoGradientsError(f"the function gives {loss.dtype.name}{list(loss.shape)}; return one float")
    return loss
