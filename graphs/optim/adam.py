"""Adam, and what was made of it: Adamax, NAdam and RAdam."""

from __future__ import annotations

import numpy as np

from graphs.op import Array
from graphs.ops.creation import ones, zeros_like
from graphs.ops.elementwise import abs, add, divide, greater, maximum, multiply, pow, sqrt, square, subtract, where
from graphs.optim.base import Optimizer, Update, check_not_negative, counting, like_param, zeros


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
            if weight_decay and not decoupled:
                gradient = add(gradient, multiply(param, weight_decay))
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
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
            if weight_decay:
                gradient = add(gradient, multiply(param, weight_decay))
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
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
            if weight_decay and not decoupled:
                gradient = add(gradient, multiply(param, weight_decay))
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
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
            if weight_decay and decoupled:
                param = multiply(param, like_param(kept, param))
            elif weight_decay:
                gradient = add(gradient, multiply(param, weight_decay))
            product = multiply(product, now)
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
            variance = add(multiply(variance, b2), multiply(square(gradient), 1 - b2))
            root = add(sqrt(divide(variance, like_param(left, param))), eps)
            here = divide(multiply(subtract(1, now), learning_rate), subtract(1, product))
            there = divide(multiply(ahead, learning_rate), subtract(1, multiply(product, ahead)))
            param = subtract(param, multiply(divide(gradient, root), like_param(here, param)))
            return subtract(param, multiply(divide(mean, root), like_param(there, param))), mean, variance, product

        return rule

    slots = {"mean": zeros_like, "variance": zeros_like, "product": lambda _: ones((), np.float64)}
    return counting(slots, at)


def check_adam(learning_rate: float | Array, b1: float, b2: float, eps: float, weight_decay: float) -> None:
    """Raise ValueError for negative numbers, and for averaging weights outside of [0, 1)."""
    check_not_negative(learning_rate=learning_rate, eps=eps, weight_decay=weight_decay)
    if not (0 <= b1 < 1 and 0 <= b2 < 1):
        raise ValueError(f"b1 and b2 are averaging weights from 0 up to, not including, 1; not {b1} and {b2}")
