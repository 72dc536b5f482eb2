"""Picking by positions as native code against NumPy's kernels: any axis, layout, dtype and number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs as g
import static
from graphs.errors import OutOfRangeError

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import link
from static.native.picking import Flattening, Picking
from static.native.target import AVX2, AVX512, NEON
from tests.helpers.native_cut import everything_cut
from tests.helpers.native_reference import in_python
from tests.helpers.slow import examples
from tests.static.native.test_native_targets import inner_loops, stack_operands
from tests.static.native.test_native_windows import is_native

TARGETS = {"AVX2": AVX2, "AVX-512": AVX512, "NEON": NEON}
VALUES, POSITIONS = ["f4", "f8", "i4", "i8", "u1"], ["i8", "i4", "u1", "i1"]
OPS = {
    "take": lambda x, at, values, axis: g.take(x, at, axis),
    "scatter": g.scatter,
    "scatter_add": lambda x, at, values, axis: g.scatter_add(values, at, x.shape, axis),
    "take_along_axis": lambda x, at, values, axis: g.take_along_axis(x, at, axis),
    "add_along_axis": lambda x, at, values, axis: g.add_along_axis(values, at, x.shape, axis),
}


def numbers(rng, shape, dtype):
    floats = rng.normal(size=shape) * 9 if dtype[0] == "f" else rng.integers(0, 99, shape)
    return np.asarray(floats, dtype)


def turned(a):
    """The array in memory the other way round, and what makes a view of it that looks the same."""
    return a.T.copy(), lambda b: g.permute_dims(b, tuple(range(a.ndim))[::-1])


def doubled(a):
    return (np.repeat(a, 2, axis=-1), lambda b: b[..., ::2]) if a.ndim else (a, lambda b: b)


LAYOUTS = {"rows": lambda a: (a, lambda b: b), "columns": turned, "steps": doubled}


@st.composite
def pickings(draw):
    """A call of each op, with arrays to call it on; some positions are of the end, and most occur twice."""
    rng, axis = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(0, 2))
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 5, 16, 19]), min_size=axis + 1, max_size=3))
    dtype, kind = draw(st.sampled_from(VALUES)), draw(st.sampled_from(POSITIONS))
    layout = LAYOUTS[draw(st.sampled_from([*LAYOUTS]))]
    indexed = draw(st.sampled_from([(), (1,), (4,), (3, 5)]))
    size = sizes[axis]
    calls = {}
    for name, op in OPS.items():
        along = (*sizes[:axis], draw(st.integers(1, 6)), *sizes[axis + 1 :])
        shape = along if name in ("take_along_axis", "add_along_axis") else indexed
        whole = along if shape is along else (*sizes[:axis], *indexed, *sizes[axis + 1 :])
        at = rng.integers(0 if kind[0] == "u" else -size, size, shape).astype(kind)
        arrays = numbers(rng, sizes, dtype), at, numbers(rng, whole, dtype)
        laid, views = zip(*map(layout, arrays), strict=True)
        calls[name] = called(op, views, axis), laid
    return calls


def called(op, views, axis):
    return lambda *laid: op(*(view(array) for view, array in zip(views, laid, strict=True)), axis)


def same(got, expected):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    return got.tobytes() == expected.tobytes()


def run(f, args, **options):
    exe = static.compile(f, *args, backend="native", **options)
    return exe, np.asarray(exe(*args))


@given(pickings())
def test_picking_is_native_and_gives_the_bits_of_numpys_kernels(calls):
    for name, (f, args) in calls.items():
        exe, got = run(f, args)
        assert is_native(exe), name
        assert same(got, np.asarray(f(*args))), name


@examples(0.5)
@given(pickings())
def test_picking_is_the_same_with_any_number_of_threads(calls):
    for name, (f, args) in calls.items():
        with everything_cut():
            assert same(run(f, args, threads=3)[1], np.asarray(f(*args))), name


@examples(0.3)
@given(pickings())
def test_the_reference_in_python_picks_too(calls):
    for name, (f, args) in calls.items():
        with in_python():
            assert same(run(f, args)[1], np.asarray(f(*args))), name


@given(st.integers(0, 99), st.sampled_from(POSITIONS), st.sampled_from([(), (40,), (3, 19)]))
def test_positions_of_several_axes_are_flattened(seed, kind, shape):
    rng = np.random.default_rng(seed)
    sizes = tuple(map(int, rng.integers(1, 9, 3)))
    least = [0 if kind[0] == "u" else -size for size in sizes]
    shapes = shape, shape[1:], shape  # which broadcast
    arrays = [np.asarray(rng.integers(*limits), kind) for limits in zip(least, sizes, shapes, strict=True)]

    def f(*positions):
        return g.flat_index(*positions, sizes=sizes)

    exe, got = run(f, arrays)
    assert is_native(exe)
    assert same(got, np.asarray(f(*arrays)))
    with everything_cut():
        assert same(run(f, arrays, threads=2)[1], got)


X, TABLE = np.arange(30, dtype="f4").reshape(3, 10), np.arange(12, dtype="f4").reshape(4, 3)
REFUSED = {
    "take": (lambda at: g.take(TABLE, at), "take", 4),
    "take of columns": (lambda at: g.take(TABLE, at, 1), "take", 3),
    "take of nothing": (lambda at: g.take(TABLE[:0], at), "take", 0),
    "gradient": (lambda at: g.scatter_add(X, at, (4, 10), 0), "scatter_add", 4),
    "scatter": (lambda at: g.scatter(np.zeros((4, 10), "f4"), at, X), "scatter", 4),
    "along": (lambda at: g.take_along_axis(X, g.reshape(at, (3, 1)), 1), "take_along_axis", 10),
    "added along": (lambda at: g.add_along_axis(X[:, :1], g.reshape(at, (3, 1)), (3, 8), 1), "add_along_axis", 8),
    "several axes": (lambda at: g.index(X, (np.arange(3), at)), "flat_index", 10),
    "several positions": (lambda at: g.flat_index(np.arange(3), at, np.arange(3), sizes=(3, 9, 4)), "flat_index", 9),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("wrong", [40, -41, 2**31, -(2**62)])
def test_a_position_outside_is_refused_as_by_numpys_backend_and_the_next_call_is_right(name, wrong, threads):
    f, op, size = REFUSED[name]
    right, bad = np.array([0, 1, 2]), np.array([0, wrong, 2])
    with everything_cut():
        exe = static.compile(f, right, backend="native", threads=threads)
    assert is_native(exe)
    numpys = static.compile(f, right)
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match=f"^{op}: ") as expected:
            numpys(bad)
        with pytest.raises(
            OutOfRangeError, match=rf"^{op}: .*axis of size {size},.*test_native_picking.py:"
        ) as refused:
            exe(bad)
        assert type(refused.value) is type(expected.value)
        if size:
            assert same(np.asarray(exe(right)), np.asarray(f(right)))


NONE = np.array([], np.int64)  # which NumPy may lay with strides of 0


@pytest.mark.parametrize("shape", [(4,), (4, 3), (0, 3), (4, 0)])
@pytest.mark.parametrize("name", OPS)
def test_no_position_is_none_that_is_refused(name, shape):
    x, along = np.ones(shape, "f4"), name in ("take_along_axis", "add_along_axis")
    at = np.broadcast_to(NONE.reshape(0, *[1] * (len(shape) - 1)), (0, *shape[1:])) if along else NONE
    args = x, np.ones((0, *shape[1:]), "f4")

    def f(x, values):
        return OPS[name](x, at, values, 0)

    exe, got = run(f, args)
    assert is_native(exe)
    assert same(got, np.asarray(f(*args)))


def test_what_is_refused_first_is_said():
    def f(at, also):
        return g.take(TABLE, at), g.take(X, also)

    exe = static.compile(f, np.array([0]), np.array([0]), backend="native")
    with pytest.raises(OutOfRangeError, match="axis of size 4"):
        exe(np.array([7]), np.array([7]))
    with pytest.raises(OutOfRangeError, match="axis of size 3"):
        exe(np.array([3]), np.array([7]))


def test_a_loop_ends_where_a_position_is_refused():
    """What is picked at 0 in place of it would have this loop go on for ever."""

    def f(at):
        return g.while_loop(lambda at: g.take(np.array([1, 1, 0]), at) > 0, lambda at: at + 10, at)

    exe = static.compile(f, np.array(0), backend="native")
    assert is_native(exe)
    with pytest.raises(OutOfRangeError, match=r"^take: .*axis of size 3"):
        exe(np.array(0))
    assert exe(np.array(2)) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_a_refusal_in_a_long_step_is_raised_with_pythons_lock(threads):
    x = np.zeros((3000, 700), "f4")

    def f(x, at):
        return g.take(x, at) + g.tanh(x)

    at = np.arange(3000)
    exe = static.compile(f, x, at, backend="native", threads=threads)
    assert exe(x, at).shape == x.shape
    at[-1] = 3000
    with pytest.raises(OutOfRangeError, match="axis of size 3000"):
        exe(x, at)


def test_what_int64_does_not_hold_and_truths_that_are_added_are_numpys():
    at = np.array([2, 0], np.uint64)
    assert not is_native(static.compile(lambda at: g.flat_index(at, sizes=(3,)), at, backend="native"))
    halves = TABLE.astype("f2")
    exe = static.compile(lambda x: g.take(x, np.array([1, 1])), halves, backend="native")
    assert not is_native(exe)
    assert same(np.asarray(exe(halves)), halves[[1, 1]])


def training_step():
    """An embedding, a cross entropy by positions of two axes, and exact GELU."""

    def loss(params, tokens, target):
        x = g.gelu(g.take(params["table"], tokens)) @ params["out"]
        picked = g.log_softmax(x)[np.arange(40), target]
        return -g.mean(picked)

    rng = np.random.default_rng(0)
    params = {"table": rng.normal(size=(50, 32)).astype("f4"), "out": rng.normal(size=(32, 70)).astype("f4")}
    return static.value_and_grad(loss), params, rng.integers(-50, 50, 40), rng.integers(0, 70, 40)


def test_a_training_step_of_embeddings_is_one_native_call():
    step, *args = training_step()
    exe = static.compile(step, *args, backend="native")
    assert is_native(exe)
    (loss, grads), (expected, others) = exe(*args), static.compile(step, *args)(*args)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for name, grad in grads.items():
        np.testing.assert_allclose(grad, others[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", TARGETS)
def test_loops_over_positions_keep_what_they_compute_in_registers(name):
    step, *args = training_step()
    exe = static.compile(step, *args, backend="native")
    kernels = [k.recipe for k in exe.kernels if isinstance(k.recipe, (Picking, Flattening))]
    assert {type(recipe) for recipe in kernels} == {Picking, Flattening}
    module = link.module({recipe: f"k{i}" for i, recipe in enumerate(kernels)}, TARGETS[name])
    loops = inner_loops(link.assembly(module, TARGETS[name]))
    assert loops
    for block in loops:
        assert stack_operands(block) <= 0.1 * block.count("\n"), block
