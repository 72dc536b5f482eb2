"""The short way of a call like one before is never seen."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
import static
from graphs.errors import ArgumentError, GraphError
from tests.helpers.backends import BACKENDS
from tests.helpers.jitted import double, ones
from tests.helpers.slow import examples

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
@examples(0.3)  # each compiles a dozen times
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


def scaled(x: Any, w: Any = 2.0, *, by: Any = 1.0, negate: bool = False) -> Any:
    total = (x * w * by).sum()
    return -total if negate else total


def chosen(x: Any, *, above: Any) -> Any:
    if x.sum() > above:
        return x
    return -x


def test_arguments_go_by_their_names() -> None:
    x = np.array([1.0, 2.0, 3.0])
    calls: list[dict[str, Any]] = [
        {"x": x}, {"x": x, "w": x}, {"x": x, "w": 3.0}, {"x": x, "by": x}, {"x": x, "w": x, "by": 2.0, "negate": True},
        {"negate": True, "x": x},
    ]  # fmt: skip
    for options in (*[{"backend": backend} for backend in BACKENDS], {"convert": True}, {"shapes": "exact"}):
        compiled = static.jit(scaled, **options)
        for words in calls:
            assert compiled(**words) == pytest.approx(scaled(**words))
    assert compiled(x, by=x) == scaled(x, by=x)
    compiles = compiled.stats.compiles
    compiled(w=x, x=x)
    compiled(x, x)
    assert compiled.stats.compiles == compiles
    assert static.jit(static.grad(scaled))(x, w=3.0).tolist() == [3, 3, 3]
    either = static.jit(chosen, convert=True)
    assert [either(x, above=np.float64(limit)).tolist() for limit in (5, 7)] == [x.tolist(), (-x).tolist()]
    with pytest.raises(TypeError, match="unexpected keyword argument 'much'"):
        compiled(x, much=2.0)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        compiled(w=x)


def test_an_argument_that_nothing_can_take_apart_or_look_up_says_so():
    @dataclasses.dataclass
    class Batch:
        x: object

    with pytest.raises(ArgumentError, match=r"an argument is a Batch, .* optree\.register_pytree_node"):
        static.jit(lambda w, batch: w * batch.x)(np.ones(3), Batch(np.ones(3)))
    frozen = dataclasses.dataclass(frozen=True)(type("Sizes", (), {"__annotations__": {"n": int}}))
    assert static.jit(lambda w, sizes: w * sizes.n)(np.ones(1), frozen(2)) == 2.0
