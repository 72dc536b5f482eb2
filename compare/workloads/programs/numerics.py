"""Numerics: differential equations in steps, training loops that watch themselves, and library code.

Steps are as small as an error asks, run until an event, or are solved by an iteration each.  A
training has patience, rejected steps, a scale for the loss, and examples that are skipped. Library code is special
functions, interpolation, statistics by rank, and a step within a radius.
"""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, normal, scalar

SIZE = 0.1


def falling(height: Array) -> Array:
    """A fall with drag until the ground is hit: the time of that, between two steps, f[] -> f[]."""
    speed, time = height * 0, 0.0
    while True:
        after = height + SIZE * speed
        if after <= 0:
            return time + SIZE * height / (height - after)
        speed = speed - SIZE * (9.8 + 0.5 * speed)
        height, time = after, time + SIZE


def falling_graph(height: Array) -> Array:
    """The event is the condition of the loop, and what follows it stands behind."""

    def step(state: Array) -> Array:
        height, speed, time = state
        return height + SIZE * speed, speed - SIZE * (9.8 + 0.5 * speed), time + SIZE

    start = (height, height * 0, 0.0)
    height, speed, time = graphs.while_loop(lambda state: state[0] + SIZE * state[1] > 0, step, start)
    return time - height / speed


def step_doubling(rate: Array) -> Array:
    """Decay over a unit of time, each step compared with two halves and repeated where they differ: f[] -> f[]."""

    def midpoint(y: Array, size: float) -> Array:
        return y - size * rate * (y - size / 2 * rate * y)

    time, y, size = 0.0, rate * 0 + 1, 0.5
    while time < 1:
        halves = midpoint(midpoint(y, size / 2), size / 2)
        if abs(midpoint(y, size) - halves) > 1e-4:
            size = size / 2
            continue
        y, time = halves, time + size
        size = min(size * 2, 1 - time)
    return y


def step_doubling_graph(rate: Array) -> Array:
    """Time and step are state as well, and whether a step is taken is a branch."""

    def midpoint(y: Array, size: Array) -> Array:
        return y - size * rate * (y - size / 2 * rate * y)

    def step(state: Array) -> Array:
        time, y, size = state
        halves = midpoint(midpoint(y, size / 2), size / 2)
        return graphs.cond(
            abs(midpoint(y, size) - halves) > 1e-4,
            lambda: (time, y, size / 2),
            lambda: (time + size, halves, graphs.minimum(size * 2, 1 - time - size)),
        )

    return graphs.while_loop(lambda state: state[0] < 1, step, (0.0, rate * 0 + 1, 0.5))[1]


def backward_euler(rate: Array) -> Array:
    """Implicit steps of y' = -rate y^3, each solved by Newton's iteration: f[] -> f[]."""
    y = rate * 0 + 1
    for _ in range(3):
        after = y
        while abs(after + SIZE * rate * after**3 - y) > 1e-11:
            after = after - (after + SIZE * rate * after**3 - y) / (1 + 3 * SIZE * rate * after**2)
        y = after
    return y


def backward_euler_graph(rate: Array) -> Array:
    """The steps are unrolled, and each iteration is an op."""
    y = rate * 0 + 1
    for _ in range(3):
        y = graphs.while_loop(
            lambda after, y=y: abs(after + SIZE * rate * after**3 - y) > 1e-11,
            lambda after, y=y: after - (after + SIZE * rate * after**3 - y) / (1 + 3 * SIZE * rate * after**2),
            y,
        )
    return y


def predators(x: Array) -> Array:
    """Prey and hunters until the prey is few, or for some time: f[2] -> f[]."""
    prey, hunters = x[0], x[1]
    steps = 0
    while prey > 0.5 and steps < 40:
        prey, hunters = prey + SIZE * prey * (1 - hunters), hunters + SIZE * hunters * (prey - 1)
        steps += 1
    return prey + hunters * steps


def predators_graph(x: Array) -> Array:
    """Three values are state."""

    def step(state: Array) -> Array:
        prey, hunters, steps = state
        return prey + SIZE * prey * (1 - hunters), hunters + SIZE * hunters * (prey - 1), steps + 1

    start = (x[0], x[1], 0)
    prey, hunters, steps = graphs.while_loop(lambda state: (state[0] > 0.5) & (state[2] < 40), step, start)
    return prey + hunters * steps


INTEGRATORS = (
    Program(falling, falling_graph, [(scalar(height),) for height in (1, 0.1, 20)]),
    Program(step_doubling, step_doubling_graph, [(scalar(rate),) for rate in (0.5, 4, 11)]),
    Program(backward_euler, backward_euler_graph, [(scalar(rate),) for rate in (0.5, 3, 40)]),
    Program(predators, predators_graph, [(floats(*x),) for x in ((1, 2.5), (0.4, 1), (1.2, 1.1))]),
)


# Training -------------------------------------------------------------------------------------------------------------


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

