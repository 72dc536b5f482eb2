"""Training loops that watch themselves: patience, rejected steps, a scale for the loss, examples that are skipped."""

from __future__ import annotations

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal, scalar

PATIENCE = 2


def early_stopping(x: Array, rates: Array) -> Array:
    """Descent until the loss has not improved for some steps: the best point on the way, f[N], f[T] -> f[N]."""
    best, lowest, waited = x, graphs.sum(x**4 + x), 0
    for rate in rates:
        x = x - rate * (4 * x**3 + 1)
        loss = graphs.sum(x**4 + x)
        if loss < lowest:
            best, lowest, waited = x, loss, 0
        else:
            waited += 1
            if waited == PATIENCE:
                break
    return best


def early_stopping_graph(x: Array, rates: Array) -> Array:
    """What was waited for is state, and after the last step nothing improves any more."""

    def step(state: Array, rate: Array) -> Array:
        x, best, lowest, waited = state
        x = x - rate * (4 * x**3 + 1)
        loss = graphs.sum(x**4 + x)
        better = (loss < lowest) & (waited < PATIENCE)
        waited = graphs.where(better, 0, waited + 1)
        return (x, graphs.where(better, x, best), graphs.where(better, loss, lowest), waited), ()

    return graphs.scan(step, (x, x, graphs.sum(x**4 + x), 0), rates)[0][1]


def rejected_steps(x: Array, rate: Array) -> Array:
    """Steps that are undone where the loss rises, at a rate that then falls: f[N], f[] -> f[]."""
    loss = graphs.sum(x**4)
    for _ in range(5):
        after = x - rate * 4 * x**3
        reached = graphs.sum(after**4)
        if reached < loss:
            x, loss = after, reached
        else:
            rate = rate / 4
    return graphs.sum(x) + rate


def rejected_steps_graph(x: Array, rate: Array) -> Array:
    """A branch in an unrolled loop."""
    loss = graphs.sum(x**4)
    for _ in range(5):
        after = x - rate * 4 * x**3
        reached = graphs.sum(after**4)
        lower = reached < loss
        x, loss = graphs.where(lower, after, x), graphs.where(lower, reached, loss)
        rate = graphs.where(lower, rate, rate / 4)
    return graphs.sum(x) + rate


def loss_scaling(x: Array, gradients: Array) -> Array:
    """A scale, halved where a gradient is too large and doubled after two that were not: f[N], f[T, N] -> f[N]."""
    scale, good = 8.0, 0
    for gradient in gradients:
        if graphs.max(abs(gradient)) * scale > 16:
            scale, good = scale / 2, 0
            continue
        x = x - 0.1 * gradient * x
        good += 1
        if good == 2:
            scale, good = scale * 2, 0
    return x * scale


def loss_scaling_graph(x: Array, gradients: Array) -> Array:
    """A scan with a branch for each case."""

    def step(state: Array, gradient: Array) -> Array:
        x, scale, good = state
        large, second = graphs.max(abs(gradient)) * scale > 16, good == 1
        x = graphs.where(large, x, x - 0.1 * gradient * x)
        scale = graphs.where(large, scale / 2, graphs.where(second, scale * 2, scale))
        return (x, scale, graphs.where(large | second, 0, good + 1)), ()

    x, scale, _ = graphs.scan(step, (x, 8.0, 0), gradients)[0]
    return x * scale


def hard_examples(weight: Array, rows: Array, targets: Array) -> Array:
    """The mean loss of the examples that are not yet learnt: f[N], f[B, N], f[B] -> f[]."""
    total, used = weight[0] * 0, 0
    for row, target in zip(rows, targets, strict=True):
        loss = (graphs.sum(row * weight) - target) ** 2
        if loss < 0.5:
            continue
        total = total + loss
        used += 1
    if used == 0:
        return total
    return total / used


def hard_examples_graph(weight: Array, rows: Array, targets: Array) -> Array:
    """All losses, and a mask."""
    losses = (graphs.sum(rows * weight, axis=1) - targets) ** 2
    hard = losses >= 0.5
    return graphs.sum(graphs.where(hard, losses, 0.0)) / graphs.maximum(graphs.sum(hard), 1)


_ROWS = normal(21, 4, 3)
_WEIGHT = floats(0.5, -1, 2)
_FITTED = _ROWS @ _WEIGHT

PROGRAMS = (
    Program(
        early_stopping,
        early_stopping_graph,
        [
            (floats(1, -0.3), floats(*rates))
            for rates in ((0.1, 0.1, 0.1, 0.1), (0.1, -0.2, -0.1, 0.4), (0.1, -0.2, 0.3, 0.1))
        ],
    ),
    Program(
        rejected_steps,
        rejected_steps_graph,
        [(floats(*x), scalar(rate)) for x, rate in (((1, 0.5), 0.1), ((2, -1), 0.4), ((1, 0.3), 9))],
    ),
    Program(
        loss_scaling,
        loss_scaling_graph,
        [(floats(1, -2), floats(*rows)) for rows in (([1, 1], [3, 0]), ([1, 0], [0, 1], [1, 1], [0.5, 0]), ([9, 0],))],
    ),
    Program(
        hard_examples,
        hard_examples_graph,
        [(_WEIGHT, _ROWS, targets) for targets in (_FITTED + 0.1, _FITTED + 2, _FITTED + floats(0, 1, -3, 0.2))],
    ),
)
