"""Ops over sliding windows as native code against NumPy's kernels: any window, layout, dtype and number of threads."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs as g
import static

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from graphs.ops import pooling
from graphs.ops.convolution import convolution, convolution_input, convolution_weight
from graphs.ops.windows import counts
from static.native import link, products
from static.native import target as machines
from static.native.convolutions import Convolution
from static.native.target import AVX2, AVX512, NEON
from static.native.weight_gradients import WeightGradient
from tests.helpers.native_cut import everything_cut
from tests.helpers.native_reference import in_python
from tests.helpers.slow import examples
from tests.static.native.test_native_targets import inner_loops, multiplications, stack_operands

TARGETS = {"AVX2": AVX2, "AVX-512": AVX512, "NEON": NEON}


@st.composite
def windows(draw, ranks, padding=4, longest=4):
    """Sizes of axes, and a window that slides over them."""
    sizes, window = [], []
    for _ in range(draw(st.sampled_from(ranks))):
        length, stride, dilation = draw(st.integers(1, longest)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
        before, after = draw(st.integers(0, padding)), draw(st.integers(0, padding))
        least = max(1, dilation * (length - 1) + 1 - before - after)
        sizes.append(least + draw(st.integers(0, 20 if not sizes else 6)))
        window.append((length, stride, before, after, dilation))
    return tuple(sizes[::-1]), tuple(window[::-1])


@st.composite
def convolutions(draw, ranks=(1, 2, 3)):
    """The three ops with arrays to call them on, which are also transposed, and sliced with a step."""
    sizes, window = draw(windows(ranks))
    groups, batch = draw(st.sampled_from([1, 1, 2, 3])), draw(st.integers(1, 3))
    channels, features = groups * draw(st.integers(1, 4)), groups * draw(st.sampled_from([1, 2, 7, 17, 33]))
    dtype, layout = draw(st.sampled_from(["f4", "f8"])), draw(st.sampled_from(["rows", "columns", "steps"]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def array(*shape):
        return rng.normal(size=shape).astype(dtype)

    x, cotangent = array(batch, channels, *sizes), array(batch, features, *counts(sizes, window))
    weight = array(features, channels // groups, *(part[0] for part in window))
    calls = {
        "convolution": (lambda x, y: convolution(x, y, window, groups), (x, weight)),
        "convolution_input": (lambda x, y: convolution_input(x, y, sizes, window, groups), (cotangent, weight)),
        "convolution_weight": (lambda x, y: convolution_weight(x, y, window, groups), (x, cotangent)),
    }
    return {name: _laid(layout, f, args) for name, (f, args) in calls.items()}


def _laid(layout, f, args):
    """The same call on arrays that lie so, of which the operands are views."""
    if layout == "columns":
        return (lambda *flipped: f(*map(g.permute_dims, flipped, _orders(flipped)))), tuple(a.T.copy() for a in args)
    if layout == "steps":
        return (lambda *wide: f(*(a[..., ::2] for a in wide))), tuple(np.repeat(a, 2, axis=-1) for a in args)
    return f, args


def _orders(arrays):
    return [tuple(range(a.ndim))[::-1] for a in arrays]


@st.composite
def poolings(draw, ranks=(1, 2)):
    """The six ops with arrays to call them on, with ties, infinities and NaNs, and as many axes before as there are."""
    sizes, window = draw(windows(ranks, padding=2, longest=3))
    dtype, outer = draw(st.sampled_from(["f4", "f8"])), draw(st.sampled_from([(), (3,), (2, 3)]))
    layout, special = draw(st.sampled_from(["rows", "columns", "steps"])), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.integers(-3, 4, (*outer, *sizes)).astype(dtype)
    if special:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.1] = -np.inf
    cotangent = rng.normal(size=(*outer, *counts(sizes, window))).astype(dtype)
    peak = pooling.window_max(x, window=window)
    tap = pooling.window_argmax(x, peak, window=window)
    calls = {
        "sum": (lambda x: pooling.window_sum(x, window=window), (x,)),
        "max": (lambda x: pooling.window_max(x, window=window), (x,)),
        "argmax": (lambda x, peak: pooling.window_argmax(x, peak, window=window), (x, peak)),
        "pick": (lambda x, tap: pooling.window_pick(x, tap, window=window), (x, tap)),
        "spread": (lambda y: pooling.window_spread(y, sizes=sizes, window=window), (cotangent,)),
        "place": (lambda y, tap: pooling.window_place(y, tap, sizes=sizes, window=window), (cotangent, tap)),
    }
    return {name: _laid(layout, f, args) for name, (f, args) in calls.items()}


def same(got, expected):
    """Whether two arrays have the same numbers; a NaN is as good as any other."""
    return got.dtype == expected.dtype and np.array_equal(got, expected, equal_nan=True)


def is_native(exe):
    """Whether no kernel of NumPy's is called."""
    return re.search(r"\bk\d+\(", exe.source) is None


def close(got, expected):
    scale = max(1, np.abs(expected).max())
    return got.shape == expected.shape and np.abs(got - expected).max() <= 100 * np.finfo(expected.dtype).eps * scale


@given(convolutions())
def test_convolutions_are_native_and_give_what_numpys_kernels_give(calls):
    for name, (f, args) in calls.items():
        exe = static.compile(f, *args, backend="native")
        assert is_native(exe)
        assert close(np.asarray(exe(*args)), np.asarray(f(*args))), name


