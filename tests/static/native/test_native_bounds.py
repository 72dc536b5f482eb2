"""Native code stays inside of its arrays: what it is made for is compared with what there is."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

import graphs as g
import static
from graphs import ShapeError
from graphs.op import Op, _registry
from graphs.ops.families import movement
from graphs.spec import TensorSpec

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import recipes
from static.native.placement import LaidArray, check_bounds, row_major
from static.native.target import NativeError

BOTH = pytest.mark.parametrize("backend", ["native", "auto"])
F8 = np.dtype("f8")


@pytest.fixture
def own_op(request):
    """Makes an op that is gone after the test."""
    names = []

    def make(kernel, infer, **options):
        names.append(f"{request.node.originalname}_{len(names)}")
        return Op(names[-1], kernel, infer, cost=1, family="custom", **options)

    yield make
    for name in names:
        _registry.pop(name, None)


# What ops are given ------------------------------------------------------------------------------------------------

WIDE = np.ones(100_000)
WINDOW = ((2, 2, 0, 0, 1),)
TAP = np.zeros(50_000, np.uint8)
CALLS = {
    "place": lambda x: g.place(x, (4,), (slice(0, 2),)),
    "add_along_axis": lambda x: g.add_along_axis(x, np.zeros(7, int), (4,), 0),
    "window_spread": lambda x: g.window_spread(x, sizes=(4,), window=WINDOW),
    "window_place": lambda x: g.window_place(x, TAP[:2], sizes=(4,), window=WINDOW),
    "window_pick": lambda x: g.window_pick(x, TAP[:7], window=WINDOW),
    "window_argmax": lambda x: g.window_argmax(x, x[:7], window=WINDOW),
    "convolution": lambda x: g.convolution(g.reshape(x, (1, 1, -1)), np.ones((1, 1, 3)), WINDOW, 1),
    "convolution_input": lambda x: g.convolution_input(
        g.reshape(x[:2], (1, 1, 2)), np.ones((1, 1, 9)), (4,), WINDOW, 1
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_does_not_fit_is_refused_by_every_backend(name):
    for backend in static.call.backend.NAMES:
        with pytest.raises(ShapeError, match=rf"^{name}: .*test_native_bounds.py"):
            static.compile(CALLS[name], WIDE, backend=backend)(WIDE)
    with pytest.raises(ShapeError, match=f"^{name}: "):
        CALLS[name](WIDE)


# What a rule says, and what there is ----------------------------------------------------------------------------------


def laid(*shape, which=0):
    return LaidArray(which, 0, shape, row_major(shape, 8), F8)


def test_a_kernel_that_would_leave_its_arrays_is_not_bound():
    work = recipes.copy_recipe(laid(4, 3), laid(4, 3, which=1))
    assert check_bounds(work, [laid(4, 3), laid(4, 3, which=1)]) is work
    for arrays in ([laid(4, 3), laid(4, 2, which=1)], [laid(11), laid(4, 3, which=1)], [laid(4, 3)]):
        with pytest.raises(NativeError, match="would leave its arrays"):
            check_bounds(work, arrays)
    with pytest.raises(NativeError, match="would copy"):
        recipes.copy_recipe(laid(4, 3), laid(4, 2))
    with pytest.raises(NativeError, match="would read"):
        laid(4, 3).with_shape((4, 4))


@BOTH
def test_a_rule_that_a_kernel_does_not_keep_is_an_error(backend, own_op):
    """The array that NumPy's kernel gives is looked at in each call, before native code takes it for another."""
    shorter = own_op(lambda x, out=None: x[:4], lambda x: TensorSpec((100_000,), x.dtype))
    narrow = own_op(lambda x, out=None: np.ones(x.shape, "f4"), lambda x: x)
    for op, what in ((shorter, r"f64\[4\]"), (narrow, r"f32\[100000\]")):
        exe = static.compile(lambda x, op=op: g.square(op(x)) + 1, WIDE, backend=backend, arena=False)
        for _ in range(2):
            with pytest.raises(ShapeError, match=rf"{op.name}: gave {what}, its spec says f64\[100000\].*bounds.py"):
                exe(WIDE)


def test_a_view_that_is_none_is_an_error():
    name = "a view that is none"
    copies = movement(name, lambda x: np.array(x) * 2, lambda x: x, prepare=lambda x, /: ((x,), {}), view=True)
    try:
        with pytest.raises(NativeError, match="no view of its operand"):
            static.compile(lambda x: g.square(copies(x)) + 1, WIDE[:1], backend="native")
    finally:
        _registry.pop(name)


@BOTH
def test_a_loop_in_python_hands_numbers_to_native_code(backend):
    """Of an x with one axis a step takes NumPy's scalars, which are no arrays."""

    def f(x, start):
        return g.scan(lambda c, a: (g.tanh(c + a) + g.sum(g.sort(g.stack([a, c, c * 2]))), a * 2 + c), start, x)

    x, start = np.linspace(0, 1, 50), np.asarray(0.3)
    exe = static.compile(f, x, start, backend=backend)
    for found, expected in zip(exe(x, start), static.compile(f, x, start)(x, start), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@BOTH
def test_dtypes_that_are_equal_and_not_one_object_are_taken(backend):
    other = np.dtype(">f8").newbyteorder("=")
    assert other is not F8
    x = np.linspace(0, 1, 12).astype(other)

    def f(x):
        return g.square(g.sort(x * 2)) + x, g.sort(x)

    for found, expected in zip(static.compile(f, x, backend=backend)(x), f(x), strict=True):
        np.testing.assert_array_equal(found, expected)


# At random -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="the allocator is written in C")
@pytest.mark.parametrize("guards", ["behind", "before"])
def test_wrong_operands_beside_memory_that_nobody_may_touch(guards):
    """A slice of `python -m tests.fuzz.operands --count 6000 --guards behind`."""
    command = [sys.executable, "-m", "tests.fuzz.operands", "--count", "150", "--guards", guards]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 150" in done.stdout
