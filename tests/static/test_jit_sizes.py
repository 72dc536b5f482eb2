"""Symbolic sizes, buckets and padding under jit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from graphs.errors import ShapeError
from static.call.policies import Symbolic
from tests.helpers.jitted import double, masked_loss, ones, unmasked_loss

# Symbolic -----------------------------------------------------------------------------------------------------


def test_named_axes_are_compiled_once():
    f = static.jit(lambda w, x: np.tanh(x @ w).sum(axis=0), shapes="symbolic", dims=(None, ("B", None)))
    w = np.arange(6.0).reshape(3, 2)
    for rows in (4, 1, 0, 7):
        np.testing.assert_allclose(f(w, ones(rows, 3)), np.tanh(ones(rows, 3) @ w).sum(axis=0))
    assert f.stats.compiles == 1


def test_axes_become_symbolic_when_they_are_seen_to_change():
    f = static.jit(lambda x, y: (x * y).sum(), shapes="symbolic")
    for n in (3, 5, 9, 2, 3):
        assert f(ones(n, 4), ones(n, 4)) == 4 * n
    assert f.stats.reasons == ["first call", "x: dim 0 was 3, now d0"]


def test_axes_that_once_were_equal_may_part():
    f = static.jit(lambda x, y: x.sum() + y.sum(), shapes="symbolic")
    for a, b in ((3, 3), (5, 5), (7, 8), (2, 9)):
        assert f(ones(a), ones(b)) == a + b
    assert f.stats.reasons[1:] == ["x: dim 0 was 3, now d0", "y: dim 0 was d0, now d1"]


def test_a_size_of_one_broadcasts_and_stays_a_number():
    f = static.jit(lambda x, y: (x * y).sum(), shapes="symbolic")
    for a, b in ((1, 3), (3, 3), (4, 4), (1, 6), (5, 5), (1, 7)):
        assert f(ones(a), ones(b)) == max(a, b)
    assert f.stats.compiles <= 4


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3, 5]), st.sampled_from([1, 2, 3, 5])), min_size=1, max_size=8))
def test_automatic_symbols_never_contradict_a_call(calls):
    """Whatever came before, the symbols given to a call agree with its sizes and are needed."""
    policy = Symbolic()
    for shape in calls:
        x, y = np.ones(shape), np.ones(shape[::-1])
        call = policy([x, y], [(None, None), (None, None)])
        sizes: dict[str, int] = {}
        for spec, array in zip(call.specs, (x, y), strict=True):
            for dim, size in zip(spec.shape, array.shape, strict=True):
                assert sizes.setdefault(str(dim), size) == size
                assert isinstance(dim, int) == (str(dim) == str(size))
        assert all(size != 1 for dim, size in sizes.items() if dim.startswith("d"))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=6))
def test_a_function_of_any_sizes_runs_for_any_series_of_sizes(calls):
    f = static.jit(lambda x, y: x.sum() * y.mean(), shapes="symbolic")
    for a, b in calls:
        assert f(ones(a), ones(b)) == a


# Buckets and padding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "buckets", "compiled"),
    [("bucket", None, [4, 1, 8]), ("bucket", [3, 6], [3, 6]), ("pad", None, [3, 5]), ("pad", [6], [6])],
)
def test_padding_is_never_seen(shapes, buckets, compiled):
    dims = (None, ("T", None), ("T",))
    step = static.jit(static.value_and_grad(masked_loss), shapes=shapes, dims=dims, buckets=buckets)
    plain = dynamic.value_and_grad(unmasked_loss)
    rng = np.random.default_rng(0)
    for length in (3, 1, 5, 4, 3):
        w, x = rng.normal(size=4), rng.normal(size=(length, 4))
        value, gradient = step(w, x, np.ones(length, bool))
        expected = plain(w, x)
        np.testing.assert_allclose(value, expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-10)
    assert sorted(exe.specs[1].shape[0] for exe in step.executables.values()) == sorted(compiled)
    assert step.stats.compiles == len(compiled)


def test_outputs_that_follow_a_padded_axis_are_cut():
    f = static.jit(
        lambda x, m: (graphs.where(m, x, 0.0) * 2, graphs.where(m, x, 0.0).sum(), m),
        shapes="bucket",
        dims=(("T",), ("T",)),
    )
    for n in (3, 4, 5):
        doubled, total, mask = f(np.arange(float(n)), np.ones(n, bool))
        assert doubled.tolist() == [2.0 * i for i in range(n)]
        assert total == n * (n - 1) / 2
        assert mask.tolist() == [True] * n


def test_gradients_of_padded_arguments_are_cut_too():
    loss = static.value_and_grad(lambda x, m: (graphs.where(m, x, 0.0) ** 2).sum())
    step = static.jit(loss, shapes="bucket", dims=(("T",), ("T",)))
    _, gradient = step(np.array([1.0, 2.0, 3.0]), np.ones(3, bool))
    assert gradient.tolist() == [2, 4, 6]


def test_values_may_change_what_is_returned():
    f = static.jit(
        lambda x, m, k: (graphs.where(m, x, 0.0).sum(),) * k, shapes="bucket", dims=(("T",), ("T",)), limit=None
    )
    for k in (1, 3, 2):
        assert f(ones(3), np.ones(3, bool), k) == (3.0,) * k


def test_what_was_computed_for_nothing_is_counted():
    f = static.jit(double, shapes="bucket", dims=(("T", None),))
    for n in (3, 5, 8):
        f(ones(n, 2))
    assert (f.stats.useful, f.stats.computed) == (2 * (3 + 5 + 8), 2 * (4 + 8 + 8))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.mean(),
        lambda x: (x + 1).sum(),
        graphs.softmax,
        lambda x: x.sum() / x.shape[0],
        lambda x: x[-1],
        graphs.flip,
    ],
    ids=["mean", "sum of shifted", "softmax", "divided by the length", "last", "flipped"],
)
@pytest.mark.parametrize("shapes", ["bucket", "pad"])
def test_padding_that_would_show_is_refused(f, shapes):
    jitted = static.jit(f, shapes=shapes, dims=(("T",),), buckets=[8])
    with pytest.raises(ShapeError, match=r"padding \{'T': 3\} to \{'T': 8\} may change the result: .*; mask"):
        jitted(np.array([1.0, 2.0, 4.0]))


def test_a_masked_argument_that_ignores_its_mask_is_refused():
    """Zeros would hide it: the proof is for anything that may stand in the padding."""
    f = static.jit(lambda x, m: x.sum(), shapes="bucket", dims=(("T",), ("T",)))
    with pytest.raises(ShapeError, match="mask"):
        f(ones(3), np.ones(3, bool))


def test_an_output_whose_size_is_no_simple_function_of_the_length_is_refused():
    f = static.jit(lambda x: graphs.concat([x, x]), shapes="bucket", dims=(("T",),))
    with pytest.raises(ShapeError, match="cannot be cropped"):
        f(ones(3))


def test_a_length_above_the_largest_bucket_is_refused():
    f = static.jit(double, shapes="bucket", dims=(("T",),), buckets=[4, 2])
    assert f(ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(ShapeError, match="T is 5, above the largest bucket 4; add a bucket"):
        f(ones(5))


def test_buckets_are_the_best_for_the_lengths_expected():
    f = static.jit(double, shapes="bucket", dims=(("T",),), buckets=2, lengths=[2, 2, 2, 3, 9, 9])
    for n in (2, 3, 9, 0, 1):
        assert f(ones(n)).tolist() == [2] * n
    assert sorted(exe.specs[0].shape[0] for exe in f.executables.values()) == [3, 9]
    assert f.stats.reasons == ["first call", "x: dim 0 was 3, now 9"]
    assert (f.stats.hits, f.stats.misses) == (3, 2)
    with pytest.raises(ShapeError, match="T is 10, above the largest bucket 9"):
        f(ones(10))


def test_arguments_are_not_changed_by_padding():
    x, m = np.arange(3.0), np.ones(3, bool)
    x.flags.writeable = m.flags.writeable = False
    f = static.jit(lambda x, m: graphs.where(m, x, 0.0).sum(), shapes="pad", dims=(("T",), ("T",)), buckets=[5])
    assert f(x, m) == 3
    assert (x.shape, m.shape) == ((3,), (3,))


def test_a_function_that_loops_over_a_dict_is_compiled_for_each_order_of_keys():
    def f(layers, x):
        for name in layers:
            x = x * layers[name] if name == "scale" else x + layers[name]
        return x

    jitted = static.jit(f)
    x, one, two = (np.float32(v) for v in (3, 1, 2))
    assert jitted({"scale": two, "shift": one}, x) == 7
    assert jitted({"shift": one, "scale": two}, x) == 8
    assert jitted({"scale": two, "shift": one}, x) == 7
    assert jitted.stats.compiles == 2
