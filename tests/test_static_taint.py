"""What padding can reach: never less than it does, on every op and random programs, and no more where masks decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs.errors import LinAlgError, ShapeError
from graphs.op import registered
from graphs.ops import reductions
from graphs.testing import samples
from static import taint
from static.taint import marks as marking
from static.taint.follow import _RULES
from tests import random_control

SAMPLES = [
    sample
    for name, op in registered().items()
    if op.family not in ("source", "control", "effect")
    for sample in samples(name)
    if sample.arrays
]


def other(rng, array, changed):
    """The array with other values, valid ones, in some places."""
    result = array.copy()
    if array.dtype.kind in "iu":
        result[changed] = rng.permutation(array.ravel())[: changed.sum()]
    else:
        result[changed] = ~array[changed] if array.dtype.kind == "b" else abs(array[changed]) * 1.7 + 0.1
    return result


def violations(f, arrays, rng):
    """The outputs of which an element changes with padding that is said not to reach it, or is not what is known."""
    graph = static.trace(f, *arrays)
    marks, one, two = [], [], []
    for array in arrays:
        kind = rng.integers(0, 3, array.shape)  # clean, padding, known
        array = np.array(array)
        if array.dtype.kind in "fb" and rng.random() < 0.5:
            array[kind == 2] = 0  # what is known to be 0 decides products
        marks.append(taint.Mark(kind == 1, kind == 2, array, np.zeros(array.shape, bool)))
        one.append(array)
        two.append(other(rng, array, kind == 1))
    found = taint.follow(graph, marks)
    try:
        with np.errstate(all="ignore"):
            results = graph(*one), graph(*two)
    except LinAlgError:  # the other values are no matrices that have factors: nothing is handed out
        return []
    return [o for o, *values in zip(graph.outputs, *results, strict=True) if _is_violated(found[o], *values)]


def _is_violated(mark, first, second):
    first, second = np.asarray(first), np.asarray(second)
    assert mark.taint.shape == mark.known.shape == mark.value.shape == first.shape
    numbers = ~(np.isnan(first) | np.isnan(second))  # 0 times NaN is NaN, and shows
    unsaid = ~mark.taint & (first != second)
    mistaken = mark.known & (first != mark.value)
    return bool((numbers & (unsaid | mistaken)).any())


# Never less than what it reaches ----------------------------------------------------------------------------------


def test_no_op_passes_padding_on_in_secret():
    rng = np.random.default_rng(0)
    assert [str(sample) for sample in SAMPLES for _ in range(2) if violations(sample, sample.arrays, rng)] == []


def test_a_rule_that_forgets_is_found(monkeypatch):
    def forgetful(node, sources):
        return marking.unmarked(marking.shape_of(node), node.spec.dtype)

    monkeypatch.setitem(_RULES, reductions.max, forgetful)
    rng = np.random.default_rng(0)
    assert any(violations(sample, sample.arrays, rng) for sample in samples("max"))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_no_control_flow_passes_padding_on_in_secret(seed, gradient):
    rng = np.random.default_rng(seed)
    program = random_control.draw(rng, 3, 2)

    def f(x, y):
        return g.sum(random_control.evaluate(program, [x, y]))

    x, y = rng.uniform(-1, 1, (2, random_control.SIZE))
    assert violations(static.value_and_grad(f) if gradient else f, [x, y], rng) == []


# No more where a mask or a length decides -------------------------------------------------------------------------

X = np.array([3.0, -1.0, 2.0])
M = np.ones(3, bool)
ROWS = np.linspace(-1, 1, 6).reshape(3, 2)
IDS = np.array([2, 0, 1])
W = np.linspace(-1, 1, 8).reshape(4, 2)


def attended(x, m):
    weights = g.softmax(g.where(m, x @ x.T, -np.inf), axis=-1)
    return g.sum(g.where(m[:, None], weights @ x, 0))


def heads(x, m):
    return g.sum(g.where(m[:, None], g.attention(x, x * 2, x, m[None, :]), 0))


def embedded(w, ids, m):
    return g.sum(g.where(m[:, None], g.tanh(g.take(w, ids)), 0))


def recurrent(w, x, m):
    def step(h, each):
        row, on = each
        h = g.where(on, g.tanh(row @ w[:2] + h), h)
        return h, h

    last, all_states = g.scan(step, g.zeros((2,)), (x, m))
    return g.sum(last) + g.sum(g.where(m[:, None], all_states, 0))


def by_length(x, n):
    return g.sum(g.where(g.arange(x.shape[0]) < n, x, 0)) / g.astype(n, "float64")


def by_lengths(x, lengths):
    on = g.greater(lengths[:, None], g.arange(x.shape[1])[None, :])
    return g.sum(g.where(on, x**2, 0), axis=1)


def branching(x, m):
    return g.cond(g.sum(x) > -99, lambda: g.sum(g.where(m, x, 0)), lambda: g.sum(m * 1.0))


MASKED = {
    "mean": (lambda x, m: g.sum(g.where(m, x, 0)) / g.sum(g.astype(m, "float64")), (X, M), (("T",), ("T",))),
    "product": (lambda x, m: g.sum(g.tanh(x) * m), (X, M), (("T",), ("T",))),
    "max": (lambda x, m: g.max(g.where(m, x, -np.inf)), (X, M), (("T",), ("T",))),
    "softmax": (lambda x, m: g.softmax(g.where(m, x, -np.inf)), (X, M), (("T",), ("T",))),
    "sort": (lambda x, m: g.sort(g.where(m, x, np.inf)), (X, M), (("T",), ("T",))),
    "running sum": (g.cumulative_sum, (X,), (("T",),)),
    "any": (lambda x, m: g.any(g.logical_and(x > 2, m)), (X, M), (("T",), ("T",))),
    "normed": (
        lambda x, m: g.sum(g.layer_norm(x, np.ones(2), np.zeros(2)) * m[:, None]),
        (ROWS, M),
        (("T", None), ("T",)),
    ),
    "the op attention": (heads, (ROWS, M), (("T", None), ("T",))),
    "attention": (attended, (ROWS, M), (("T", None), ("T",))),
    "embedding": (embedded, (W, IDS, M), (None, ("T",), ("T",))),
    "recurrence": (recurrent, (W, ROWS, M), (None, ("T", None), ("T",))),
    "length": (by_length, (X, np.array(3)), (("T",), None)),
    "lengths": (by_lengths, (np.ones((2, 3)), np.array([3, 1])), ((None, "T"), None)),
}
SEEN = {
    "mean": (g.mean, (X,), (("T",),)),
    "masked mean of all": (lambda x, m: g.mean(g.where(m, x, 0)), (X, M), (("T",), ("T",))),
    "masked by a number that may be the largest": (lambda x, m: g.max(g.where(m, x, 0)), (X, M), (("T",), ("T",))),
    "masked softmax of finite numbers": (lambda x, m: g.softmax(g.where(m, x, -9.0)), (X, M), (("T",), ("T",))),
    "masked sort in the wrong direction": (lambda x, m: g.sort(g.where(m, x, -np.inf)), (X, M), (("T",), ("T",))),
    "max of large numbers": (g.max, (X,), (("T",),)),
    "max of large numbers, masked by 0": (lambda x, m: g.max(x * m), (X, M), (("T",), ("T",))),
    "min of the squares": (lambda x: g.min(x * x - 99), (X,), (("T",),)),
    "sort": (g.sort, (X,), (("T",),)),
    "argmax": (g.argmax, (X,), (("T",),)),
    "running sum from the end": (lambda x: g.flip(g.cumulative_sum(g.flip(x))), (X,), (("T",),)),
    "branch": (branching, (X, M), (("T",), ("T",))),
    "rarely": (lambda x: g.where(g.max(x) > 1e6, 1.0, 0.0), (X,), (("T",),)),
    "a length that is no length": (lambda x, n: by_length(x, n * 2), (X, np.array(1)), (("T",), None)),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_what_is_masked_is_padded_and_equals_the_unpadded(name):
    f, args, dims = MASKED[name]
    jitted = static.jit(f, shapes="bucket", dims=dims, buckets=[8])
    plain = static.compile(f, *args)
    np.testing.assert_allclose(jitted(*args), plain(*args), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["mean", "product", "max", "normed", "attention", "the op attention", "embedding", "recurrence", "length"]
)
def test_its_gradient_too(name):
    f, args, dims = MASKED[name]
    loss = static.value_and_grad(f)
    jitted = static.jit(loss, shapes="pad", dims=dims, buckets=[5])
    value, gradient = jitted(*args)
    expected, expected_gradient = static.compile(loss, *args)(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SEEN)
def test_what_could_be_seen_in_some_call_is_refused_in_the_first(name):
    f, args, dims = SEEN[name]
    jitted = static.jit(f, shapes="bucket", dims=dims, buckets=[8])
    with pytest.raises(ShapeError, match=r"padding \{'T': 3\} to \{'T': 8\} (changes|may change) the result"):
        jitted(*args)


def test_the_refusal_names_op_line_and_remedy():
    def largest(x):
        return g.max(x * 2) + 1

    jitted = static.jit(largest, shapes="bucket", dims=(("T",),), buckets=[8])
    line = largest.__code__.co_firstlineno + 1
    with pytest.raises(
        ShapeError, match=rf"largest: .*reaches it by max \(test_static_taint.py:{line}\); mask it with"
    ):
        jitted(X)


@pytest.mark.parametrize("name", ["product", "running sum", "any", "embedding", "recurrence"])
def test_nothing_at_all_is_padded_too(name):
    f, args, dims = MASKED[name]
    none = [a if axes is None else a[:0] for a, axes in zip(args, dims, strict=True)]
    jitted = static.jit(f, shapes="bucket", dims=dims, buckets=[4])
    np.testing.assert_array_equal(jitted(*none), static.compile(f, *none)(*none))


def test_every_new_size_is_judged():
    jitted = static.jit(lambda x: x[1] * 2, shapes="bucket", dims=(("T",),), buckets=[8])
    assert jitted(X) == jitted(X[:2]) == -2
    with pytest.raises(ShapeError, match="reaches it"):
        jitted(X[:1])
    assert jitted(X) == -2


def test_a_length_is_judged_in_every_call():
    jitted = static.jit(by_length, shapes="bucket", dims=(("T",), None), buckets=[8])
    assert jitted(X, np.array(2)) == 1
    assert jitted(X, np.array(3)) == 4 / 3
    with pytest.raises(ShapeError, match="reaches it by sum"):
        jitted(X, np.array(4))


@settings(max_examples=8)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_a_masked_function_gives_what_the_unpadded_gives_for_every_length(lengths):
    f, dims = MASKED["recurrence"][0], MASKED["recurrence"][2]
    step = static.jit(static.value_and_grad(f), shapes="bucket", dims=dims, limit=None)
    for n in lengths:
        x, m = np.random.default_rng(n).normal(size=(n, 2)), np.ones(n, bool)
        value, gradient = step(W, x, m)
        expected, expected_gradient = dynamic.value_and_grad(f)(W, x, m)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12)
