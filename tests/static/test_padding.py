"""What padding can reach: never less than it does, on every op and random programs, and no more where masks decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs import tree
from graphs.errors import LinAlgError, ShapeError
from graphs.op import registered_ops
from graphs.ops import reductions
from graphs.testing import samples
from static import padding
from static.padding import marks as marking
from static.padding.rules import RULES, PaddingRule
from tests.fuzz import padded
from tests.helpers import random_control
from tests.helpers.slow import examples, mostly_slow
from tests.helpers.together import together

SAMPLES = [
    sample
    for name, op in registered_ops().items()
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
        marks.append(padding.Mark(kind == 1, kind == 2, array, padding.first(array.shape, array.shape)))
        one.append(array)
        two.append(other(rng, array, kind == 1))
    found = padding.follow(graph, graph, marks)
    try:
        with np.errstate(all="ignore"):
            results = graph(*one), graph(*two)
    except LinAlgError:  # the other values are no matrices that have factors: nothing is handed out
        return []
    triples = zip(graph.outputs, found.outputs, *results, strict=True)
    return [output for output, mark, *values in triples if _is_violated(mark, *values)]


def _is_violated(mark, first, second):
    first, second = np.asarray(first), np.asarray(second)
    assert mark.taint.shape == mark.certain.shape == mark.value.shape == first.shape
    numbers = ~(np.isnan(first) | np.isnan(second))  # 0 times NaN is NaN, and shows
    unsaid = ~mark.taint & (first != second)
    mistaken = mark.certain & (first != mark.value)
    return bool((numbers & (unsaid | mistaken)).any())


# Never less than what it reaches ----------------------------------------------------------------------------------


@together("sample", SAMPLES, quick=len(SAMPLES) // 8)
def test_no_op_passes_padding_on_in_secret(sample):
    rng = np.random.default_rng(0)
    assert not any(violations(sample, sample.arrays, rng) for _ in range(2))


def test_a_rule_that_forgets_is_found(monkeypatch):
    def forgetful(node, other, sources):
        return marking.unknown_mark(marking.shape_of(node), marking.shape_of(other), node.spec.dtype)

    monkeypatch.setitem(RULES, reductions.max, PaddingRule(forgetful))
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
    with pytest.raises(ShapeError, match=r"padding \{'T': 3\} to \{'T': 8\} may change the result"):
        jitted(*args)


def test_the_refusal_names_op_line_and_remedy():
    def largest(x):
        return g.max(x * 2) + 1

    jitted = static.jit(largest, shapes="bucket", dims=(("T",),), buckets=[8])
    line = largest.__code__.co_firstlineno + 1
    with pytest.raises(ShapeError, match=rf"largest: .*reaches it by max \(test_padding.py:{line}\); mask it with"):
        jitted(X)


@pytest.mark.parametrize("name", ["product", "running sum", "any", "embedding", "recurrence"])
def test_nothing_at_all_is_padded_too(name):
    f, args, dims = MASKED[name]
    none = [a if axes is None else a[:0] for a, axes in zip(args, dims, strict=True)]
    jitted = static.jit(f, shapes="bucket", dims=dims, buckets=[4])
    np.testing.assert_array_equal(jitted(*none), static.compile(f, *none)(*none))


# Scans, sizes, and where elements lie --------------------------------------------------------------------------------


def emitted(x, m, w):
    ys = g.scan(lambda c, a: (g.where(a[1], c + a[0], c), c), w, (x, m))[1]
    return ys, g.max(ys)


def test_rows_that_a_scan_emits_beyond_the_true_length_are_not_taken_for_real():
    """The last state stands in them, which in no row of the unpadded scan it does."""
    x, dims = np.array([1.0, 2.0, 5.0]), (("T",), ("T",), None)
    both = static.jit(emitted, shapes="bucket", dims=dims, buckets=(4,))
    with pytest.raises(ShapeError, match=r"may change the result: .* reaches it by max"):
        both(x, M, np.array(0.0))
    rows = static.jit(lambda *args: emitted(*args)[0], shapes="bucket", dims=dims, buckets=(4,))
    assert rows(x, M, np.array(0.0)).tolist() == [0, 1, 3]


def scanned(step, reverse=False, rows=False):
    """The last state of a scan over x and the mask, from w[0]; or the largest of the rows that the mask keeps."""

    def f(x, m, w):
        last, ys = g.scan(step, w[0], (x, m), reverse=reverse)
        return g.max(g.where(m, ys, -np.inf)) if rows else last

    return f


def keeping(c, a):
    new = g.where(a[1], g.tanh(c + a[0]), c)
    return new, new


def unrolled(x, m, w):
    c, rows = w[0], []
    for t in range(x.shape[0]):
        c = g.where(m[t], g.tanh(c + x[t]), c)
        rows.append(c * w[1])
    return c + g.sum(g.where(m, g.stack(rows), 0))


def counted(x, m, w):
    return g.fori_loop(0, x.shape[0], lambda i, c: g.where(g.take(m, i), c * g.take(x, i), c), w[0])


def nested(x, m, w):
    def step(c, a):
        inner = g.scan(lambda d, v: (g.tanh(d + v * a[0]), d), c, w)[0]
        return g.where(a[1], inner, c), c

    return g.scan(step, w[0], (x, m), reverse=True)[0]


def until(x, m, w):
    total = g.sum(g.where(m, x, 0))
    return g.while_loop(lambda v: v < 9.0, lambda v: v * 2 + 1, g.abs(total) + w[0])


RIGHT = {
    "scan": scanned(keeping),
    "reversed scan": scanned(keeping, reverse=True),
    "rows of a scan": scanned(keeping, rows=True),
    "rows of a reversed scan": scanned(keeping, reverse=True, rows=True),
    "scan of a scan": lambda x, m, w: g.sum(g.where(m, g.scan(keeping, w[0], (emitted(x, m, w[1])[0], m))[1], 0)),
    "scan in a scan": nested,
    "scan by position": counted,
    "running maximum": scanned(lambda c, a: (g.maximum(c, g.where(a[1], a[0], -np.inf)), c)),
    "Python loop": unrolled,
    "while loop": until,
    "pairs": lambda x, m, w: g.sum(g.tanh(x[:, None] * x[None, :]) * (m[:, None] * 1.0) * m[None, :]),
    "there and back": lambda x, m, w: g.sum(g.where(m, g.flip(g.flip(x) * g.flip(x)), 0)),
    "order": lambda x, m, w: g.sum(g.where(m, g.exp(-g.sort(g.where(m, x, np.inf))), 0)),
}
WRONG = {
    "a step that no mask undoes": scanned(lambda c, a: (c * 1.5, c)),
    "a step from a state that is not the first": scanned(lambda c, a: (g.where(a[1], c + a[0], 0.0), c), reverse=True),
    "a Python loop that no mask undoes": lambda x, m, w: sum([w[0]] * x.shape[0]),
    "a loop that no mask undoes": lambda x, m, w: g.fori_loop(0, x.shape[0], lambda i, c: c * 1.5, w[0]),
    "a count": lambda x, m, w: g.sum(g.where(m, x, 0)) / x.shape[0],
    "a count of ones": lambda x, m, w: w[0] * g.sum(g.ones(x.shape)),
    "a position from the end": lambda x, m, w: g.take(g.where(m, x, 0), np.array(-1)),
    "a place in several axes": lambda x, m, w: g.argmax(g.where(m, g.stack([x * 0, x]), -np.inf)),
    "elements that meet others": lambda x, m, w: g.where(m, g.flip(x) + x, 0),
    "products of others": lambda x, m, w: g.flip(g.where(m, x, 0)) @ g.where(m, x, 0),
    "rows that go to other steps": lambda x, m, w: g.scan(keeping, w[0], (g.flip(x), m))[0],
    "infinity times 0": lambda x, m, w: g.where(g.sum(g.where(m, x, np.inf) * m) > 0, 1.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", mostly_slow(RIGHT, 3))
def test_control_flow_that_masks_is_padded_to_many_sizes(name, gradient):
    f = static.value_and_grad(RIGHT[name]) if gradient else RIGHT[name]
    plain = dynamic.value_and_grad(RIGHT[name]) if gradient else RIGHT[name]
    jitted = static.jit(f, shapes="bucket", dims=(("T",), ("T",), None), buckets=(4, 6))
    for n in (3, 1, 2, 4, 5):
        args = np.random.default_rng(n).normal(size=n), np.arange(n) != 1, np.array([0.5, -1.5])
        for found, expected in zip(tree.leaves(jitted(*args)), tree.leaves(plain(*args)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", WRONG)
def test_what_counts_or_meets_padding_is_refused_where_the_numbers_hide_it_too(name):
    jitted = static.jit(WRONG[name], shapes="bucket", dims=(("T",), ("T",), None), buckets=(6,))
    refused = pytest.raises(ShapeError, match=r"padding \{'T': 3\} to \{'T': 6\} may change the result")
    with np.errstate(invalid="ignore"), refused:
        jitted(np.zeros(3), M, np.zeros(2))


@pytest.mark.slow
@pytest.mark.parametrize("careful", [False, True])
def test_random_padded_programs_are_right_or_refused(careful):
    """A slice of `python -m tests.fuzz.padded 10000`."""
    found = [outcome for seed in range(20) for outcome in padded.outcomes(seed, careful)]
    assert {"right"} <= set(found) <= {"right", "refused", "nan"} - ({"refused"} if careful else set())


def test_every_new_size_is_judged():
    jitted = static.jit(lambda x: x[1] * 2, shapes="bucket", dims=(("T",),), buckets=[8])
    assert jitted(X) == jitted(X[:2]) == -2
    with pytest.raises(ShapeError, match="index 1 is out of range"):  # as unpadded
        jitted(X[:1])
    assert jitted(X) == -2


def test_a_length_is_judged_in_every_call():
    jitted = static.jit(by_length, shapes="bucket", dims=(("T",), None), buckets=[8])
    assert jitted(X, np.array(2)) == 1
    assert jitted(X, np.array(3)) == 4 / 3
    with pytest.raises(ShapeError, match="reaches it by sum"):
        jitted(X, np.array(4))


@examples(0.16)
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
