"""TensorFlow's functions under the names of `graphs`."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from compare.engines.step import Function

NUMBER: list[type[np.floating[Any]]] = [np.float32]
"""The dtype of Python floats in the state of a loop, which TensorFlow keeps as tensors."""


def functions() -> dict[str, Function]:
    """Return TensorFlow's functions under the names of `graphs`."""
    return {**_arrays(), **_networks(), **_control()}


def _arrays() -> dict[str, Function]:
    """Return the functions of arrays: elementwise, reductions, and those that move elements."""
    import tensorflow as tf

    def reduction(name: str) -> Function:
        f = getattr(tf, f"reduce_{name}")
        return lambda x, axis=None, keepdims=False: f(x, axis=axis, keepdims=keepdims)

    def place(f: Function) -> Function:
        return lambda x, axis=None: f(tf.reshape(x, [-1]), axis=0) if axis is None else f(x, axis=axis)

    def order(f: Function) -> Function:
        def sort_along(x: Any, axis: int = -1, descending: bool = False) -> Any:
            return f(x, axis=axis, direction="DESCENDING" if descending else "ASCENDING")

        return sort_along

    def both(f: Function) -> Function:
        def wrapper(x: Any, y: Any) -> Any:
            like = next(part for part in (x, y) if tf.is_tensor(part))
            return f(*(part if tf.is_tensor(part) else tf.cast(part, like.dtype) for part in (x, y)))

        return wrapper

    def where(test: Any, x: Any, y: Any) -> Any:
        like = next((part for part in (x, y) if tf.is_tensor(part)), tf.convert_to_tensor(x))
        return tf.where(test, tf.cast(x, like.dtype), tf.cast(y, like.dtype))

    def clip(x: Any, min: Any = None, max: Any = None) -> Any:
        above = x if min is None else tf.maximum(x, tf.cast(min, x.dtype))
        return above if max is None else tf.minimum(above, tf.cast(max, x.dtype))  # if min > max, max wins, as in NumPy

    @tf.custom_gradient
    def dense(x: Any) -> Any:
        # later backward ops cannot take the IndexedSlices of `tf.gather`
        return tf.identity(x), tf.convert_to_tensor

    same = (
        "tanh exp sin cos sqrt abs square floor round reshape broadcast_to roll squeeze stack unstack repeat "
        "stop_gradient logical_and logical_or logical_not"
    )
    return {
        **{name: getattr(tf, name) for name in same.split()},
        **{name: reduction(name) for name in ("sum", "mean", "max", "min", "prod", "any", "all", "logsumexp")},
        **{name: place(getattr(tf, name)) for name in ("argmax", "argmin")},
        **{name: order(getattr(tf, name)) for name in ("argsort", "sort")},
        **{name: both(getattr(tf, name)) for name in ("maximum", "minimum")},
        "log": tf.math.log,
        "concat": lambda xs, axis=0: tf.concat(xs, axis),
        "expand_dims": lambda x, axis=0: tf.expand_dims(x, axis),
        "permute_dims": tf.transpose,
        "matrix_transpose": tf.linalg.matrix_transpose,
        "moveaxis": tf.experimental.numpy.moveaxis,
        "where": where,
        "clip": clip,
        "take": lambda x, indices, axis=0: tf.gather(dense(x), indices, axis=axis),
        "take_along_axis": lambda x, at, axis=-1: tf.gather(x, at, batch_dims=len(x.shape) - 1, axis=axis),
        "cumulative_sum": lambda x, axis=0: tf.cumsum(x, axis=axis),
        "astype": lambda x, dtype: tf.cast(x, tf.as_dtype(dtype)),
        "zeros": lambda shape, dtype=None: tf.zeros(shape, tf.as_dtype(dtype or np.float64)),
    }


def _networks() -> dict[str, Function]:
    """Return the functions of neural networks; images have their channels first, as in `graphs`."""
    import tensorflow as tf

    def along(f: Function) -> Function:
        return lambda x, axis=-1: f(x, axis=range(len(x.shape))[axis])  # axis=None is refused: tf takes it for -1

    def conv2d(x: Any, weight: Any, bias: Any = None, stride: int = 1, padding: int = 0) -> Any:
        padded = tf.pad(x, [[0, 0], [0, 0], [padding] * 2, [padding] * 2])
        y = tf.nn.conv2d(tf.transpose(padded, (0, 2, 3, 1)), tf.transpose(weight, (2, 3, 1, 0)), stride, "VALID")
        return tf.transpose(y if bias is None else y + bias, (0, 3, 1, 2))

    def max_pool2d(x: Any, size: int) -> Any:
        y = tf.nn.max_pool2d(tf.transpose(x, (0, 2, 3, 1)), size, size, "VALID")
        return tf.transpose(y, (0, 3, 1, 2))

    return {
        **{name: along(getattr(tf.nn, name)) for name in ("softmax", "log_softmax")},
        "sigmoid": tf.sigmoid,
        "relu": tf.nn.relu,
        "gelu": tf.nn.gelu,
        "conv2d": conv2d,
        "max_pool2d": max_pool2d,
        "embedding": tf.gather,
    }


def _control() -> dict[str, Function]:
    """Return the ops of control flow; the state of a loop is kept as tensors."""
    import tensorflow as tf

    tensor = tf.convert_to_tensor

    def cond(test: Any, then: Function, otherwise: Function, *operands: Any) -> Any:
        return tf.cond(test, lambda: then(*operands), lambda: otherwise(*operands))

    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        chosen = [lambda branch=branch: branch(*operands) for branch in branches]
        return tf.switch_case(tf.clip_by_value(tf.cast(index, tf.int32), 0, len(branches) - 1), chosen)

    def parts_of(state: Any) -> list[Any]:
        return [tensor(x, NUMBER[0]) if isinstance(x, float) else tensor(x) for x in optree.tree_leaves(state)]

    def while_loop(test: Function, body: Function, state: Any) -> Any:
        structure = optree.tree_structure(state)

        def pack(parts: Any) -> Any:
            return optree.tree_unflatten(structure, list(parts))

        after = tf.while_loop(
            lambda *parts: test(pack(parts)), lambda *parts: parts_of(body(pack(parts))), parts_of(state)
        )
        return pack(after)

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

    return {"cond": cond, "switch": switch, "while_loop": while_loop, "scan": scan}
