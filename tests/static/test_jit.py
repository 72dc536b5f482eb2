"""jit: what is compiled again and why, and its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynamic
import graphs
import static
from graphs.errors import ShapeError, ShapeLimitError, ShapeLimitWarning
from tests.helpers.jitted import double, masked_loss, ones

# Exact ----------------------------------------------------------------------------------------------------


def test_every_kind_of_arguments_is_compiled_once_and_the_reason_is_told():
    f = static.jit(lambda x, y, n: (x * n).sum() + y.sum(), limit=None)
    calls = [
        ((ones(2), ones(3), 1), "first call"),
        ((ones(2), ones(3), 1), None),
        ((ones(4), ones(3), 1), "x: dim 0 was 2, now 4"),
        ((ones(4, 1), ones(3), 1), "x: had 1 axes, now 2"),
        ((ones(4, 1), ones(3).astype("f4"), 1), "y: dtype was float64, now float32"),
        ((ones(4, 1), ones(3).astype("f4"), 2), "a static value was 1, now 2"),
        ((ones(2), ones(3), 1), "x: had 2 axes, now 1"),
    ]
    reasons = []
    for args, reason in calls[:-1]:
        f(*args)
        reasons += [reason] if reason else []
        assert f.stats.reasons == reasons
    f(*calls[-1][0])
    assert f.stats.reasons == reasons  # still held: a hit
    assert (f.stats.compiles, f.stats.hits, f.stats.misses, f.stats.evictions) == (5, 2, 5, 0)
    assert f.stats.compile_seconds > 0


def test_nested_arguments_are_told_apart():
    f = static.jit(lambda p: sum(graphs.tree.leaves(p)))
    assert f({"a": ones(1), "b": ones(1)}) == f([ones(1), ones(1)]) == 2
    assert f.stats.reasons == ["first call", "the arguments are nested differently"]


def test_values_are_told_apart_by_type_and_sign():
    kinds = [int, float, bool]
    f = static.jit(lambda x, n: (x / n, kinds.index(type(n))), limit=None)
    with np.errstate(divide="ignore"):
        seen = [(y.item(), kinds[kind]) for y, kind in (f(ones(1), n) for n in (1, 1.0, True, 0.0, -0.0))]
    assert seen == [(1, int), (1, float), (1, bool), (np.inf, float), (-np.inf, float)]
    assert f.stats.compiles == 5
    assert f.stats.reasons[1:] == [
        "a static value was 1, now 1.0",
        "a static value was 1.0, now True",
        "a static value was True, now 0.0",
        "a static value was 0.0, now -0.0",
    ]


def test_a_nan_is_a_static_value_like_any_other():
    f = static.jit(lambda x, n: x * n)
    for _ in range(2):
        assert np.isnan(f(ones(1), float("nan"))).all()
    assert f.stats.compiles == 1


def test_the_signature_and_the_name_are_kept():
    f = static.jit(masked_loss)
    assert f.__name__ == "masked_loss"
    assert f.__doc__ == masked_loss.__doc__
    assert f.__wrapped__ is masked_loss


# Limits -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::graphs.ShapeLimitWarning")
def test_the_kind_used_longest_ago_is_dropped():
    f = static.jit(double, shapes="exact", limit=2)
    for n in (1, 2, 1, 3):  # 3 takes the place of 2
        f(ones(n))
    assert (f.stats.compiles, f.stats.evictions) == (3, 1)
    f(ones(1))
    assert f.stats.compiles == 3
    f(ones(2))
    assert (f.stats.compiles, f.stats.evictions) == (4, 2)
    assert len(f.executables) == 2


REMEDIES = {
    "exact": ({"shapes": "exact"}, (ones(2), 3), "dim 0 was 1, now 2", "'symbolic'.* or 'bucket'"),
    "a static value": ({}, (ones(1), 4), "a static value was 3, now 4", "pass the value as an array"),
    "bucket": ({"shapes": "bucket", "dims": (("T",),)}, (ones(2), 3), "dim 0 was 1, now 2", "give fewer buckets"),
    "a dtype": ({}, (ones(1).astype("f4"), 3), "dtype was float64, now float32", "raise limit"),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_the_first_kind_that_is_dropped_is_told_with_the_remedy(name):
    options, other, reason, remedy = REMEDIES[name]

    def scaled(n: Any, k: int) -> Any:
        return n * k

    f = static.jit(scaled, limit=1, **options)
    f(ones(1), 3)
    rule = rf"scaled: more than 1 kinds .*{reason}.*, of which 1 are kept .*test_jit.py:\d+\); .*{remedy}"
    with pytest.warns(ShapeLimitWarning, match=rule) as found:
        f(*other)
    assert [warning.filename for warning in found] == [__file__]  # at the user's line, where filters look
    f(ones(1), 3), f(*other)  # once: another warning would be an error
    assert f.stats.compiles == 4


def test_a_warning_made_an_error_leaves_the_function_usable():
    f = static.jit(double, limit=1)
    f(ones(1))
    with pytest.raises(ShapeLimitWarning):  # as all warnings are here
        f(ones(2))
    assert f(ones(1)).tolist() == [2]
    assert (f(ones(2)).tolist(), f.stats.compiles) == ([2, 2], 2)


def test_fifty_lengths_are_compiled_once_each_and_in_silence():
    f = static.jit(double)
    for n in [*range(50), *range(50)]:
        assert len(f(ones(n))) == n
    assert (f.stats.compiles, f.stats.evictions) == (50, 0)


def scanned(w, x):
    """The mean square of the last state of a recurrent net over the first axis."""
    state, _ = graphs.scan(lambda h, row: (graphs.tanh(row @ w + h), h), graphs.zeros(w.shape[1]), x)
    return graphs.mean(state**2)


def attended(w, x):
    return graphs.mean(graphs.softmax(x @ w @ x.T, axis=-1) @ x)


def train(step, f, w, sizes):
    for n in sizes:
        x = np.random.default_rng(n).normal(size=(n, 3))
        value, gradient = step(w, x)
        expected = dynamic.value_and_grad(f)(w, x)
        np.testing.assert_allclose(value, expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-10, atol=1e-14)


def first_of(jitted, sizes):
    return [jitted(ones(n))[0] for n in sizes]


@pytest.mark.parametrize("f", [scanned, attended])
def test_more_sizes_than_are_kept_have_one_graph(f):
    w = np.random.default_rng(0).normal(size=(3, 3))
    step = static.jit(static.value_and_grad(f), limit=4)
    with pytest.warns(ShapeLimitWarning, match=r"more than 4 kinds.*one graph serves all.*test_jit") as told:
        train(step, f, w, [*range(2, 20), *range(2, 20)])
    assert len(told) == 1
    assert step.stats.compiles <= 6  # axes that have had one size until then are one symbol


def looks_up(x):
    return x * {3: 2.0, 9: 5.0}.get(x.shape[0], 1.0)  # of a symbol: always 1.0


def asks_its_type(x):
    return x + (1.0 if isinstance(x.shape[0], int) else 2.0)


def writes_it(x):
    return x * len(f"{x.shape[0]}" * 2)


@pytest.mark.parametrize("f", [looks_up, asks_its_type, writes_it])
@pytest.mark.filterwarnings("ignore::graphs.errors.ShapeLimitWarning")
def test_a_graph_that_is_another_for_some_size_does_not_serve_it(f):
    jitted = static.jit(f, limit=2)
    for n in [*range(1, 30), 9, 3, 100]:
        np.testing.assert_array_equal(jitted(np.arange(1.0, n + 1)), f(np.arange(1.0, n + 1)))


def test_where_no_graph_serves_all_sizes_the_warning_says_why():
    jitted = static.jit(lambda x: x * 2 if x.shape[0] > 3 else x, limit=2)
    with pytest.warns(ShapeLimitWarning, match=r"compiled again, and one graph for all sizes cannot be made \(.*; use"):
        assert first_of(jitted, (1, 2, 5, 7)) == [1, 1, 2, 2]
    assert jitted.stats.compiles == 4


def clipped(x):
    total = graphs.sum(x)
    if total > 3:
        total = total / 2
    return total


def test_converted_functions_have_one_graph_too():
    jitted = static.jit(clipped, limit=2, convert=True)
    with pytest.warns(ShapeLimitWarning, match="one graph serves all other sizes"):
        assert [float(jitted(ones(n))) for n in (2, 3, 4, 5, 6)] == [2, 3, 2, 2.5, 3]
    assert jitted.stats.compiles == 3


def test_exact_sizes_stay_exact():
    jitted = static.jit(double, shapes="exact", limit=2)
    with pytest.warns(ShapeLimitWarning, match="compiled again.*; use shapes='symbolic'"):
        assert first_of(jitted, range(2, 8)) == [2] * 6
    assert jitted.stats.compiles == 6


def test_strict_raises_past_the_limit_and_says_why():
    f = static.jit(double, limit=2, strict=True)
    f(ones(1)), f(ones(2))
    with pytest.raises(ShapeLimitError, match=r"double: more than 2 kinds.*dim 0 was 2, now 3.*test_jit") as e:
        f(ones(3))
    assert "bucket" in str(e.value)
    assert f(ones(1)).tolist() == [2]


def test_an_error_in_the_function_counts_no_compile():
    f = static.jit(lambda x: x @ x)
    with pytest.raises(ShapeError, match="matmul"):
        f(ones(2, 3))
    assert f.stats.compiles == 0
    assert f(ones(3)) == 3
    assert f.stats.reasons == ["first call"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"limit": 0}, ValueError, "limit is 1 or more"),
        ({"shapes": "nearest"}, ValueError, "'auto', 'exact', 'symbolic', 'bucket' or 'pad'"),
        ({"shapes": "bucket"}, ShapeError, "name them"),
        ({"shapes": "pad"}, ShapeError, "name them"),
        ({"shapes": "bucket", "buckets": 3}, ValueError, "give both"),
        ({"shapes": "bucket", "lengths": [3]}, ValueError, "give both"),
    ],
)
def test_options_that_make_no_sense(options, error, words):
    with pytest.raises(error, match=words):
        static.jit(double, **options)


def test_axis_names_must_fit():
    f = static.jit(double, shapes="bucket", dims=(("T",),))
    with pytest.raises(ShapeError, match="names 1 axes of argument 0, which has 2"):
        f(ones(2, 2))
    g = static.jit(lambda x, y: (x.sum(), y.sum()), shapes="pad", dims=(("T",), ("T",)))
    with pytest.raises(ShapeError, match="dimension T is 2 in one argument and 3 in another"):
        g(ones(2), ones(3))
