"""Steps over the sizes of earlier gradients: Adadelta, RMSprop, Adagrad and Adafactor."""

from __future__ import annotations

import numpy as np

from graphs import tree
from graphs.op import Array
from graphs.ops.creation import full_like
from graphs.ops.creation import zeros as zeros_of
from graphs.ops.elementwise import add, divide, maximum, minimum, multiply, pow, sqrt, square, subtract
from graphs.ops.linalg import matmul
from graphs.ops.reductions import mean
from graphs.ops.shapes import dtype_of, shape_of
from graphs.optim.base import Optimizer, State, Update, check_not_negative, counting, like_param, plain, zeros
from graphs.tree import Tree


def adadelta(
    learning_rate: float | Array = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
) -> Optimizer:
    """Adadelta (Zeiler, 2012): the gradient times the root of the average squared step over that of its own squares.

    The rate is a number, or a scalar that may be traced; the rest are numbers. Raises ValueError for negative ones,
    and for a `rho` above 1.
    """
    check_not_negative(learning_rate=learning_rate, rho=rho, eps=eps, weight_decay=weight_decay)
    if rho > 1:
        raise ValueError(f"rho is an averaging weight from 0 to 1, not {rho}")

    def rule(param: Array, gradient: Array, squares: Array, steps: Array) -> tuple[Array, ...]:
        if weight_decay:
            gradient = add(gradient, multiply(param, weight_decay))
        squares = add(multiply(squares, rho), multiply(square(gradient), 1 - rho))
        step = multiply(divide(sqrt(add(steps, eps)), sqrt(add(squares, eps))), gradient)
        steps = add(multiply(steps, rho), multiply(square(step), 1 - rho))
        return subtract(param, multiply(step, like_param(learning_rate, param))), squares, steps

    return counting(zeros("square", "steps"), lambda _: rule)


def rmsprop(
    learning_rate: float | Array,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> Optimizer:
    """RMSprop (Tieleman and Hinton, 2012): the gradient over the root of the average of its squares.

    With `centered` the variance of the gradient takes the place of that average (Graves, 2013). The rate is a number,
    or a scalar that may be traced; the rest are numbers. Raises ValueError for negative ones.
    """
    check_not_negative(learning_rate=learning_rate, eps=eps, weight_decay=weight_decay, momentum=momentum, alpha=alpha)

    def rule(param: Array, gradient: Array, squares: Array, *rest: Array) -> tuple[Array, ...]:
        if weight_decay:
            gradient = add(gradient, multiply(param, weight_decay))
        squares = add(multiply(squares, alpha), multiply(square(gradient), 1 - alpha))
        spread, kept = squares, tuple[Array, ...]()
        if centered:
            average = add(rest[0], multiply(subtract(gradient, rest[0]), 1 - alpha))
            spread, kept = subtract(squares, square(average)), (average,)
        step = divide(gradient, add(sqrt(spread), eps))
        if momentum:
            step = add(multiply(rest[-1], momentum), step)
            kept = (*kept, step)
        return subtract(param, multiply(step, like_param(learning_rate, param))), squares, *kept

    names = ("square", *(("average",) if centered else ()), *(("velocity",) if momentum else ()))
    return plain(zeros(*names), rule)


def adagrad(
    learning_rate: float | Array,
    lr_decay: float = 0.0,
    weight_decay: float = 0.0,
    start: float = 0.0,
    eps: float = 1e-10,
) -> Optimizer:
    """Adagrad (Duchi, Hazan and Singer, 2011): the gradient over the root of the sum of its squares, from `start` on.

    The rate, divided by `1 + lr_decay * steps`, is a number or a scalar that may be traced; the rest are numbers.
    Raises ValueError for negative ones.
    """
    check_not_negative(learning_rate=learning_rate, lr_decay=lr_decay, weight_decay=weight_decay, start=start, eps=eps)

    def at(steps: Array) -> Update:
        rate = divide(learning_rate, add(multiply(subtract(steps, 1), lr_decay), 1))

        def rule(param: Array, gradient: Array, total: Array) -> tuple[Array, Array]:
            if weight_decay:
                gradient = add(gradient, multiply(param, weight_decay))
            total = add(total, square(gradient))
            return subtract(param, multiply(divide(gradient, add(sqrt(total), eps)), like_param(rate, param))), total

        return rule

    return counting({"sum": lambda param: full_like(param, start)}, at)


def adafactor(
    learning_rate: float | Array,
    decay: float = -0.8,
    eps: tuple[float | None, float] = (None, 1e-3),
    limit: float = 1.0,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Adafactor (Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018).

    Of the squares of a gradient of two axes or more the state keeps the means of rows and columns alone, as "rows" and
    "columns"; of others all, as "rows". A step is as long as the parameter is large, at least `eps[1]`, times the rate,
    which is at most `1 / sqrt(steps)`; one of more than `limit` times that is shortened. `eps[0]`, by default the
    dtype's, bounds the variance. The rate is a number, or a scalar that may be traced; the rest are numbers, those of
    torch.optim.Adafactor. Raises ValueError for negative ones, a decay above 0 and a limit below 1.
    """
    check_not_negative(learning_rate=learning_rate, eps=eps[1], weight_decay=weight_decay)
    if decay > 0 or limit < 1:
        raise ValueError(f"decay is 0 or less and the limit 1 or more, not {decay} and {limit}")

    def at(steps: Array) -> Update:
        share = pow(steps, decay)
        rate = minimum(learning_rate, divide(1, sqrt(steps)))

        def rule(param: Array, gradient: Array, rows: Array, columns: Array) -> tuple[Array, ...]:
            least = float(np.finfo(dtype_of(param)).eps) if eps[0] is None else eps[0]
            length = multiply(maximum(_root_mean_square(param), eps[1]), like_param(rate, param))
            if weight_decay:
                param = multiply(param, like_param(1 - learning_rate * weight_decay, param))
            squares, part = square(gradient), like_param(share, param)
            if len(shape_of(param)) > 1:
                rows = _moved(rows, mean(squares, axis=-1, keepdims=True), part)
                columns = _moved(columns, mean(squares, axis=-2, keepdims=True), part)
                scale = maximum(mean(rows, axis=-2, keepdims=True), least)
                variance = divide(matmul(rows, columns), scale)
            else:
                variance = rows = _moved(rows, squares, part)
            step = divide(gradient, sqrt(maximum(variance, least * least)))
            shortened = maximum(divide(_root_mean_square(step), limit), 1)
            return subtract(param, multiply(step, divide(length, shortened))), rows, columns

        return rule

    made = counting({"rows": lambda param: _means(param, -1), "columns": lambda param: _means(param, -2)}, at)

    def update(gradients: Tree, state: State, params: Tree) -> tuple[Tree, State]:
        """As any other, also of a state without columns, which vectors do not need."""
        unused = {} if "columns" in state else {"columns": tree.tree_map(lambda _: zeros_of(()), params)}
        return made.update(gradients, {**unused, **state}, params)

    return Optimizer(made.init, update)


def _means(param: Array, axis: int) -> Array:
    """Zeros for the means along an axis of a parameter of two axes or more; of others for all of it, then for none."""
    shape = list(shape_of(param))
    if len(shape) > 1:
        shape[axis] = 1
    return zeros_of(shape if len(shape) > 1 or axis == -1 else (), dtype_of(param))


def _moved(average: Array, new: Array, share: Array) -> Array:
    return add(average, multiply(subtract(new, average), share))


def _root_mean_square(x: Array) -> Array:
    return sqrt(mean(square(x)))
