"""State: carried by a loop with several conditions, or kept between calls where no argument shows it."""

from __future__ import annotations

from typing import Any

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar
from compare.workloads.programs.shapes import VALUE_SHAPED

WARM = 3
_kept: dict[str, Any] = {}


def _reset() -> None:
    _kept.update(calls=0, mean=0.0)


def trajectory(x: Array) -> Array:
    """Every state on the way until the way ends: f[] -> f[steps]."""
    states: list[Array] = []
    while abs(x) > 0.1 and len(states) < 8:
        x = graphs.sin(x) * 0.7
        states.append(x)
    return graphs.stack(states)


def descend(x: Array) -> Array:
    """Gradient descent with momentum, stopped by either of two conditions: f[N] -> f[]."""
    speed, steps = x * 0, 0
    while graphs.sum(x * x) > 0.01 and steps < 12:
        speed = 0.5 * speed - 0.4 * x
        x = x + speed
        steps += 1
    return graphs.sum(x) + steps


def descend_graph(x: Array) -> Array:
    """Three values are state, and the conditions one."""

    def step(state: Array) -> Array:
        x, speed, steps = state
        speed = 0.5 * speed - 0.4 * x
        return x + speed, speed, steps + 1

    x, _, steps = graphs.while_loop(
        lambda state: (graphs.sum(state[0] * state[0]) > 0.01) & (state[2] < 12), step, (x, x * 0, 0)
    )
    return graphs.sum(x) + steps


def thermostat(x: Array) -> Array:
    """A switch with hysteresis: what is summed while it is on, f[N] -> f[]."""
    on, total = False, x[0] * 0
    for value in x:
        if on and value > 2:
            on = False
        elif not on and value < 1:
            on = True
        if on:
            total = total + value * value
    return total


def thermostat_graph(x: Array) -> Array:
    """The switch is a bool in the state."""

    def step(state: Array, value: Array) -> Array:
        on, total = state
        on = graphs.where(on, ~(value > 2), value < 1)
        return (on, total + graphs.where(on, value * value, 0.0)), ()

    return graphs.scan(step, (False, x[0] * 0), x)[0][1]


def bouncing_ball(height: Array) -> Array:
    """A ball thrown up that loses speed at each bounce, for some time or some bounces: f[] -> f[]."""
    speed, time, bounces = height * 0 + 1, 0.0, 0
    while time < 1 and bounces < 3:
        speed = speed - 0.9
        height = height + 0.1 * speed
        time += 0.1
        if height < 0:
            height, speed = -height, -0.8 * speed
            bounces += 1
    return height


def bouncing_ball_graph(height: Array) -> Array:
    """Four values are state; the bounce is a branch in the loop."""

    def step(state: Array) -> Array:
        height, speed, time, bounces = state
        speed = speed - 0.9
        height = height + 0.1 * speed
        return graphs.cond(
            height < 0,
            lambda: (-height, -0.8 * speed, time + 0.1, bounces + 1),
            lambda: (height, speed, time + 0.1, bounces),
        )

    return graphs.while_loop(lambda state: (state[2] < 1) & (state[3] < 3), step, (height, height * 0 + 1, 0.0, 0))[0]


def warm_up(x: Array) -> Array:
    """A weight that rises over the first calls, counted outside: f[N] -> f[N]."""
    _kept["calls"] += 1
    return x * min(_kept["calls"] / WARM, 1.0)


def warm_up_graph(x: Array, calls: Array) -> Array:
    """The count of the calls before is passed in."""
    return x * graphs.minimum((calls + 1) / WARM, 1.0)


def running_mean(x: Array) -> Array:
    """Centred by the mean of earlier calls, which is kept between them as batch norm does: f[N] -> f[N]."""
    y = (x - _kept["mean"]) ** 2
    _kept["mean"] = 0.5 * _kept["mean"] + 0.5 * graphs.stop_gradient(graphs.mean(x))
    return y


def running_mean_graph(x: Array, mean: Array) -> Array:
    """The mean is passed in; it is the caller who keeps it."""
    return (x - mean) ** 2


_SERIES = ((0.5, 1.5, 2.5, 1.5, 0.2), (1.5, 2.5, 1.2, 1.8, 3), (0.5, 0.6, 1.9, 1.1, 0.1))
_ROWS = (floats(1, 3), floats(2, 2), floats(-1, 5), floats(0, 8))

PROGRAMS = (
    Program(trajectory, None, [(scalar(x),) for x in (0.5, 0.15, 3)], VALUE_SHAPED),
    Program(descend, descend_graph, [(floats(*x),) for x in ((1, -1), (0.2, 0.1), (50, 9))]),
    Program(thermostat, thermostat_graph, [(floats(*x),) for x in _SERIES]),
    Program(bouncing_ball, bouncing_ball_graph, [(scalar(height),) for height in (1, 0.05, 9)]),
    Program(
        warm_up,
        warm_up_graph,
        [(x,) for x in _ROWS],
        graph_inputs=[(x, scalar(calls)) for calls, x in enumerate(_ROWS)],
        reset=_reset,
    ),
    Program(
        running_mean,
        running_mean_graph,
        [(x,) for x in _ROWS],
        graph_inputs=[(x, scalar(mean)) for x, mean in zip(_ROWS, (0, 1, 1.5, 1.75), strict=True)],
        reset=_reset,
    ),
)
