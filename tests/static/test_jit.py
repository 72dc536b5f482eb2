"""jit: what is compiled again and why, what is dropped, and padding that cannot be seen in a result."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamic
import graphs
import static
from graphs.errors import GraphError, ShapeError, ShapeLimitError, ShapeLimitWarning
from static.call.policies import Symbolic


def ones(*shape: int) -> Any:
    return np.ones(shape)


def double(x: Any) -> Any:
    return x * 2


def masked_loss(w: Any, x: Any, mask: Any) -> Any:
    """The mean over the rows that the mask keeps, and a recurrence over all of them."""
    state = w * 0
    for t in range(x.shape[0]):
        state = graphs.where(mask[t], np.tanh(state + x[t] * w), state)
    rows = graphs.where(mask, (x @ w) ** 2, 0.0)
    return rows.sum() / graphs.astype(mask, "float64").sum() + state.sum()


def unmasked_loss(w: Any, x: Any) -> Any:
    return masked_loss(w, x, np.ones(x.shape[0], bool))


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


# The short way of a call like one before ------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


def laid_out(array: Any, kind: str) -> Any:
    """The same values: in an array that is no plain one, or as a scalar or other type."""
    if kind == "strided":
        return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
    if kind == "read-only":
        array.flags.writeable = False
    changed = {
        "columns": np.asfortranarray,
        "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
        "subclass": lambda a: a.view(np.recarray),
        "scalar": lambda a: a.sum(dtype=a.dtype),
    }
    return changed.get(kind, lambda a: a)(array)


KINDS = ["plain", "plain", "strided", "read-only", "columns", "big-endian", "subclass", "scalar"]
ARRAYS = st.builds(
    lambda shape, dtype, kind: laid_out(np.ones(shape, dtype), kind),
    st.sampled_from([(), (1,), (2,), (3,), (2, 3), (3, 2)]),
    st.sampled_from(["f4", "f8", "i8", "?"]),
    st.sampled_from(KINDS),
)
STATICS = st.sampled_from([1, 1.0, True, 0, 0.0, -0.0, float("nan"), "one", "two", len, None])
CONTAINERS = st.recursive(
    ARRAYS | ARRAYS | STATICS,
    lambda parts: (
        st.lists(parts, max_size=2)
        | st.lists(parts, max_size=2).map(tuple)
        | st.builds(Pair, parts, parts)
        | st.lists(st.tuples(st.sampled_from(["b", "a", 1]), parts), max_size=3).map(dict)
        | st.lists(st.tuples(st.sampled_from(["b", "a"]), parts), max_size=2).map(OrderedDict)
    ),
    max_leaves=5,
)
TELLING = {int: 3, float: 5, bool: 7, str: 11, type(len): 13}


def all_told(*args: Any) -> Any:
    """A number that tells the arguments apart: leaves, their order, and the order of keys."""
    total = 0.0
    for i, leaf in enumerate(graphs.tree.leaves(args), 1):
        told = graphs.astype(leaf, "float64").sum() if hasattr(leaf, "dtype") else float(TELLING[type(leaf)])
        total = total + i * told + (17.0 if repr(leaf)[0] == "-" else 0.0)
    return {"total": total + float(len(repr(graphs.tree.layout(args)))), "first": graphs.asarray(total)}


@pytest.mark.filterwarnings("ignore::graphs.ShapeLimitWarning")
@given(
    st.lists(st.lists(CONTAINERS, max_size=2).map(tuple), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=4, max_size=10),
    st.sampled_from(["exact", "symbolic"]),
    st.sampled_from([1, 2, None]),
)
def test_the_short_way_is_never_seen(arguments, order, shapes, limit):
    """With it and without: the same executables in the same order, hits, misses and reasons, and the right results."""
    short, long = (static.jit(all_told, shapes=shapes, limit=limit) for _ in range(2))
    long._cache.note = lambda *_: None
    for args in (arguments[i % len(arguments)] for i in order):
        found = short(*args)
        assert_same(found, long(*args))
        assert_same(found, all_told(*args))
        assert list(short.executables) == list(long.executables)
        seconds = {"compile_seconds": 0.0}
        assert vars(short.stats) | seconds == vars(long.stats) | seconds


def assert_same(one: Any, other: Any) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_most_calls_like_one_before_take_the_short_way():
    f = static.jit(lambda p, n: {"y": p["b"] * n, "z": [p["a"][0], None, p["a"][1].first]}, limit=None)
    arguments = [
        ({"b": ones(size), "a": (ones(2), Pair(np.float32(3), None))}, n) for size in (1, 2) for n in (2, 2.0, True)
    ]
    for args in arguments:
        f(*args)
    f._closely = None  # whoever goes there fails
    for args in [*arguments, *arguments[::-1]]:
        found = f(*args)
        assert found["y"].tolist() == [args[1]] * len(args[0]["b"])
        assert (found["z"][0].tolist(), found["z"][1], found["z"][2].item()) == ([1, 1], None, 3)
    assert (f.stats.hits, f.stats.misses) == (12, 6)


def test_an_array_changed_in_place_is_of_a_new_kind():
    f, x = static.jit(double), np.ones((2, 3), "f4")
    f(x), f(x)
    x.resize((3, 2), refcheck=False)
    assert f(x).tolist() == [[2, 2]] * 3
    x.__setstate__((1, (3, 2), np.dtype("i4"), False, np.ones(6, "i4").tobytes()))
    assert f(x).dtype == np.int32
    assert f.stats.reasons[1:] == ["x: dim 0 was 2, now 3", "x: dtype was float32, now int32"]


@pytest.mark.filterwarnings("ignore::graphs.ShapeLimitWarning")
@pytest.mark.parametrize("options", [{}, {"shapes": "symbolic"}, {"shapes": "bucket", "dims": (("T",),)}])
def test_what_was_dropped_is_freed_and_so_is_a_function(options):
    f = static.jit(double, limit=1, **options)
    f(ones(1, 1)[0]), f(ones(1))
    dropped = weakref.ref(*f.executables.values())
    f(ones(9).astype("f4")), f(ones(9).astype("f4"))
    gc.collect()
    assert dropped() is None
    held = weakref.ref(*f.executables.values()), weakref.ref(f)
    gc.disable()
    try:
        del f
        assert [one() for one in held] == [None, None]  # at once, with its arena
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore::graphs.ShapeLimitWarning")
@settings(max_examples=15)  # each compiles a dozen times
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 3, 7, 9]), st.sampled_from(["f4", "f8"])), min_size=2, max_size=9),
    st.sampled_from([{"shapes": "bucket"}, {"shapes": "pad"}, {"shapes": "bucket", "buckets": [4, 9]}]),
    st.sampled_from([1, 2, None]),
)
def test_the_short_way_is_never_seen_where_arrays_are_padded(calls, options, limit):
    dims = (("T",), ("T",))
    short, long = (static.jit(masked, dims=dims, limit=limit, **options) for _ in range(2))
    long._cache.note = lambda *_: None
    for length, dtype in calls:
        args = np.ones(length, dtype), np.arange(length) % 2 > 0
        found, other = short(*args), long(*args)
        assert found[0] == other[0] == 2 * (length // 2)
        assert found[1].tolist() == other[1].tolist() == [2] * length
        assert list(short.executables) == list(long.executables)
        seconds = {"compile_seconds": 0.0}
        assert vars(short.stats) | seconds == vars(long.stats) | seconds


def masked(x: Any, mask: Any) -> Any:
    return graphs.where(mask, x * 2, 0.0).sum(), x * 2


def test_what_a_policy_has_learnt_counts_at_once_even_if_the_call_then_fails():
    def f(x: Any) -> Any:
        return x * len(x)  # needs a number

    jitted = static.jit(f, shapes="symbolic")
    assert jitted(ones(2)).tolist() == jitted(ones(2)).tolist() == [2, 2]
    for n in (3, 2):
        with pytest.raises(GraphError):
            jitted(ones(n))
    assert (jitted.stats.hits, jitted.stats.misses) == (1, 3)


# Limits -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::graphs.ShapeLimitWarning")
def test_the_kind_used_longest_ago_is_dropped():
    f = static.jit(double, limit=2)
    for n in (1, 2, 1, 3):  # 3 takes the place of 2
        f(ones(n))
    assert (f.stats.compiles, f.stats.evictions) == (3, 1)
    f(ones(1))
    assert f.stats.compiles == 3
    f(ones(2))
    assert (f.stats.compiles, f.stats.evictions) == (4, 2)
    assert len(f.executables) == 2


REMEDIES = {
    "exact": ({}, (ones(2), 3), "dim 0 was 1, now 2", "'symbolic'.* or 'bucket'"),
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
        ({"shapes": "nearest"}, ValueError, "'exact', 'symbolic', 'bucket' or 'pad'"),
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
