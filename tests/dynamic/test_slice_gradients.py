"""The gradient of slices: added in place on the tape, and equal to zeros around each that are summed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import dynamic
import graphs as g
from graphs import dispatch
from graphs.ops import slicing
from tests.helpers.both_tapes import compiled_only, in_python
from tests.helpers.native_model import digest, watched

pytestmark = pytest.mark.usefixtures("nothing_unusual")

SHAPE = (4, 3, 2)
KEYS = npst.basic_indices(SHAPE, allow_newaxis=True, max_dims=5)
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a slice": lambda x, key: x[key],
    "a slice of a slice": lambda x, key: x[1:][key] if np.zeros(SHAPE)[1:].shape == SHAPE else x[::-1][key],
    "all of it": lambda x, _: x * x,
    "a sum, whose cotangent is a view": lambda x, _: g.sum(x),
    "itself, whose cotangent is shared": lambda x, _: x + x,
}


def _loss(x: Any, reads: list[tuple[str, Any]]) -> Any:
    total = g.sum(x) * 0.0
    for number, (way, key) in enumerate(reads):
        total = total + g.sum(g.sin(WAYS[way](x, key)) * (number + 1.0))
    return total


def _values(dtype: Any = np.float64) -> Any:
    return np.random.default_rng(0).normal(size=SHAPE).astype(dtype)


@given(st.lists(st.tuples(st.sampled_from(list(WAYS)), KEYS), min_size=1, max_size=8))
def test_slices_give_what_zeros_around_each_give(reads: list[tuple[str, Any]]) -> None:
    """Observed, an engine runs op by op: `place`, and then `add`."""
    in_place = dynamic.grad(_loss)(_values(), reads)
    with dispatch.observe_kernels(lambda *_: None):
        op_by_op = dynamic.grad(_loss)(_values(), reads)
    np.testing.assert_array_equal(in_place, op_by_op)


def digests() -> list[str]:
    """Of gradients of many slices, to the bit."""
    random, made = np.random.default_rng(1), []
    for _ in range(100):
        keys = [(int(random.integers(-4, 4)), slice(int(random.integers(0, 3)), None)) for _ in range(6)]
        reads = [(str(random.choice(list(WAYS))), key) for key in keys]
        made.append(digest([dynamic.grad(_loss)(_values(np.float32), reads)]))
    return made


@pytest.mark.slow
@compiled_only
def test_both_tapes_give_the_same_bits() -> None:
    program = "import json; from tests.dynamic.test_slice_gradients import *; print(json.dumps(digests()))"
    assert digests() == json.loads(in_python("-c", program))


def test_a_cotangent_that_others_hold_stays_as_it_is() -> None:
    x, y = (dynamic.tensor(np.ones(3), requires_grad=True) for _ in "xy")
    early = x[0] * 5.0  # so that its gradient comes after the sum's, which is one array for both
    g.sum((x + y) * dynamic.tensor([1.0, 2.0, 3.0]) + early).backward()
    assert y.grad.tolist() == [1, 2, 3]
    assert x.grad.tolist() == [1 + 15, 2, 3]


def test_a_hook_sees_the_whole_cotangent_and_may_keep_it() -> None:
    x = dynamic.tensor(np.arange(4.0), requires_grad=True)
    kept: list[Any] = []
    h = x * 2.0
    h.register_hook(kept.append)
    (h[0] + h[1] * 2.0 + h[0:2].sum()).backward()
    assert kept[0].tolist() == [2, 3, 0, 0]
    assert x.grad.tolist() == [4, 6, 0, 0]


def test_slices_have_gradients_of_gradients() -> None:
    x = dynamic.tensor(np.arange(1.0, 5.0), requires_grad=True)
    cubes = x[0] ** 3 + x[1] ** 3 * 2 + (x[1:3] ** 3).sum()
    (first,) = dynamic.grad_of(cubes, [x], create_graph=True)
    assert first.tolist() == [3, 3 * 4 * 3, 3 * 9, 0]
    (second,) = dynamic.grad_of(first.sum(), [x])
    assert second.tolist() == [6, 6 * 2 * 3, 6 * 3, 0]


def test_a_slice_of_another_dtype_than_the_cotangent() -> None:
    x = dynamic.tensor(np.ones(3, np.float32), requires_grad=True)
    (g.astype(x, "float64")[0] + x[1] + g.sum(x)).backward()
    assert x.grad.dtype == np.float32
    assert x.grad.tolist() == [2, 2, 1]


def test_a_loop_over_time_makes_zeros_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the size of the whole there is one array, in place of two a step."""
    steps, made = 50, 0

    def tell(array: Any) -> None:
        nonlocal made
        made += array.shape == xs.shape

    def told(g: Any, **attrs: Any) -> Any:
        tell(zeros := kernel(g, **attrs))
        return zeros

    kernel = slicing.place.kernel
    monkeypatch.setattr(slicing.place, "kernel", told)
    xs = dynamic.tensor(np.ones((steps, 30)), requires_grad=True)
    total = sum((xs[t].sum() for t in range(steps)), dynamic.zeros(()))
    with watched(tell):
        total.backward()
    assert made == 1
    assert (xs.grad.numpy() == 1).all()
