"""The rules of optimisers.

Steps along the gradient, its average or its sign: SGD, ASGD and Rprop. Adam, and what was made of it: Adamax, NAdam and
RAdam. Steps over the sizes of earlier gradients: Adadelta, RMSprop, Adagrad and Adafactor. Of matrices, with singular
values of 1: Muon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import tree
from graphs.op import Array
from graphs.ops.creation import full_like, ones, zeros_like
from graphs.ops.creation import zeros as zeros_of
from graphs.ops.elementwise import (
    abs,
    add,
    clip,
    divide,
    equal,
    greater,
    less,
    maximum,
    minimum,
    multiply,
    pow,
    sign,
    sqrt,
    square,
    subtract,
    where,
)
from graphs.ops.linalg import matmul
from graphs.ops.movement import cast, matrix_transpose
from graphs.ops.reductions import mean, sum
from graphs.ops.shapes import dtype_of, shape_of
from graphs.optim.base import (
    Optimizer,
    State,
    Update,
    check_adam,
    check_not_negative,
    counting,
    in_bfloat16,
    like_param,
    moving_average,
    plain,
    with_decay,
    zeros,
)
from graphs.tree import Tree


def sgd(
    learning_rate: float | Array,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    dampening: float = 0.0,
) -> Optimizer:
    """Stochastic gradient descent: `p - rate * v` with `v = momentum * v + gradient + weight_decay * p`.

    From the second step on, dampening takes that share away from what the velocity gains.

    The rate is a number, or a scalar that may be traced: a schedule costs no compilation. The rest are numbers.
    Nesterov's step looks ahead, along `gradient + momentum * v` (Sutskever, Martens, Dahl and Hinton, "On the
    importance of initialization and momentum in deep learning", 2013, in the form of torch.optim.SGD).
    Raises ValueError for negative numbers, for nesterov without momentum, and for nesterov with dampening.
    """
    check_not_negative(learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay)
    if nesterov and not momentum:
        raise ValueError("nesterov looks ahead along the momentum; give a momentum above 0")
    if nesterov and dampening:
        raise ValueError("nesterov looks ahead along all of the gradient; leave dampening out")

    def at(steps: Array | None) -> Update:
        def rule(param: Array, gradient: Array, *velocity: Array) -> tuple[Array, ...]:
            direction = with_decay(gradient, param, weight_decay)
            gain = direction
            if steps is not None:
                gain = multiply(direction, like_param(where(equal(steps, 1), 1.0, 1 - dampening), param))
            velocity = tuple([add(multiply(v, momentum), gain) for v in velocity])
            if velocity:
                direction = add(direction, multiply(velocity[0], momentum)) if nesterov else velocity[0]
            return subtract(param, multiply(direction, like_param(learning_rate, param))), *velocity

        return rule

    slots = zeros("velocity") if momentum else {}
    return counting(slots, at) if momentum and dampening else plain(slots, at(None))


def asgd(
    learning_rate: float | Array,
    decay: float = 1e-4,
    power: float = 0.75,
    start: float = 1e6,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Averaged SGD (Polyak and Juditsky, 1992): the parameters' average is kept beside them, as "average".

    The rate falls as `rate / (1 + decay * rate * steps) ** power`, and the average takes in every step from `start` on;
    before, it is the parameter. The rate is a number, or a scalar that may be traced; the rest are numbers, those of
    torch.optim.ASGD. Raises ValueError for a negative rate or weight decay.
    """
    check_not_negative(learning_rate=learning_rate, weight_decay=weight_decay)
    slots = {
        "average": zeros_like,
        "rate": lambda _: multiply(ones((), np.float64), learning_rate),
        "share": lambda _: ones((), np.float64),
    }

    def at(steps: Array) -> Update:
        next_rate = divide(learning_rate, pow(add(multiply(multiply(decay, learning_rate), steps), 1), power))
        next_share = divide(1, maximum(subtract(steps, start), 1))

        def rule(param: Array, gradient: Array, average: Array, rate: Array, share: Array) -> tuple[Array, ...]:
            gradient = with_decay(gradient, param, weight_decay)
            kept = like_param(subtract(1, multiply(rate, decay)), param)
            param = subtract(multiply(param, kept), multiply(gradient, like_param(rate, param)))
            moved = add(average, multiply(subtract(param, average), like_param(share, param)))
            return param, where(equal(share, 1), param, moved), next_rate, next_share

        return rule

    return counting(slots, at)


