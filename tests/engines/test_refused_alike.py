"""What one engine refuses the others refuse: every op's samples with an operand of another shape or dtype."""

from __future__ import annotations

import warnings

import numpy as np

import dynamic
import graphs as g
import static
from graphs.errors import GraphError
from graphs.op import get, registered_ops
from graphs.testing import samples
from tests.helpers.together import together

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64")
TRIES = 3  # of each op
EFFECTS = ("print", "breakpoint", "require")


def public_ops():
    """The names of ops that a user calls as they are, and that have samples."""
    for name in registered_ops():
        if name not in EFFECTS and get(name) in (getattr(g, name, None), getattr(g.linalg, name, None)):
            try:
                samples(name)
            except GraphError:
                continue  # control flow, and ops that other tests define
            yield name


def changed(array, rng):
    """The array in another dtype, or with its elements in another shape."""
    if rng.random() < 0.5:
        return array.astype(rng.choice(DTYPES))
    shape = list(array.shape)
    at = int(rng.integers(len(shape))) if shape else 0
    ways = ([*shape[:at], n, *shape[at + 1 :]] for n in (0, 1, shape[at] + 1)) if shape else iter([[0], [1], [2]])
    shapes = [*ways, shape[1:], [1, *shape], [2, *shape], []]
    wanted = shapes[int(rng.integers(len(shapes)))]
    return np.resize(array, wanted) if array.size else np.zeros(wanted, array.dtype)


def outcome(call, arrays):
    """The specs of what a call gives; or that it is refused."""
    try:
        return [(np.asarray(x).shape, np.asarray(x).dtype) for x in g.tree.leaves(call(*arrays))]
    except GraphError:
        return "refused"


def check(name):
    rng = np.random.default_rng(list(name.encode()))
    calls = [sample for sample in samples(name) if sample.arrays]
    for _ in range(TRIES if calls else 0):
        call = calls[int(rng.integers(len(calls)))]
        arrays = list(call.arrays)
        at = int(rng.integers(len(arrays)))
        arrays[at] = changed(arrays[at], rng)
        found = {
            "arrays": outcome(call, arrays),
            "tensors": outcome(call, [dynamic.tensor(x) for x in arrays]),
            "static": outcome(lambda *given: static.compile(call, *given)(*given), arrays),  # noqa: B023  (called now)
        }
        specs = [(x.dtype, x.shape) for x in arrays]
        assert found["arrays"] == found["tensors"] == found["static"], (specs, call.attrs, found)


@together("name", list(public_ops()), quick=40)
def test_engines_refuse_the_same_operands(name):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(name)


def test_indices_along_an_axis_have_the_axes_of_the_array():
    x, indices = np.arange(5.0), np.zeros((2, 0), int)
    for take in (g.take_along_axis, lambda *given, axis: static.compile(g.take_along_axis, *given, axis)(*given, axis)):
        for array in (x, dynamic.tensor(x)) if take is g.take_along_axis else (x,):
            assert outcome(lambda a, take=take: take(a, indices, axis=0), [array]) == "refused"


def test_the_gradient_of_a_floored_quotient_is_0_in_both_engines():
    x, y = np.array([5.0, -3.0]), np.array([2.0, 2.0])
    a, b = dynamic.tensor(x, requires_grad=True), dynamic.tensor(y, requires_grad=True)
    g.sum(g.floor_divide(a, b)).backward()
    traced = static.grad(lambda x, y: g.sum(g.floor_divide(x, y)), argnums=(0, 1))(x, y)
    for found, expected in zip((a.grad, b.grad), traced, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)
