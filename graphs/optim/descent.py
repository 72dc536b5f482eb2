"""Steps along the gradient, its average or its sign: SGD, ASGD and Rprop."""

from __future__ import annotations

import numpy as np

from graphs.op import Array
from graphs.ops.creation import ones, zeros_like
from graphs.ops.elementwise import (
    add,
    clip,
    divide,
    equal,
    greater,
    less,
    maximum,
    multiply,
    pow,
    sign,
    subtract,
    where,
)
from graphs.optim.base import Optimizer, Update, check_not_negative, counting, like_param, plain, zeros


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
            direction = add(gradient, multiply(param, weight_decay)) if weight_decay else gradient
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
            if weight_decay:
                gradient = add(gradient, multiply(param, weight_decay))
            kept = like_param(subtract(1, multiply(rate, decay)), param)
            param = subtract(multiply(param, kept), multiply(gradient, like_param(rate, param)))
            moved = add(average, multiply(subtract(param, average), like_param(share, param)))
            return param, where(equal(share, 1), param, moved), next_rate, next_share

        return rule

    return counting(slots, at)


def rprop(
    learning_rate: float | Array,
    factors: tuple[float, float] = (0.5, 1.2),
    limits: tuple[float, float] = (1e-6, 50.0),
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