def rprop(
    learning_rate: float | Array, factors: tuple[float, float] = (0.5, 1.2), limits: tuple[float, float] = (1e-6, 50.0)
) -> Optimizer:
    """Resilient backpropagation (Riedmiller and Braun, 1993): each element has a step of its own, by the sign alone.

    A step, at first the rate, grows by the second factor while the gradient keeps its sign, and shrinks by the first,
    without a step, where it has changed; it stays within the limits. Raises ValueError for a negative rate, and unless
    the factors lie on both sides of 1.
    """
    check_not_negative(learning_rate=learning_rate)
    if not 0 < factors[0] < 1 < factors[1]:
        raise ValueError(f"factors are below and above 1, and above 0; not {factors[0]} and {factors[1]}")

    def rule(param: Array, gradient: Array, before: Array, step: Array) -> tuple[Array, ...]:
        agreement = multiply(gradient, before)
        turned = less(agreement, 0)
        shorter, longer = (multiply(step, factor) for factor in factors)
        step = clip(where(greater(agreement, 0), longer, where(turned, shorter, step)), *limits)
        gradient = where(turned, 0, gradient)
        return subtract(param, multiply(sign(gradient), step)), gradient, step

    slots = {"before": zeros_like, "step": lambda param: add(zeros_like(param), like_param(learning_rate, param))}
    return counting(slots, lambda _: rule)


def adam(
    learning_rate: float | Array,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    *,
    decoupled: bool = True,
    amsgrad: bool = False,
) -> Optimizer:
    """Adam (Kingma and Ba, 2015), with decoupled weight decay (AdamW: Loshchilov and Hutter, 2019).

    The rate is a number, or a scalar that may be traced: a schedule costs no compilation. The rest are numbers.
    Without `decoupled` the decay is part of the gradient, as in torch.optim.Adam; with `amsgrad` it divides by the
    largest variance so far, which the state holds as "largest" (Reddi, Kale and Kumar, 2018).
    The step counter `state["count"]` is an int64 array, so that steps share one graph; bias corrections are made in
    float64, as PyTorch makes them. Raises ValueError for negative numbers, and for b1 or b2 outside of [0, 1).
    """
    check_adam(learning_rate, b1, b2, eps, weight_decay)
    kept = 1 - learning_rate * weight_decay
    slots = zeros("mean", "variance", "largest") if amsgrad else zeros("mean", "variance")

    def at(steps: Array) -> Update:
        rate = divide(learning_rate, subtract(1, pow(b1, steps)))
        scale = sqrt(subtract(1, pow(b2, steps)))

        def rule(param: Array, gradient: Array, mean: Array, variance: Array, *largest: Array) -> tuple[Array, ...]:
            gradient = with_decay(gradient, param, 0 if decoupled else weight_decay)
            mean = moving_average(mean, gradient, 1 - b1)
            variance = add(multiply(variance, b2), multiply(square(gradient), 1 - b2))
            largest = tuple([maximum(largest_variance, variance) for largest_variance in largest])
            root = add(divide(sqrt(largest[0] if largest else variance), like_param(scale, param)), eps)
            if weight_decay and decoupled:
                param = multiply(param, like_param(kept, param))
            return subtract(param, multiply(divide(mean, root), like_param(rate, param))), mean, variance, *largest

        return rule

    return counting(slots, at)


def adamax(
    learning_rate: float | Array, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0
) -> Optimizer:
    """Adamax (Kingma and Ba, 2015): Adam with the largest gradient, which decays, in place of the root of the squares.

    The rate is a number, or a scalar that may be traced; the rest are numbers. Raises ValueError as `adam` does.
    """
    check_adam(learning_rate, b1, b2, eps, weight_decay)

    def at(steps: Array) -> Update:
        rate = divide(learning_rate, subtract(1, pow(b1, steps)))

        def rule(param: Array, gradient: Array, mean: Array, largest: Array) -> tuple[Array, ...]:
            gradient = with_decay(gradient, param, weight_decay)
            mean = moving_average(mean, gradient, 1 - b1)
            largest = maximum(multiply(largest, b2), add(abs(gradient), eps))
            return subtract(param, multiply(divide(mean, largest), like_param(rate, param))), mean, largest

        return rule

    return counting(zeros("mean", "largest"), at)


