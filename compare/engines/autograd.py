"""The adapter of HIPS autograd, which records NumPy's functions on a tape and compiles nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import optree

from compare.engines.framework import Framework
from compare.engines.library import compose, loop_scan
from compare.engines.mode import Mode
from compare.engines.step import Bindable, BoundCall, Function, Rerun, loss_in
from compare.errors import NoGradientsError


class Autograd(Framework):
    """The adapter of HIPS autograd, whose gradients come from `autograd.value_and_grad`."""

    name, title, module, package = "autograd", "HIPS autograd", "autograd", "autograd>=1.8"
    modes = (Mode(""),)
    keeps_effects = True

    def functions(self) -> dict[str, Function]:
        """Return autograd's functions under the names of `graphs`."""
        return compose(_functions())

    def arrays(self, tree: Any) -> Any:
        """Return the arrays unchanged: autograd computes on NumPy arrays."""
        return tree

    def numpy(self, tree: Any) -> Any:
        """Return the arrays unchanged: autograd computes on NumPy arrays."""
        return tree

    def build(self, mode: str, loss: Function, argnum: int | None) -> Function:
        """Return the function, or with `argnum` a step that returns its value and the gradients of its loss.

        The step raises NoGradientsError where the function returns no scalar loss.
        """
        return _Step(loss, argnum) if argnum is not None else lambda *args: (loss(*args), ())


class _Step(Bindable):
    """`step(*args) -> (value, gradients)`: the loss function's whole result, and gradients in one argument."""

    def __init__(self, loss: Function, argnum: int) -> None:
        self.loss, self.argnum = loss, argnum

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; the value is taken out of autograd's boxes after the clock has stopped."""
        import autograd
        from autograd.tracer import Box, getval

        function, seen = self.loss, list[Any]()

        def loss(*args: Any) -> Any:
            value = function(*args)
            of = value if isinstance(value, Box) else loss_in(value)
            if np.shape(getval(of)):
                raise NoGradientsError("the function gives an array and no loss; return one float, or (loss, more)")
            seen[:] = [value, of]
            return of

        differentiated = partial(autograd.value_and_grad(loss, self.argnum), *args)

        def looking() -> tuple[Any, Any]:
            _, gradients = differentiated()
            value, of = seen
            if of is value:  # the call as its author writes it
                run.become(autograd.value_and_grad(function, self.argnum), *args)
            return value, gradients

        run = Rerun(looking)
        return BoundCall(run, lambda returned: (optree.tree_map(getval, returned[0], none_is_leaf=True), returned[1]))


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
        "scan": loop_scan(anp.stack),
    }
