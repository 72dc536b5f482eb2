"""Optimisers and gradient clipping: pure functions over nested containers, the same in both engines.

A training step (loss, gradient, clipping, update) is one function: `dynamic` runs it as it is, `static.jit` compiles
it once, update included. Nothing is changed in place and nothing is hidden: the state goes in and comes out.

The formulas are PyTorch's (`torch.optim.SGD`, `Adam`, `AdamW`, `torch.nn.utils.clip_grad_*`). An update is made of
ops, so that it can be differentiated too; with tensors that require gradients, call it under `dynamic.no_grad`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphs import dims, promotion, tree
from graphs.errors import ShapeError, located
from graphs.op import Array
from graphs.ops.creation import zeros_like
from graphs.ops.elementwise import (
    abs,
    add,
    clip,
    divide,
    equal,
    greater,
    maximum,
    minimum,
    multiply,
    pow,
    sqrt,
    square,
    subtract,
    where,
)
from graphs.ops.manipulation import astype
from graphs.ops.movement import cast
from graphs.ops.reductions import sum
from graphs.ops.shapes import dtype_of, shape_of
from graphs.tree import Tree

State = dict[str, Any]
Update = Callable[..., tuple[Array, ...]]  # (parameter, gradient, *slots) -> (new parameter, *new slots)

TINY = 1e-6  # keeps the limit from being divided by a norm of 0; the value is that of torch.nn.utils.clip_grad_norm_


class Optimizer(NamedTuple):
    """`init(params) -> state` and `update(gradients, state, params) -> (new params, new state)`.

    The state holds arrays alone, each slot laid out like the parameters; parameters keep their dtypes and shapes.
    `update` raises ShapeError when gradients, state and parameters differ in structure or shape.
    """

    init: Callable[[Tree], State]
    update: Callable[[Tree, State, Tree], tuple[Tree, State]]


def sgd(
    learning_rate: float | Array, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
) -> Optimizer:
    """Stochastic gradient descent: `p - rate * v` with `v = momentum * v + gradient + weight_decay * p`.

    The rate is a number, or a scalar that may be traced: a schedule costs no compilation. The rest are numbers.
    Nesterov's step looks ahead, along `gradient + momentum * v` (Sutskever, Martens, Dahl and Hinton, "On the
    importance of initialization and momentum in deep learning", 2013, in the form of torch.optim.SGD).
    Raises ValueError for negative numbers, and for nesterov without momentum.
    """
    _check_not_negative(learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay)
    if nesterov and not momentum:
        raise ValueError("nesterov looks ahead along the momentum; give a momentum above 0")

    def rule(param: Array, gradient: Array, *velocity: Array) -> tuple[Array, ...]:
        direction = add(gradient, multiply(param, weight_decay)) if weight_decay else gradient
        velocity = tuple([add(multiply(v, momentum), direction) for v in velocity])
        if velocity:
            direction = add(direction, multiply(velocity[0], momentum)) if nesterov else velocity[0]
        return subtract(param, multiply(direction, _as(learning_rate, param))), *velocity

    slots = ("velocity",) if momentum else ()

    def update(gradients: Tree, state: State, params: Tree) -> tuple[Tree, State]:
        return _updated(rule, slots, gradients, state, params)

    return Optimizer(functools.partial(_zeros, slots), update)


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
    _check_adam(learning_rate, b1, b2, eps, weight_decay)
    kept = 1 - learning_rate * weight_decay
    kinds = ("mean", "variance", "largest") if amsgrad else ("mean", "variance")

    def at(steps: Array) -> Update:
        rate = divide(learning_rate, subtract(1, pow(b1, steps)))
        scale = sqrt(subtract(1, pow(b2, steps)))

        def rule(param: Array, gradient: Array, mean: Array, variance: Array, *largest: Array) -> tuple[Array, ...]:
            if weight_decay and not decoupled:
                gradient = add(gradient, multiply(param, weight_decay))
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
            variance = add(multiply(variance, b2), multiply(square(gradient), 1 - b2))
            largest = tuple([maximum(one, variance) for one in largest])
            root = add(divide(sqrt(largest[0] if largest else variance), _as(scale, param)), eps)
            if weight_decay and decoupled:
                param = multiply(param, _as(kept, param))
            return subtract(param, multiply(divide(mean, root), _as(rate, param))), mean, variance, *largest

        return rule

    return _counting(kinds, at)


def adamax(
    learning_rate: float | Array, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0
) -> Optimizer:
    """Adamax (Kingma and Ba, 2015): Adam with the largest gradient, which decays, in place of the root of the squares.

    The rate is a number, or a scalar that may be traced; the rest are numbers. Raises ValueError as `adam` does.
    """
    _check_adam(learning_rate, b1, b2, eps, weight_decay)

    def at(steps: Array) -> Update:
        rate = divide(learning_rate, subtract(1, pow(b1, steps)))

        def rule(param: Array, gradient: Array, mean: Array, largest: Array) -> tuple[Array, ...]:
            if weight_decay:
                gradient = add(gradient, multiply(param, weight_decay))
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
            largest = maximum(multiply(largest, b2), add(abs(gradient), eps))
            return subtract(param, multiply(divide(mean, largest), _as(rate, param))), mean, largest

        return rule

    return _counting(("mean", "largest"), at)


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
    _check_adam(learning_rate, b1, b2, eps, weight_decay)
    longest = 2 / (1 - b2) - 1

    def at(steps: Array) -> Update:
        left, power = subtract(1, pow(b2, steps)), pow(b2, steps)
        length = subtract(longest, divide(multiply(multiply(steps, 2), power), left))
        known, safe = greater(length, 5), maximum(length, 5)
        share = multiply(multiply(subtract(safe, 4), subtract(safe, 2)), longest)
        rectified = sqrt(divide(multiply(share, left), multiply(safe, (longest - 4) * (longest - 2))))
        rate = divide(learning_rate, subtract(1, pow(b1, steps)))

        def rule(param: Array, gradient: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
            if weight_decay and not decoupled:
                gradient = add(gradient, multiply(param, weight_decay))
            mean = add(mean, multiply(subtract(gradient, mean), 1 - b1))
            variance = add(multiply(variance, b2), multiply(square(gradient), 1 - b2))
            if weight_decay and decoupled:
                param = multiply(param, _as(1 - learning_rate * weight_decay, param))
            factor = where(known, divide(_as(rectified, param), add(sqrt(variance), eps)), 1.0)
            return subtract(param, multiply(multiply(mean, factor), _as(rate, param))), mean, variance

        return rule

    return _counting(("mean", "variance"), at)


def adadelta(
    learning_rate: float | Array = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
) -> Optimizer:
    """Adadelta (Zeiler, 2012): the gradient times the root of the average squared step over that of its own squares.

    The rate is a number, or a scalar that may be traced; the rest are numbers. Raises ValueError for negative ones,
    and for a `rho` above 1.
    """
    _check_not_negative(learning_rate=learning_rate, rho=rho, eps=eps, weight_decay=weight_decay)
    if rho > 1:
        raise ValueError(f"rho is an averaging weight from 0 to 1, not {rho}")

    def rule(param: Array, gradient: Array, squares: Array, steps: Array) -> tuple[Array, ...]:
        if weight_decay:
            gradient = add(gradient, multiply(param, weight_decay))
        squares = add(multiply(squares, rho), multiply(square(gradient), 1 - rho))
        step = multiply(divide(sqrt(add(steps, eps)), sqrt(add(squares, eps))), gradient)
        steps = add(multiply(steps, rho), multiply(square(step), 1 - rho))
        return subtract(param, multiply(step, _as(learning_rate, param))), squares, steps

    return _counting(("square", "steps"), lambda _: rule)


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
    _check_not_negative(learning_rate=learning_rate, eps=eps, weight_decay=weight_decay, momentum=momentum, alpha=alpha)
    slots = ("square", *(("average",) if centered else ()), *(("velocity",) if momentum else ()))

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
        return subtract(param, multiply(step, _as(learning_rate, param))), squares, *kept

    def update(gradients: Tree, state: State, params: Tree) -> tuple[Tree, State]:
        return _updated(rule, slots, gradients, state, params)

    return Optimizer(functools.partial(_zeros, slots), update)


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
    _check_not_negative(learning_rate=learning_rate, lr_decay=lr_decay, weight_decay=weight_decay, start=start, eps=eps)

    def update(gradients: Tree, state: State, params: Tree) -> tuple[Tree, State]:
        rate = divide(learning_rate, add(multiply(astype(state["count"], np.float64), lr_decay), 1))

        def rule(param: Array, gradient: Array, total: Array) -> tuple[Array, Array]:
            if weight_decay:
                gradient = add(gradient, multiply(param, weight_decay))
            total = add(total, square(gradient))
            return subtract(param, multiply(divide(gradient, add(sqrt(total), eps)), _as(rate, param))), total

        params, slots = _updated(rule, ("sum",), gradients, state, params)
        return params, {"count": add(state["count"], 1), **slots}

    def init(params: Tree) -> State:
        sums = tree.tree_map(lambda param: add(zeros_like(param), start), params)
        return {"count": np.zeros((), np.int64), "sum": sums}

    return Optimizer(init, update)


def global_norm(gradients: Tree) -> Array:
    """The Euclidean norm of all leaves as one vector; its own gradient at 0 is 0. No leaves: 0, a float32.

    float16 is squared in float32: its squares overflow from 256 on.
    """
    total: Array = np.zeros((), np.float32)
    for leaf in tree.leaves(gradients):
        total = add(total, sum(square(cast(leaf, np.promote_types(dtype_of(leaf), np.float32)))))
    zero = equal(total, 0)
    return where(zero, 0, sqrt(where(zero, 1, total)))


def clip_by_global_norm(gradients: Tree, limit: float | Array) -> Tree:
    """Gradients scaled down together so that their global norm is at most `limit`; dtypes are kept.

    The factor is PyTorch's, `min(1, limit / (norm + 1e-6))` (Pascanu, Mikolov and Bengio, "On the difficulty of
    training recurrent neural networks", 2013). The limit may be traced. Raises ValueError for a negative one.
    """
    _check_not_negative(limit=limit)
    factor = minimum(divide(limit, add(global_norm(gradients), TINY)), 1)
    return tree.tree_map(lambda leaf: multiply(leaf, _as(factor, leaf)), gradients)


def clip_by_value(gradients: Tree, limit: float | Array) -> Tree:
    """Every element limited to the range from `-limit` to `limit`, which may be traced; dtypes are kept.

    Raises ValueError for a negative limit.
    """
    _check_not_negative(limit=limit)

    def clipped(leaf: Array) -> Array:
        high = _as(limit, leaf)
        return clip(leaf, -high, high)

    return tree.tree_map(clipped, gradients)


def _counting(slots: tuple[str, ...], at: Callable[[Array], Update]) -> Optimizer:
    """The optimiser whose rule depends on the number of the step, a float64: `at(steps)` is that rule."""

    def update(gradients: Tree, state: State, params: Tree) -> tuple[Tree, State]:
        count = add(state["count"], 1)
        params, kept = _updated(at(astype(count, np.float64)), slots, gradients, state, params)
        return params, {"count": count, **kept}

    def init(params: Tree) -> State:
        return {"count": np.zeros((), np.int64), **_zeros(slots, params)}

    return Optimizer(init, update)


def _check_adam(learning_rate: float | Array, b1: float, b2: float, eps: float, weight_decay: float) -> None:
    _check_not_negative(learning_rate=learning_rate, eps=eps, weight_decay=weight_decay)
    if not (0 <= b1 < 1 and 0 <= b2 < 1):
        raise ValueError(f"b1 and b2 are averaging weights from 0 up to, not including, 1; not {b1} and {b2}")


def _zeros(slots: tuple[str, ...], params: Tree) -> State:
    return {slot: tree.tree_map(zeros_like, params) for slot in slots}


def _updated(
    rule: Update, slots: tuple[str, ...], gradients: Tree, state: State, params: Tree
) -> tuple[Tree, dict[str, Tree]]:
    """The rule applied leaf by leaf, and what it returned put back into containers."""
    leaves, structure = tree.flatten(params)
    given = {"gradients": gradients, **{slot: state[slot] for slot in slots}}
    columns = [_leaves_like(leaves, structure, what, container) for what, container in given.items()]
    rows = [rule(*row) for row in zip(leaves, *columns, strict=True)]
    new_params, *new_slots = [tree.unflatten(structure, [row[i] for row in rows]) for i in range(1 + len(slots))]
    return new_params, dict(zip(slots, new_slots, strict=True))


def _leaves_like(params: list[Array], structure: tree.Structure, what: str, container: Tree) -> list[Array]:
    """The leaves of a container laid out like the parameters, in their dtypes."""
    leaves, found = tree.flatten(container)
    if found != structure:
        raise ShapeError(
            located(
                f"{what} laid out as {tree.described(found)}, params as {tree.described(structure)}; give one for each"
            )
        )
    for leaf, param in zip(leaves, params, strict=True):
        if not dims.same_shape(shape_of(leaf), shape_of(param)):
            raise ShapeError(located(f"{what} of shape {shape_of(leaf)} for params of shape {shape_of(param)}"))
    return [_as(leaf, param) for leaf, param in zip(leaves, params, strict=True)]


def _as(value: Any, like: Array) -> Any:
    """A value in the dtype of another; a Python number takes it by itself."""
    return value if promotion.is_scalar(value) else cast(value, dtype_of(like))


def _check_not_negative(**values: Any) -> None:
    """Raise ValueError for a number below 0; what is traced has no value yet."""
    for name, value in values.items():
        if promotion.is_scalar(value) and not value >= 0:
            raise ValueError(f"{name} is 0 or more, not {value}")