def radam(
    learning_rate: float | Array,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    *,
    decoupled: bool = False,
) -> Optimizer:
    """RAdam (Liu et al., "On the variance of the adaptive learning rate and beyond", 2020): Adam, rectified.

    While the variance is known from few steps, the step goes along the mean alone. The rate is a number, or a scalar
    that may be traced; the rest are numbers. Raises ValueError as `adam` does.
    """
    check_adam(learning_rate, b1, b2, eps, weight_decay)
    longest = 2 / (1 - b2) - 1

    def at(steps: Array) -> Update:
        left, power = subtract(1, pow(b2, steps)), pow(b2, steps)
        length = subtract(longest, divide(multiply(multiply(steps, 2), power), left))
        is_tractable, safe = greater(length, 5), maximum(length, 5)
        share = multiply(multiply(subtract(safe, 4), subtract(safe, 2)), longest)
        rectified = sqrt(divide(multiply(share, left), multiply(safe, (longest - 4) * (longest - 2))))
        rate = divide(learning_rate, subtract(1, pow(b1, steps)))

        def rule(param: Array, gradient: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
            gradient = with_decay(gradient, param, 0 if decoupled else weight_decay)
            mean = moving_average(mean, gradient, 1 - b1)
            variance = add(multiply(variance, b2), multiply(square(gradient), 1 - b2))
            if weight_decay and decoupled:
                param = multiply(param, like_param(1 - learning_rate * weight_decay, param))
            factor = where(is_tractable, divide(like_param(rectified, param), add(sqrt(variance), eps)), 1.0)
            return subtract(param, multiply(multiply(mean, factor), like_param(rate, param))), mean, variance

        return rule

    return counting(zeros("mean", "variance"), at)


def nadam(
    learning_rate: float | Array,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum_decay: float = 4e-3,
    *,
    decoupled: bool = False,
) -> Optimizer:
    """NAdam (Dozat, "Incorporating Nesterov momentum into Adam", 2016): Adam whose step looks ahead.

    The momentum rises towards b1 as `momentum_decay` says; the state holds the product of all so far, as "product".
    The rate is a number, or a scalar that may be traced; the rest are numbers. Raises ValueError as `adam` does.
    """
    check_adam(learning_rate, b1, b2, eps, weight_decay)
    check_not_negative(momentum_decay=momentum_decay)
    kept = 1 - learning_rate * weight_decay

    def at(steps: Array) -> Update:
        now, ahead = (
            multiply(subtract(1, multiply(pow(0.96, multiply(count, momentum_decay)), 0.5)), b1)
            for count in (steps, add(steps, 1))
        )
        left = subtract(1, pow(b2, steps))

        def rule(param: Array, gradient: Array, mean: Array, variance: Array, product: Array) -> tuple[Array, ...]:
            gradient = with_decay(gradient, param, 0 if decoupled else weight_decay)
            if weight_decay and decoupled:
                param = multiply(param, like_param(kept, param))
            product = multiply(product, now)
            mean = moving_average(mean, gradient, 1 - b1)
            variance = add(multiply(variance, b2), multiply(square(gradient), 1 - b2))
            root = add(sqrt(divide(variance, like_param(left, param))), eps)
            here = divide(multiply(subtract(1, now), learning_rate), subtract(1, product))
            there = divide(multiply(ahead, learning_rate), subtract(1, multiply(product, ahead)))
            param = subtract(param, multiply(divide(gradient, root), like_param(here, param)))
            return subtract(param, multiply(divide(mean, root), like_param(there, param))), mean, variance, product

        return rule

    slots = {"mean": zeros_like, "variance": zeros_like, "product": lambda _: ones((), np.float64)}
    return counting(slots, at)


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
        gradient = with_decay(gradient, param, weight_decay)
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
        gradient = with_decay(gradient, param, weight_decay)
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
            gradient = with_decay(gradient, param, weight_decay)
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
                rows = moving_average(rows, mean(squares, axis=-1, keepdims=True), part)
                columns = moving_average(columns, mean(squares, axis=-2, keepdims=True), part)
                scale = maximum(mean(rows, axis=-2, keepdims=True), least)
                variance = divide(matmul(rows, columns), scale)
            else:
                variance = rows = moving_average(rows, squares, part)
            step = divide(gradient, sqrt(maximum(variance, least * least)))
            shortened = maximum(divide(_root_mean_square(step), limit), 1)
            return subtract(param, multiply(step, divide(length, shortened))), rows, columns

        return rule

    slots = {"rows": lambda param: _means(param, -1), "columns": lambda param: _means(param, -2)}
    made = counting(slots, at, by_element=False)

    def update(gradients: Tree, state: State, params: Tree) -> tuple[Tree, State]:
        """Update as usual; a state without "columns", which vectors do not need, is accepted."""
        unused = {} if "columns" in state else {"columns": tree.tree_map(lambda _: zeros_of(()), params)}
        return made.update(gradients, {**unused, **state}, params)

    return Optimizer(made.init, update)


def _means(param: Array, axis: int) -> Array:
    """Zeros for the means along an axis of a parameter of two axes or more; of others for all of it, then for none."""
    shape = list(shape_of(param))
    if len(shape) > 1:
        shape[axis] = 1
    return zeros_of(shape if len(shape) > 1 or axis == -1 else (), dtype_of(param))


def _root_mean_square(x: Array) -> Array:
    return sqrt(mean(square(x)))


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Weights of a matrix and its two products in a step towards the orthogonal one (Jordan, "Muon", 2024)."""


def muon(
    learning_rate: float | Array,
    momentum: float = 0.95,
    nesterov: bool = True,
    weight_decay: float = 0.1,
    weights: tuple[float, float, float] = NEWTON_SCHULZ,
    iterations: int = 5,
    eps: float = 1e-7,
    rate_of: str = "original",
) -> Optimizer:
    """Muon (Jordan, "Muon: an optimizer for hidden layers in neural networks", 2024), for matrices alone.

    A step goes along the momentum with its singular values brought near 1, which is computed as in torch.optim.Muon:
    rounded to bfloat16 at each product. `rate_of` is a key of `MUON_RATES`, which scale the rate by the matrix's sizes.
    The rate is a number, or a scalar that may be traced; the rest are numbers. Raises ValueError for negative ones, 100
    iterations or more, and another key.
    """
    check_not_negative(learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay)
    if rate_of not in MUON_RATES or iterations >= 100:
        raise ValueError(f"iterations are below 100, the rate one of {list(MUON_RATES)}; not {iterations}, {rate_of}")

    def rule(param: Array, gradient: Array, velocity: Array) -> tuple[Array, ...]:
        rows, columns = shape_of(param)
        velocity = moving_average(velocity, gradient, 1 - momentum)
        direction = moving_average(gradient, velocity, momentum) if nesterov else velocity
        tall = rows > columns
        x = in_bfloat16(matrix_transpose(direction) if tall else direction)
        norm = in_bfloat16(sqrt(sum(square(x))))
        x = in_bfloat16(divide(x, maximum(norm, eps)))
        for _ in range(iterations):
            gram = in_bfloat16(matmul(x, matrix_transpose(x)))
            change = in_bfloat16(add(multiply(gram, weights[1]), multiply(matmul(gram, gram), weights[2])))
            x = in_bfloat16(add(multiply(x, weights[0]), matmul(change, x)))
        step = cast(matrix_transpose(x) if tall else x, dtype_of(param))
        rate = like_param(multiply(learning_rate, MUON_RATES[rate_of](rows, columns)), param)
        param = multiply(param, like_param(subtract(1, multiply(learning_rate, weight_decay)), param))
        return subtract(param, multiply(step, rate)), velocity

    return plain(zeros("velocity"), rule)._replace(change=None)


MUON_RATES: dict[str, Callable[[Any, Any], float]] = {
    "original": lambda rows, columns: max(1, rows / columns) ** 0.5,
    "match_rms_adamw": lambda rows, columns: 0.2 * max(rows, columns) ** 0.5,
}
