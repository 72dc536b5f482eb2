"""Arrays of as many axes as NumPy takes, some of whose functions take fewer: 32, and one of them crashes beyond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static

SHAPES = {"33 axes": (2, *[1] * 31, 3), "64 axes": (2, *[1] * 62, 3)}
PLACES = np.array([0, 1, 1])

# Each function, and the same of an array of two axes, whose gradient is the same.
CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    name: (f, f)
    for name, f in {
        "multiply": lambda x: x * 2 + x * x,
        "sum": lambda x: g.sum(x, axis=0) * g.sum(x),
        "mean": lambda x: x - g.mean(x),
        "max": g.max,
        "softmax": g.softmax,
        "where": lambda x: g.where(x > 0, x * x, 0.0),
        "clip": lambda x: g.clip(x, -1, 1),
        "cumulative_sum": lambda x: g.cumulative_sum(x, axis=-1),
        "take first": lambda x: g.take(x, PLACES, axis=0),
        "take last": lambda x: g.take(x, PLACES, axis=-1),
        "concat": lambda x: g.concat([x, x * 3], axis=-1),
        "flip": lambda x: g.flip(x, axis=-1) * PLACES,
    }.items()
}
CALLS["index"] = (lambda x: x[1, ..., 2] * x, lambda x: x[1, 2] * x)
CALLS["take_along_axis"] = (
    lambda x: g.take_along_axis(x, PLACES.reshape((1,) * (len(x.shape) - 1) + (3,)), axis=-1),
    lambda x: g.take_along_axis(x, PLACES.reshape(1, 3), axis=-1),
)


@pytest.mark.diagonal("name", "shape")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", CALLS)
def test_a_gradient_of_many_axes_is_that_of_two(name: str, shape: tuple[int, ...]) -> None:
    if name == "take_along_axis" and len(shape) > (63 if np.lib.NumpyVersion(np.__version__) >= "2.4.0" else 32):
        pytest.skip("NumPy takes so many arrays of indices, and no more")
    many, two = CALLS[name]
    values = np.array([[0.5, -1.5, 2.5], [-0.25, 3.0, 0.75]])
    expected = dynamic.grad(lambda x: g.sum(two(x)))(values)
    leaf = dynamic.tensor(values.reshape(shape), requires_grad=True)
    g.sum(many(leaf)).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy().reshape(2, 3), expected, rtol=1e-12)
    np.testing.assert_allclose(static.grad(lambda x: g.sum(many(x)))(values.reshape(shape)).reshape(2, 3), expected)


def test_a_product_of_many_axes_has_a_gradient() -> None:
    values = np.arange(6.0).reshape((2, *[1] * 31, 3))
    leaf = dynamic.tensor(values, requires_grad=True)
    g.sum(leaf @ np.full((*[1] * 32, 3, 2), 2.0)).backward()
    assert leaf.grad is not None
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full(values.shape, 4.0))
