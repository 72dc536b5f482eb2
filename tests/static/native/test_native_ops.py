"""Every op's samples as native code: what NumPy's kernels give but for rounding, gradients too."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
import static
from graphs.op import registered_ops
from graphs.testing import samples

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

TOLERANCE = {"f4": 3e-6, "f8": 1e-12}


def samples_of(name):
    try:
        return samples(name)
    except g.GraphError:
        return []  # control flow, and ops that other tests define


OPS = sorted(name for name in registered_ops() if samples_of(name))
EFFECTS = ("print", "breakpoint", "require")


def agrees(actual, expected, dtype, what):
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), what
    if expected.dtype.kind == "f":
        scale = max(1.0, np.max(np.abs(expected[np.isfinite(expected)]), initial=0))
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(actual, expected, rtol=10 * tolerance, atol=tolerance * scale, err_msg=what)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=what)


def together(calls):
    """One function of all arrays that makes every call, so that all are compiled at once."""
    counts = [len(call.arrays) for call in calls]

    def every(*arrays):
        starts = np.cumsum([0, *counts])
        return [call(*arrays[a:b]) for call, a, b in zip(calls, starts, starts[1:], strict=False)]

    return every, [array for call in calls for array in call.arrays]


def summed(calls):
    """The sum of what the calls give, weighted, and its gradient in every floating array that has one."""
    every, arrays = together(calls)
    places, at = [], 0
    for call in calls:
        places += [at + i for i in call.differentiable]
        at += len(call.arrays)

    def total(*inputs):
        values = [v for v in every(*inputs) if v.dtype.kind == "f"]
        weights = [np.linspace(0.5, 1.5, v.size, dtype=v.dtype).reshape(v.shape) for v in values]
        return g.sum(g.stack([g.sum(v * w) for v, w in zip(values, weights, strict=True)]))

    return static.value_and_grad(total, tuple(places)), arrays, bool(places)


@pytest.mark.parametrize("dtype", ["f4", pytest.param("f8", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name in OPS if name not in EFFECTS])
def test_samples(name, dtype):
    calls = [sample.cast(dtype) for sample in samples(name)]
    every, arrays = together(calls)
    gradient, _, has_one = summed(calls)
    with np.errstate(all="ignore"):
        for f in [every, gradient] if has_one else [every]:
            expected = g.tree.leaves(static.compile(f, *arrays)(*arrays))
            actual = g.tree.leaves(static.compile(f, *arrays, backend="native")(*arrays))
            for a, b in zip(actual, expected, strict=True):
                agrees(a, b, dtype, f"{name} {dtype}")
