"""TensorFlow: eager on a gradient tape, and as functions that AutoGraph reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare.frameworks.base import Framework, Function, Mode, Observed
from compare.frameworks.composed import composed
from compare.frameworks.leaves import Specialised
from compare.frameworks.tensorflow_step import stepped
from compare.run.device import Device

EAGER = Mode("eager")
FUNCTION = Mode("function", traces=True)
RELAXED = Mode("function-relaxed", traces=True, relaxes=True)
XLA = Mode("function-xla", traces=True)
_OPTIONS: dict[Mode, dict[str, Any]] = {FUNCTION: {}, RELAXED: {"reduce_retracing": True}, XLA: {"jit_compile": True}}


class TensorFlow(Framework):
    """Gradients come from a GradientTape that watches the parameters alone; a step is compiled whole."""

    name, title, module, package, prefix = "tensorflow", "TensorFlow", "tensorflow", "tensorflow>=2.18", "tf"
    modes = (EAGER, FUNCTION, RELAXED, XLA)
    idioms = MappingProxyType(
        {"cond": "tf.cond", "switch": "tf.switch_case", "while_loop": "tf.while_loop", "scan": "tf.while_loop"}
    )

    @staticmethod
    def environment(cache: Path, device: Device = "cpu") -> dict[str, str]:
        """One thread, and no log of the devices that are not there; TensorFlow keeps no compiled code."""
        hidden = {"CUDA_VISIBLE_DEVICES": "-1"} if device == "cpu" else {}
        return {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", **hidden}

    def start(self, seed: int, *, doubles: bool = False) -> None:
        """One thread, the seed, and NumPy's rules for operators between tensors and numbers."""
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.random.set_seed(seed)
        tf.experimental.numpy.experimental_enable_numpy_behavior()
        _number[:] = [np.float64 if doubles else np.float32]

    def use(self, device: Device) -> None:
        """See the base; for the CPU every GPU is hidden, since TensorFlow computes there unasked."""
        import tensorflow as tf

        super().use(device)
        if device == "cpu" and self.gpu():
            tf.config.set_visible_devices([], "GPU")

    def gpu(self) -> str | None:
        """The first physical one."""
        import tensorflow as tf

        found = tf.config.list_physical_devices("GPU")
        return str(tf.config.experimental.get_device_details(found[0]).get("device_name", "GPU")) if found else None

    def wait(self, result: Any) -> None:
        """Return when the GPU has done all that it was given."""
        import tensorflow as tf

        if self.device == "cuda":
            tf.test.experimental.sync_devices()

    def functions(self) -> dict[str, Function]:
        """See the class."""
        return composed(_functions())

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

        return optree.tree_map(lambda x: x.numpy() if isinstance(x, tf.Tensor) else x, tree, none_is_leaf=True)

    def build(self, arm: str, loss: Function, argnum: int | None) -> Function:
        """The whole step, traced for each signature."""
        step = (lambda *args: (loss(*args), ())) if argnum is None else stepped(loss, argnum)
        return step if self.mode(arm) is EAGER else self.compiled(arm, step)

    def compiled(self, arm: str, function: Function) -> Function:
        """See the base."""
        import tensorflow as tf

        return Specialised(function, lambda f: tf.function(f, **_OPTIONS[self.mode(arm)]), tf.Tensor)

    def reset(self, seed: int) -> None:
        """The seed of every generator."""
        import tensorflow as tf

        tf.random.set_seed(seed)

    def doubled(self, tree: Any) -> Any:
        """See the base."""
        import tensorflow as tf

        floats = (tf.float16, tf.float32)
        return optree.tree_map(
            lambda x: tf.cast(x, tf.float64) if tf.is_tensor(x) and x.dtype in floats else x, tree, none_is_leaf=True
        )

    def observed(self, step: Function) -> Observed:
        """Traces of the step, in what their arguments differ, and the seconds of tracing; what follows is not told."""
        return step.observed() if isinstance(step, Specialised) else Observed()

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

    def refuses(self, error: BaseException) -> bool:
        """What AutoGraph and graphs do not take: TensorFlow raises these as it traces user code."""
        said = str(error)
        return isinstance(error, NotImplementedError) or "in user code" in said or "XLA compilation requires" in said

    def reason(self, error: BaseException) -> str:
        """The first sentence of the last line: what AutoGraph raises quotes the user's code before it."""
        last = (str(error).strip().splitlines() or [""])[-1].strip().partition(". ")[0]
        name = type(error).__name__
        return last if last.startswith(name) else f"{name}: {last}"


_number: list[type[np.floating[Any]]] = [np.float32]
"""The dtype of numbers in the state of a loop, which TensorFlow keeps as tensors."""


