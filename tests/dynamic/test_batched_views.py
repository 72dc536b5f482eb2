"""Deferred values seen otherwise: slices of any step, flips, transposes, reshapes, and what is computed of these."""

from __future__ import annotations

import os

import numpy as np
import pytest

import dynamic
import graphs as g
from graphs.ops.movement import identity
from tests.helpers.slow import mostly_slow

COUNT = int(os.environ.get("RANDOM_VIEWS", "300"))
COPIES = 3
MOST = 200  # elements

# Steps: each draws its options for an array of some shape, or says None where it does not apply ------------------


def entry(random, size):
    """An int, or a slice that may start and stop beyond the ends, in either direction."""
    if size and random.random() < 0.25:
        return int(random.integers(-size, size))
    ends = [None if random.random() < 0.5 else int(end) for end in random.integers(-size - 2, size + 3, 2)]
    return slice(*ends, [None, 1, -1, 2, -2, size + 1, -size - 1][random.integers(7)])


def key(random, shape):
    parts = [entry(random, size) for size in shape[: random.integers(0, len(shape) + 1)]]
    if random.random() < 0.3:
        parts.insert(random.integers(0, len(parts) + 1), None)
    if random.random() < 0.3:
        parts = [..., *[entry(random, size) for size in shape[len(shape) - len(parts) :]]][: len(parts) + 1]
    return {"key": tuple(parts)}


def axes(random, shape):
    chosen = random.permutation(len(shape))[: random.integers(1, len(shape) + 1)] if shape else []
    return {"axis": tuple(map(int, chosen))}


def axis(random, shape):
    return {"axis": int(random.integers(-len(shape), len(shape)))} if shape else None


def order(random, shape):
    return {"axes": tuple(map(int, random.permutation(len(shape))))}


def other_shape(random, shape):
    size, sizes = int(np.prod(shape)), []
    while size > 1 and len(sizes) < 3:
        sizes.append(int(random.choice([n for n in range(1, size + 1) if size % n == 0])))
        size //= sizes[-1]
    return {"shape": (*sizes, size)}


def positions(random, shape):
    found = axis(random, shape)
    if found is None or not shape[found["axis"]]:
        return None
    size = shape[found["axis"]]
    return found | {"indices": random.integers(-size, size, [(), (2,), (2, 2)][random.integers(3)])}


def index_array(random, shape):
    if not shape or not shape[0]:
        return None
    parts = [slice(None, None, -1) if random.random() < 0.5 else slice(1, None) for _ in shape[1:]]
    return {"key": (random.integers(-shape[0], shape[0], 2), *parts)}


STEPS = {
    "getitem": (lambda x, key: x[key], key),
    "getitem again": (lambda x, key: x[key], key),
    "array index": (lambda x, key: x[key], index_array),
    "flip": (g.flip, axes),
    "permute_dims": (g.permute_dims, order),
    "reshape": (g.reshape, other_shape),
    "take": (lambda x, indices, axis: g.take(x, indices, axis=axis), positions),
    "roll": (lambda x, axis: g.roll(x, 1, axis=axis), axis),
    "sum": (g.sum, axis),
    "stack": (lambda x, axis: g.stack([x, x * 2.0], axis=axis), axis),
    "concat": (lambda x, axis: g.concat([x, g.flip(x, axis=axis)], axis=axis), axis),
    "rows": (lambda x: g.stack([row * (i + 1.0) for i, row in enumerate(x)]), lambda _, s: {} if s and s[0] else None),
    "multiply": (lambda x: x * x, lambda *_: {}),
    "tanh": (g.tanh, lambda *_: {}),
    "add": (lambda x: x + np.cos(np.arange(x.size, dtype=float)).reshape(x.shape), lambda *_: {}),
}


def chain(random, shape):
    """A random chain of steps on an array of a shape: (name, options) of each."""
    steps, x = [], dynamic.tensor(np.zeros(shape))
    while len(steps) < 5:
        name = list(STEPS)[random.integers(len(STEPS))]
        function, draw = STEPS[name]
        options = draw(random, x.shape)
        result = None if options is None else function(x, **options)
        if result is not None and result.size <= MOST and result.ndim <= 5:
            steps.append((name, options))
            x = result
    return steps


def follow(steps, x, kept):
    """What a chain makes of x. Sums what it passed on the way as well, where `kept` says so."""
    total = 0.0
    for number, (name, options) in enumerate(steps):
        function, _ = STEPS[name]
        x = function(x, **options)
        if number == kept:
            total = total + g.sum(x * x)
    weights = np.sin(np.arange(x.size, dtype=float) + 1).reshape(x.shape)
    return x, total + g.sum(x * weights)


def examples(seed):
    random = np.random.default_rng(seed)
    shape = tuple(map(int, random.integers(0 if random.random() < 0.1 else 1, 5, random.integers(0, 4))))
    arrays = [random.standard_normal(shape) for _ in range(COPIES)]
    return arrays, chain(random, shape), int(random.integers(5))


def results(arrays, function):
    """The values of a function on several arrays, their total and its gradients."""
    leaves = [dynamic.tensor(array, requires_grad=True) for array in arrays]
    found = [function(identity(leaf)) for leaf in leaves]
    total = found[0][1]
    for _, more in found[1:]:
        total = total + more
    return leaves, [value for value, _ in found], total


def numbers(leaves, values, total):
    if total.requires_grad:
        total.backward()
    gradients = [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    return [total.detach().numpy(), *[value.detach().numpy() for value in values], *gradients]


KEYS = [
    *[
        np.s_[::-1],
        np.s_[::-1, ::-1],
        np.s_[-1, ::-1],
        np.s_[0, 0, ::-1],
        np.s_[0, ::-1, 0],
        np.s_[..., ::-1],
        np.s_[::-2],
    ],
    *[
        np.s_[:1, ::-1],
        np.s_[1:, 2:, ::-1],
        np.s_[None, ::-1],
        np.s_[1, None, 1:3],
        np.s_[1, 1:2:3],
        np.s_[1, 1, 2:1:-1],
    ],
    *[
        np.s_[5:0],
        np.s_[2:],
        np.s_[0:0, ::-1],
        np.s_[1, 9:],
        np.s_[1, -9:-8:-1],
        np.s_[0, 0, 0, None],
        np.s_[1, 2, 3, ...],
    ],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_slice_of_a_deferred_value(key):
    x = np.arange(24.0).reshape(2, 3, 4)
    leaf = dynamic.tensor(x, requires_grad=True)
    weights = np.arange(x[key].size, dtype=float).reshape(x[key].shape) + 1
    expected = np.zeros_like(x)
    expected[key] = weights
    with dynamic.batched():
        y = (leaf * 1.0)[key]
        total = g.sum(y * weights)
    np.testing.assert_array_equal(y.detach().numpy(), x[key])
    total.backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), expected)


@pytest.mark.parametrize("block", mostly_slow(range(10), 1))
def test_chains_of_views(block):
    for seed in range(block, COUNT, 10):
        arrays, steps, kept = examples(seed)
        called = lambda x: follow(steps, x, kept)  # noqa: B023, E731  (used up in this round)
        expected = numbers(*results(arrays, called))
        for function in (called, dynamic.cell(called)):
            with dynamic.batched():
                found = results(arrays, function)
            for one, other in zip(expected, numbers(*found), strict=True):
                assert one.shape == other.shape, (seed, steps)
                np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12, err_msg=f"{seed}: {steps}")
