"""Differential equations in steps: as small as an error asks, until an event, or solved by an iteration each."""

from __future__ import annotations

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar

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


PROGRAMS = (
    Program(falling, falling_graph, [(scalar(height),) for height in (1, 0.1, 20)]),
    Program(step_doubling, step_doubling_graph, [(scalar(rate),) for rate in (0.5, 4, 11)]),
    Program(backward_euler, backward_euler_graph, [(scalar(rate),) for rate in (0.5, 3, 40)]),
    Program(predators, predators_graph, [(floats(*x),) for x in ((1, 2.5), (0.4, 1), (1.2, 1.1))]),
)
