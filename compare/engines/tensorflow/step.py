"""A step of TensorFlow: a loss, and its gradients in one argument."""

from __future__ import annotations

from typing import Any

import optree

from compare.engines.base import Function, loss_in


def stepped(loss: Function, argnum: int) -> Function:
    """`step(*args) -> (what the loss returns, gradients)`; a tape watches the leaves of one argument alone."""
    import tensorflow as tf

    def step(*args: Any) -> tuple[Any, Any]:
        leaves, structure = optree.tree_flatten(args[argnum])
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            value = loss(*args)
        gradients = tape.gradient(loss_in(value), leaves, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return value, optree.tree_unflatten(structure, [tf.convert_to_tensor(x) for x in gradients])

    return step