def _functions() -> dict[str, Function]:
    import tensorflow as tf

    same = "tanh exp sin cos sqrt abs square floor reshape sigmoid broadcast_to roll squeeze"
    tensor = tf.convert_to_tensor

    def reduction(name: str) -> Function:
        f = getattr(tf, f"reduce_{name}")
        return lambda x, axis=None, keepdims=False: f(x, axis=axis, keepdims=keepdims)

    def place(f: Function) -> Function:
        return lambda x, axis=None: f(tf.reshape(x, [-1]), axis=0) if axis is None else f(x, axis=axis)

    def order(f: Function) -> Function:
        def ordered(x: Any, axis: int = -1, descending: bool = False) -> Any:
            return f(x, axis=axis, direction="DESCENDING" if descending else "ASCENDING")

        return ordered

    def along(f: Function) -> Function:
        return lambda x, axis=-1: f(x, axis=range(len(x.shape))[axis])  # axis=None is refused: tf takes it for -1

    def both(f: Function) -> Function:
        def called(x: Any, y: Any) -> Any:
            like = next(part for part in (x, y) if tf.is_tensor(part))
            return f(*(part if tf.is_tensor(part) else tf.cast(part, like.dtype) for part in (x, y)))

        return called

    def where(test: Any, x: Any, y: Any) -> Any:
        like = next((part for part in (x, y) if tf.is_tensor(part)), tensor(x))
        return tf.where(test, tf.cast(x, like.dtype), tf.cast(y, like.dtype))

    def clip(x: Any, min: Any = None, max: Any = None) -> Any:
        above = x if min is None else tf.maximum(x, tf.cast(min, x.dtype))
        return above if max is None else tf.minimum(above, tf.cast(max, x.dtype))  # the last wins, as in NumPy

    @tf.custom_gradient
    def dense(x: Any) -> Any:
        # what follows in the backward pass cannot take IndexedSlices, which `tf.gather` gives
        return tf.identity(x), tensor

    def conv2d(x: Any, weight: Any, bias: Any = None, stride: int = 1, padding: int = 0) -> Any:
        padded = tf.pad(x, [[0, 0], [0, 0], [padding] * 2, [padding] * 2])
        y = tf.nn.conv2d(tf.transpose(padded, (0, 2, 3, 1)), tf.transpose(weight, (2, 3, 1, 0)), stride, "VALID")
        return tf.transpose(y if bias is None else y + bias, (0, 3, 1, 2))

    def max_pool2d(x: Any, size: int) -> Any:
        y = tf.nn.max_pool2d(tf.transpose(x, (0, 2, 3, 1)), size, size, "VALID")
        return tf.transpose(y, (0, 3, 1, 2))

    def cond(test: Any, then: Function, otherwise: Function, *operands: Any) -> Any:
        return tf.cond(test, lambda: then(*operands), lambda: otherwise(*operands))

    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        chosen = [lambda branch=branch: branch(*operands) for branch in branches]
        return tf.switch_case(tf.clip_by_value(tf.cast(index, tf.int32), 0, len(branches) - 1), chosen)

    def parts_of(state: Any) -> list[Any]:
        return [tensor(x, _number[0]) if isinstance(x, float) else tensor(x) for x in optree.tree_leaves(state)]

    def while_loop(test: Function, body: Function, state: Any) -> Any:
        structure = optree.tree_structure(state)

        def packed(parts: Any) -> Any:
            return optree.tree_unflatten(structure, list(parts))

        found = tf.while_loop(
            lambda *parts: test(packed(parts)),
            lambda *parts: parts_of(body(packed(parts))),
            parts_of(state),
        )
        return packed(found)

    def scan(step: Function, state: Any, xs: Any) -> Any:
        length = tf.shape(xs)[0]
        outputs = tf.TensorArray(xs.dtype, size=length)
        structure = optree.tree_structure(state)

        def body(i: Any, outputs: Any, *parts: Any) -> Any:
            after, output = step(optree.tree_unflatten(structure, list(parts)), xs[i])
            return (i + 1, outputs.write(i, output), *parts_of(after))

        start = [0, outputs, *parts_of(state)]
        # XLA differentiates a loop whose number of steps it knows
        _, outputs, *after = tf.while_loop(lambda i, *_: i < length, body, start, maximum_iterations=xs.shape[0])
        return optree.tree_unflatten(structure, after), outputs.stack()

    return {
        **{name: getattr(tf, name) for name in same.split()},
        **{name: reduction(name) for name in ("sum", "mean", "max", "min", "prod", "any", "all", "logsumexp")},
        **{name: place(getattr(tf, name)) for name in ("argmax", "argmin")},
        **{name: order(getattr(tf, name)) for name in ("argsort", "sort")},
        **{name: both(getattr(tf, name)) for name in ("maximum", "minimum")},
        **{name: getattr(tf, name) for name in ("logical_and", "logical_or", "logical_not", "round")},
        **{name: along(getattr(tf.nn, name)) for name in ("softmax", "log_softmax")},
        "relu": tf.nn.relu,
        "log": tf.math.log,
        "gelu": tf.nn.gelu,
        "stack": tf.stack,
        "concat": lambda xs, axis=0: tf.concat(xs, axis),
        "unstack": tf.unstack,
        "expand_dims": lambda x, axis=0: tf.expand_dims(x, axis),
        "permute_dims": tf.transpose,
        "matrix_transpose": tf.linalg.matrix_transpose,
        "moveaxis": tf.experimental.numpy.moveaxis,
        "where": where,
        "clip": clip,
        "take": lambda x, indices, axis=0: tf.gather(dense(x), indices, axis=axis),
        "take_along_axis": lambda x, at, axis=-1: tf.gather(x, at, batch_dims=len(x.shape) - 1, axis=axis),
        "cumulative_sum": lambda x, axis=0: tf.cumsum(x, axis=axis),
        "repeat": tf.repeat,
        "astype": lambda x, dtype: tf.cast(x, tf.as_dtype(dtype)),
        "zeros": lambda shape, dtype=None: tf.zeros(shape, tf.as_dtype(dtype or np.float64)),
        "stop_gradient": tf.stop_gradient,
        "conv2d": conv2d,
        "max_pool2d": max_pool2d,
        "embedding": tf.gather,
        "cond": cond,
        "switch": switch,
        "while_loop": while_loop,
        "scan": scan,
    }
