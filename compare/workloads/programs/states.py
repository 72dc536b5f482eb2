"""Shapes that depend on values, and state that a loop carries or that is kept between calls.

The shapes are those of masks, filters, distinct values, crops and repeats. State is carried by a loop with several
conditions, or kept where no argument shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, scalar

VALUE_SHAPED = "the shape of the result depends on values, and a fixed graph must know its shapes"


def masked_mean(x: Array) -> Array:
    """The mean of those that are positive, zero if none is: f[N] -> f[]."""
    kept = x[x > 0]
    if kept.shape[0] == 0:
        return graphs.sum(x) * 0
    return graphs.mean(kept)


def masked_mean_graph(x: Array) -> Array:
    """A sum with zeros, over a count."""
    kept = x > 0
    return graphs.sum(graphs.where(kept, x, 0.0)) / graphs.maximum(graphs.sum(kept), 1)


def select_positive(x: Array) -> Array:
    """Those that are positive: f[N] -> f[positive]."""
    return x[x > 0]


def steps_between_kept(x: Array) -> Array:
    """The squared steps between neighbours, once those that are negative are gone: f[N] -> f[]."""
    kept = [i for i, value in enumerate(x) if value >= 0]
    return graphs.sum((x[kept[1:]] - x[kept[:-1]]) ** 2)


def steps_between_kept_graph(x: Array) -> Array:
    """The last that was kept is state."""

    def step(state: Array, value: Array) -> Array:
        total, last, any_kept = state
        keep = value >= 0
        more = graphs.where(keep & any_kept, (value - last) ** 2, 0.0)
        return (total + more, graphs.where(keep, value, last), any_kept | keep), ()

    return graphs.scan(step, (x[0] * 0, x[0] * 0, False), x)[0][0]


def first_of_each(x: Array, labels: Array) -> Array:
    """The product of those whose label is new, remembered in a set: f[N], i[N] -> f[]."""
    seen, kept = set(), []
    for value, label in zip(x, labels, strict=True):
        if int(label) not in seen:
            seen.add(int(label))
            kept.append(value)
    return graphs.prod(graphs.stack(kept))


def first_of_each_graph(x: Array, labels: Array) -> Array:
    """Each against each before it."""
    equal = graphs.expand_dims(labels, axis=1) == labels
    earlier = np.tri(x.shape[0], k=-1, dtype=bool)
    return graphs.prod(graphs.where(graphs.any(equal & earlier, axis=1), 1.0, x))


def trim(x: Array) -> Array:
    """The mean square of what is left without silence at the end: f[N] -> f[]."""
    while x.shape[0] > 1 and abs(x[-1]) < 0.1:
        x = x[:-1]
    return graphs.mean(x * x)


def trim_graph(x: Array) -> Array:
    """The length that is left, as a number."""
    left = graphs.max(graphs.where(abs(x) >= 0.1, np.arange(1, x.shape[0] + 1), 1))
    return graphs.sum(graphs.where(np.arange(x.shape[0]) < left, x * x, 0.0)) / left


def repeat_each(x: Array, counts: Array) -> Array:
    """Each as often as its count says: f[N], i[N] -> f[sum of counts]."""
    return graphs.stack([value for value, count in zip(x, counts, strict=True) for _ in range(int(count))])


def crop_mean(image: Array, box: Array) -> Array:
    """The mean of a crop, whose corners are data: f[N, M], i[4] -> f[]."""
    top, bottom, left, right = (int(corner) for corner in box)
    return graphs.mean(image[top:bottom, left:right])


def crop_mean_graph(image: Array, box: Array) -> Array:
    """A mask of rows and one of columns."""
    rows = np.arange(image.shape[0])
    columns = np.arange(image.shape[1])
    inside_rows = graphs.expand_dims((rows >= box[0]) & (rows < box[1]), axis=1)
    inside = inside_rows & (columns >= box[2]) & (columns < box[3])
    return graphs.sum(graphs.where(inside, image, 0.0)) / graphs.sum(inside)


def nucleus(scores: Array, mass: Array) -> Array:
    """The entropy of the likeliest that together have some probability: f[N], f[] -> f[]."""
    ranked = sorted(graphs.softmax(scores), reverse=True)
    kept, total = [], 0.0
    for p in ranked:
        if total >= mass:
            break
        kept.append(p)
        total = total + p
    q = graphs.stack(kept) / total
    return -graphs.sum(q * graphs.log(q))


def nucleus_graph(scores: Array, mass: Array) -> Array:
    """Sorted at once; those past the mass are masked."""
    p = graphs.sort(graphs.softmax(scores), descending=True)
    kept = graphs.cumulative_sum(p) - p < mass
    q = p / graphs.sum(graphs.where(kept, p, 0.0))
    return -graphs.sum(graphs.where(kept, q * graphs.log(q), 0.0))


_MIXED = ((1, -2, 3, -4), (-1, -2, -3, -4), (4, 3, 2, 1))
_IMAGE = np.arange(20.0).reshape(4, 5) ** 2

SHAPES = (
    Program(masked_mean, masked_mean_graph, [(floats(*x),) for x in _MIXED]),
    Program(select_positive, None, [(floats(*x),) for x in _MIXED], VALUE_SHAPED),
    Program(
        steps_between_kept,
        steps_between_kept_graph,
        [(floats(*x),) for x in ((1, -2, 3, 7), (1, 2, 4, 8), (-1, 5, -3, 2))],
    ),
    Program(
        first_of_each,
        first_of_each_graph,
        [(floats(2, 3, 5, 7), np.array(labels)) for labels in ((1, 2, 1, 3), (3, 2, 1, 0), (4, 4, 4, 4))],
    ),
    Program(trim, trim_graph, [(floats(*x),) for x in ((1, 2, 0.05, -0.01), (1, 2, 3, 4), (1, 0, 3, 0.02))]),
    Program(
        repeat_each,
        None,
        [(floats(1, 2, 3), np.array(counts)) for counts in ((1, 1, 1), (2, 0, 3), (0, 0, 1))],
        VALUE_SHAPED,
    ),
    Program(
        crop_mean, crop_mean_graph, [(_IMAGE, np.array(box)) for box in ((0, 4, 0, 5), (1, 2, 2, 4), (2, 4, 1, 2))]
    ),
    Program(nucleus, nucleus_graph, [(floats(2, 1, 0.5, -1), scalar(mass)) for mass in (0.5, 0.7, 0.99)]),
)


# State ----------------------------------------------------------------------------------------------------------------


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

STATE = (
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


PROGRAMS = {"shapes": SHAPES, "state": STATE}