@examples(0.3)
@given(convolutions())
def test_convolutions_have_the_same_bits_with_any_number_of_threads(calls):
    for f, args in calls.values():
        alone = np.asarray(static.compile(f, *args, backend="native")(*args))
        with everything_cut():
            assert np.asarray(static.compile(f, *args, backend="native", threads=3)(*args)).tobytes() == alone.tobytes()


@examples(0.1)
@given(convolutions(ranks=(1,)))
def test_the_reference_in_python_convolves_too(calls):
    for f, args in calls.values():
        with in_python():
            exe = static.compile(f, *args, backend="native")
        assert close(np.asarray(exe(*args)), np.asarray(f(*args)))


@given(poolings())
def test_poolings_are_native_and_give_what_numpys_kernels_give(calls):
    for name, (f, args) in calls.items():
        exe = static.compile(f, *args, backend="native")
        assert is_native(exe), name
        assert same(np.asarray(exe(*args)), np.asarray(f(*args))), name


@examples(0.3)
@given(poolings())
def test_poolings_are_the_same_with_any_number_of_threads(calls):
    for f, args in calls.values():
        with everything_cut():
            assert same(np.asarray(static.compile(f, *args, backend="native", threads=3)(*args)), np.asarray(f(*args)))


@examples(0.1)
@given(poolings(ranks=(1,)))
def test_the_reference_in_python_pools_too(calls):
    for f, args in calls.values():
        with in_python():
            exe = static.compile(f, *args, backend="native")
        assert same(np.asarray(exe(*args)), np.asarray(f(*args)))


def test_windows_of_many_elements_are_numpys():
    x = np.ones((2, 30, 30), "f4")
    exe = static.compile(lambda x: g.max_pool2d(x, 11), x, backend="native")
    assert not is_native(exe)
    assert same(np.asarray(exe(x)), np.asarray(g.max_pool2d(x, 11)))


def training_step(sizes, stride):
    def loss(weights, x):
        for weight in weights:
            x = g.max_pool2d(g.relu(g.conv2d(x, weight, stride=stride, padding=1)), 2)
        return g.mean(x * x)

    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape).astype("f4") / 9 for shape in ((20, 3, 3, 3), (32, 20, 3, 3))]
    return static.value_and_grad(loss), weights, rng.normal(size=(2, 3, *sizes)).astype("f4")


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("sizes", [(16, 32), (11, 13)])
def test_a_training_step_of_convolutions_and_poolings_is_one_native_call(sizes, stride):
    step, weights, x = training_step(sizes, stride)
    exe = static.compile(step, weights, x, backend="native")
    assert is_native(exe)
    (loss, grads), (expected, others) = exe(weights, x), static.compile(step, weights, x)(weights, x)
    assert close(np.asarray(loss), np.asarray(expected))
    assert all(map(close, grads, others))


@pytest.mark.parametrize("name", TARGETS)
def test_loops_over_windows_add_up_in_registers(name):
    step, weights, x = training_step((16, 32), 1)
    exe = static.compile(step, weights, x, backend="native")
    recipes = {
        kernel.recipe: f"k{i}"
        for i, kernel in enumerate(exe.kernels)
        if isinstance(kernel.recipe, (Convolution, WeightGradient))
    }
    loops = inner_loops(link.assembly(link.module(recipes, TARGETS[name]), TARGETS[name]))
    multiplied = [block for block in loops if multiplications(block)]
    assert len(multiplied) >= len(recipes)
    for block in multiplied:
        assert stack_operands(block) <= 0.1 * multiplications(block), block


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("length", [5, 7])
def test_many_taps_are_turns_of_a_loop_with_the_same_bits(length, stride, dilation, monkeypatch):
    rng = np.random.default_rng(length)
    weight = rng.normal(size=(7, 3, length, length)).astype("f4")
    x = rng.normal(size=(2, 3, 17, 18)).astype("f4")

    def loss(weight, x):
        return g.sum(g.square(g.conv2d(x, weight, stride=stride, dilation=dilation, padding=length // 2)))

    def made():
        exe = static.compile(static.value_and_grad(loss, (0, 1)), weight, x, backend="native")
        text = sum(len(kernel.llvm) for kernel in exe.kernels if isinstance(kernel.recipe, Convolution))
        return g.tree.leaves(exe(weight, x)), text

    rolled, text = made()
    monkeypatch.setattr(products, "MOST_TERMS", length**2)
    with monkeypatch.context() as patch:
        patch.setattr(link, "_in_use", {})
        patch.setenv(machines.CACHE_SWITCH, "off")
        written_out, longer = made()
    assert 2 * text < longer or stride > 1  # taps of residues lie in no rows
    assert all(same(np.asarray(a), np.asarray(b)) for a, b in zip(rolled, written_out, strict=True))


def test_an_element_that_no_tap_meets_gets_no_gradient():
    x, weight = np.ones((1, 1, 7), "f4"), np.ones((1, 1, 1), "f4")
    gradient = static.grad(lambda x: g.sum(g.conv1d(x, weight, stride=3)))
    assert static.compile(gradient, x, backend="native")(x).tolist() == [[[1, 0, 0, 1, 0, 0, 1]]]


def test_nothing_is_convolved_without_channels():
    x, weight = np.ones((2, 0, 5), "f4"), np.ones((3, 0, 2), "f4")
    assert not static.compile(g.conv1d, x, weight, backend="native")(x, weight).any()
    assert math.prod(static.compile(g.conv1d, x[:0], weight, backend="native")(x[:0], weight).shape) == 0
