"""HIPS autograd: NumPy's functions on a tape, and nothing compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from compare.engines.base import Mode
from compare.engines.composed import composed, looped
from compare.engines.framework import Framework
from compare.engines.step import Function, loss_in
from compare.errors import InputsError, NoGradientsError
from compare.records.device import Device


class Autograd(Framework):
    """Gradients come from `autograd.value_and_grad`."""

    name, title, module, package = "autograd", "HIPS autograd", "autograd", "autograd>=1.8"
    modes = (Mode(""),)
    keeps_effects = True

    def use(self, device: Device) -> None:
        """The CPU alone. Raises InputsError for another."""
        if device != "cpu":
            raise InputsError(f"--device {device}: HIPS autograd runs on the CPU alone; leave --device out")

    def functions(self) -> dict[str, Function]:
        """See the class."""
        return composed(_functions())

    def arrays(self, tree: Any) -> Any:
        """NumPy's own."""
        return tree

    def numpy(self, tree: Any) -> Any:
        """NumPy's own."""
        return tree

    def doubled(self, tree: Any) -> Any:
        """See the base."""
        wide = {"f": np.float64, "c": np.complex128}
        return optree.tree_map(
            lambda x: x.astype(wide[x.dtype.kind]) if isinstance(x, np.ndarray) and x.dtype.kind in wide else x,
            tree,
            none_is_leaf=True,
        )

    def build(self, arm: str, loss: Function, argnum: int | None) -> Function:
        """The function, or its value and the gradients of the loss in it.

        The step raises NoGradientsError where there is no loss in it.
        """
        return _differentiated(loss, argnum) if argnum is not None else lambda *args: (loss(*args), ())


def _differentiated(loss: Function, argnum: int) -> Function:
    """`step(*args) -> (what the loss returns, gradients)`, in one argument."""
    import autograd
    from autograd.tracer import getval

    def step(*args: Any) -> tuple[Any, Any]:
        values = list[Any]()

        def of(*args: Any) -> Any:
            value = loss(*args)
            values.append(optree.tree_map(getval, value, none_is_leaf=True))
            if np.shape(loss_in(values[-1])):
                raise NoGradientsError("the function gives an array and no loss; return one float, or (loss, more)")
            return loss_in(value)

        _, gradients = autograd.value_and_grad(of, argnum)(*args)
        return values[-1], gradients

    return step


def _functions() -> dict[str, Function]:
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp
    from autograd.tracer import getval

    same = (
        "tanh exp log sin cos sqrt abs square floor round reshape where maximum minimum clip sum mean max min prod "
        "any all argmax argmin squeeze broadcast_to moveaxis sort roll repeat logical_and logical_not logical_or"
    )

    def log_softmax(x: Any, axis: int = -1) -> Any:
        return x - logsumexp(x, axis=axis, keepdims=True)

    def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
        at = axis % x.ndim
        shape = [max(sizes) for sizes in zip(x.shape, indices.shape, strict=True)]
        shape[at] = indices.shape[at]
        grid = list(np.indices(shape, sparse=True))
        grid[at] = np.broadcast_to(indices, shape)
        return anp.broadcast_to(x, (*shape[:at], x.shape[at], *shape[at + 1 :]))[tuple(grid)]

    def argsort(x: Any, axis: int = -1, descending: bool = False) -> Any:
        values = getval(x)
        return np.argsort(-values if descending else values, axis=axis, kind="stable")

    def take(x: Any, indices: Any, axis: int = 0) -> Any:
        return x[(slice(None),) * axis + (getval(indices),)]

    return {
        **{name: getattr(anp, name) for name in same.split()},
        "stack": anp.stack,
        "concat": anp.concatenate,
        "permute_dims": anp.transpose,
        "matrix_transpose": lambda x: anp.swapaxes(x, -1, -2),
        "expand_dims": lambda x, axis=0: anp.expand_dims(x, axis),
        "cumulative_sum": lambda x, axis=0: anp.cumsum(x, axis=axis),
        "relu": lambda x: anp.maximum(x, 0),
        "sigmoid": lambda x: 1 / (1 + anp.exp(-x)),
        "logsumexp": logsumexp,
        "log_softmax": log_softmax,
        "take": take,
        "take_along_axis": take_along_axis,
        "argsort": argsort,
        "astype": lambda x, dtype: x.astype(dtype),
        "zeros": np.zeros,
        "unstack": lambda x, axis=0: tuple(anp.moveaxis(x, axis, 0)),
        "stop_gradient": getval,
        "scan": looped(anp.stack),
    }
