"""Shapes that depend on values: masks, filters, distinct values, crops, repeats."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar

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

PROGRAMS = (
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