TRAINING = (
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


# Library --------------------------------------------------------------------------------------------------------------


def log_gamma(x: Array) -> Array:
    """Stirling's series, after as many steps of the recurrence as make it accurate: f[] -> f[]."""
    shift = x * 0
    while x < 8:
        shift = shift + graphs.log(x)
        x = x + 1
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return (x - 0.5) * graphs.log(x) - x + 0.5 * np.log(2 * np.pi) + series - shift


def log_gamma_graph(x: Array) -> Array:
    """The recurrence is an op."""

    def step(state: Array) -> Array:
        x, shift = state
        return x + 1, shift + graphs.log(x)

    x, shift = graphs.while_loop(lambda state: state[0] < 8, step, (x, x * 0))
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return (x - 0.5) * graphs.log(x) - x + 0.5 * np.log(2 * np.pi) + series - shift


def interpolated(heights: Array, knots: Array, at: Array) -> Array:
    """Between two knots on a line, beyond them constant: f[N], f[N], f[] -> f[]."""
    if at <= knots[0]:
        return heights[0]
    for i in range(1, knots.shape[0]):
        if at < knots[i]:
            part = (at - knots[i - 1]) / (knots[i] - knots[i - 1])
            return heights[i - 1] * (1 - part) + heights[i] * part
    return heights[-1]


def interpolated_graph(heights: Array, knots: Array, at: Array) -> Array:
    """The knot is a count, and what lies beyond is brought back."""
    i = graphs.minimum(graphs.maximum(graphs.sum(knots <= at), 1), knots.shape[0] - 1)
    part = graphs.minimum(graphs.maximum((at - knots[i - 1]) / (knots[i] - knots[i - 1]), 0.0), 1.0)
    return heights[i - 1] * (1 - part) + heights[i] * part


def deviation(x: Array) -> Array:
    """The median distance from the median, of an odd or an even number: f[N] -> f[]."""

    def median(values: list[Array]) -> Array:
        ranked = sorted(values)
        half = len(ranked) // 2
        if len(ranked) % 2:
            return ranked[half]
        return (ranked[half - 1] + ranked[half]) / 2

    middle = median(list(x))
    return median([abs(value - middle) for value in x])


def deviation_graph(x: Array) -> Array:
    """Arrays are sorted by an op."""

    def median(values: Array) -> Array:
        ranked = graphs.sort(values)
        half = ranked.shape[0] // 2
        if ranked.shape[0] % 2:
            return ranked[half]
        return (ranked[half - 1] + ranked[half]) / 2

    return median(abs(x - median(x)))


def rising_fit(x: Array) -> Array:
    """The nearest sequence that never falls: blocks that would are joined (pool adjacent violators), f[N] -> f[N]."""
    blocks: list[tuple[Array, int]] = []
    for value in x:
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, size = blocks.pop()
            total, count = total + before, count + size
        blocks.append((total, count))
    return graphs.stack([total / count for total, count in blocks for _ in range(count)])


def rising_fit_graph(x: Array) -> Array:
    """The largest of the smallest means around each place, of all blocks there could be."""
    n = x.shape[0]
    sums = graphs.concat([np.zeros(1), graphs.cumulative_sum(x)])

    def smallest(first: int, place: int) -> Array:
        return graphs.min(graphs.stack([(sums[end] - sums[first]) / (end - first) for end in range(place + 1, n + 1)]))

    rows = [[smallest(first, place) for first in range(place + 1)] for place in range(n)]
    return graphs.stack([graphs.max(graphs.stack(row)) for row in rows])


def trust_region(x: Array, radius: Array) -> Array:
    """Descent on x^4 - 2 x^2 by steps within a radius, which follows how well they went: f[], f[] -> f[]."""
    for _ in range(3):
        step = 4 * x - 4 * x**3
        if abs(step) > radius:
            step = radius if step > 0 else -radius
        after = x + step
        gain = x**4 - 2 * x**2 - (after**4 - 2 * after**2)
        if gain > 0:
            x = after
            if gain > 0.5:
                radius = radius * 2
        else:
            radius = radius / 4
    return x + radius


def trust_region_graph(x: Array, radius: Array) -> Array:
    """Each branch selects."""
    for _ in range(3):
        step = graphs.minimum(graphs.maximum(4 * x - 4 * x**3, -radius), radius)
        after = x + step
        gain = x**4 - 2 * x**2 - (after**4 - 2 * after**2)
        x = graphs.where(gain > 0, after, x)
        radius = graphs.where(gain > 0, graphs.where(gain > 0.5, radius * 2, radius), radius / 4)
    return x + radius


_KNOTS = floats(0, 1, 3, 4)

LIBRARY = (
    Program(log_gamma, log_gamma_graph, [(scalar(x),) for x in (0.5, 4.2, 11)]),
    Program(
        interpolated, interpolated_graph, [(floats(1, 3, 2, 5), _KNOTS, scalar(at)) for at in (-1, 0.3, 2.2, 3.5, 7)]
    ),
    Program(deviation, deviation_graph, [(floats(*x),) for x in ((3, 1, 2, 9.5), (1, 7, 2.5), (4, -2, 8, 1, 3.5))]),
    Program(rising_fit, rising_fit_graph, [(floats(*x),) for x in ((1, 2, 3, 4), (4, 2.5, 2, 1), (1, 3, 2, 5))]),
    Program(
        trust_region,
        trust_region_graph,
        [(scalar(x), scalar(radius)) for x, radius in ((1.5, 0.4), (0.9, 2), (-0.3, 0.3))],
    ),
)


PROGRAMS = {"integrators": INTEGRATORS, "training": TRAINING, "library": LIBRARY}
