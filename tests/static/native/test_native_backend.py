"""The native backend as users meet it: results, layouts of arguments, sizes, control flow, threads, errors, kernels."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import graphs as g
import static
from benchmarks.programs import ROWS
from graphs import TensorSpec
from graphs.errors import GraphError
from static.call import backend
from static.passes import pipeline
from tests.fuzz.graphs import everywhere

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import binding, target
from tests.helpers.native_reference import in_python

SMALL_ROWS = ("tiny MLP", "chain 1e3", "RNN", "transformer T=32", "MLP")


def both(f, *args, **options):
    """What NumPy's kernels and native code give, as leaves."""
    native = static.compile(f, *args, backend="native", **options)
    return g.tree.leaves(native(*args)), g.tree.leaves(static.compile(f, *args)(*args))


def near(actual, expected, tolerance=2e-5):
    for a, b in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        scale = 1 + np.max(np.abs(b), initial=0) if b.dtype.kind == "f" else 1
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def loss(params, x):
    h = g.tanh(x @ params["w"] + params["b"])
    return g.mean(g.softmax(h, axis=-1) * h) + g.sum(g.max(h, axis=0))


def problem(batch=7, width=5):
    rng = np.random.default_rng(batch)
    params = {"w": rng.normal(size=(3, width)).astype("f4"), "b": rng.normal(size=width).astype("f4")}
    return params, rng.normal(size=(batch, 3)).astype("f4")


STEP = static.value_and_grad(loss)


# Results ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", SMALL_ROWS)
def test_the_training_steps_of_the_table(row):
    made = ROWS[row]()
    near(*both(static.value_and_grad(made.loss), made.params, *made.inputs))


@pytest.mark.parametrize("passes", [pipeline.REPLAY, pipeline.SIMPLIFY, pipeline.DEFAULT])
@pytest.mark.parametrize("arena", [True, False])
def test_any_passes_with_and_without_an_arena(passes, arena):
    if passes is pipeline.DEFAULT and not arena:
        passes = passes[: -len(pipeline.FUSE + pipeline.CONTRACT + pipeline.CLEAN)]
    near(*both(STEP, *problem(), passes=passes, arena=arena))


def test_groups_made_for_numpys_kernels_are_made_anew():
    with everywhere():
        assert "fused" in static.compile(STEP, *problem()).graph.op_counts()
        near(*both(STEP, *problem(), passes=pipeline.DEFAULT))
        near(*both(static.value_and_grad(looping, (0, 1)), *loop_problem(), passes=pipeline.DEFAULT))


def test_what_nobody_reads_decides_nothing():
    def f(x):
        g.sum(x, axis=1, keepdims=True)
        return x * 2, g.sum(x, axis=0)

    near(*both(f, problem()[1], passes=()))


def test_results_are_the_callers():
    exe = static.compile(lambda x: (x * 2, x.T, x + 0), np.ones((3, 4), "f4"), backend="native")
    x = np.arange(12, dtype="f4").reshape(3, 4)
    first = exe(x)
    kept = [a.copy() for a in first]
    exe(x + 1)
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)
        a[...] = 7  # none of it is a view of the arguments, or of one another
    np.testing.assert_array_equal(x, np.arange(12).reshape(3, 4))


def test_large_results_are_written_again_only_when_nobody_sees_them():
    x = np.arange(1 << 17, dtype="f4")
    exe = static.compile(lambda x: x * 2 + 1, x, backend="native")
    held = [exe(x + i) for i in range(4)]
    for i, a in enumerate(held):
        np.testing.assert_array_equal(a, (x + i) * 2 + 1)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1, 1), (1,), (1, 17), (17, 1), ()])
def test_axes_of_no_or_one_element(shape):
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)

    def f(x):
        return (
            x + 1,
            g.sum(x * x),
            g.sum(x, axis=tuple(range(x.ndim)), keepdims=True),
            g.reshape(x, (-1,) if x.size else (0,)),
        )

    near(*both(f, x))


@pytest.mark.parametrize(
    "sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (1, 70, 1), (5, 1, 5), (33, 300, 47), (40, 513, 200)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_all_layouts(sizes, dtype):
    m, k, n = sizes
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)

    def f(a, b, at, bt):
        return (
            a @ b,
            at.T @ b,
            a @ bt.T,
            at.T @ bt.T,
            a[0:1] @ b,
            a @ b[:, 0:1] if n else a @ b,
            g.sum(a, axis=0) @ b,
            a @ g.sum(b, axis=1),
        )

    near(*both(f, a, b, a.T.copy(), b.T.copy()), tolerance=1e-4 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("sizes", [(70, 200, 150), (64, 96, 33), (40, 17, 20), (48, 290, 1), (6, 200, 40)])
def test_a_product_of_a_turned_matrix_is_that_of_a_copy_to_the_bit(sizes, dtype):
    rows, inner, columns = sizes
    rng = np.random.default_rng(inner)
    x, w = rng.normal(size=(2, rows, inner)).astype(dtype), rng.normal(size=(2, columns, inner)).astype(dtype)
    copy = np.ascontiguousarray(np.matrix_transpose(w))
    expected = static.compile(lambda x, v: x @ v, x, copy, backend="native")(x, copy)

    def shared(x, w):
        turned = w[0].T
        return g.stack([x[0] @ turned, (x[1] + 1) @ turned])

    def alone(x, w):
        return g.stack([x[0] @ w[0].T, x[1] @ w[1].T])

    for f in (shared, alone, lambda x, w: x @ g.matrix_transpose(w)):
        made = static.compile(f, x, w, backend="native")(x, w)
        np.testing.assert_array_equal(made[: 1 if f is shared else 2], expected[: 1 if f is shared else 2])


def test_products_of_stacks():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1, 5, 7)).astype("f4"), rng.normal(size=(3, 7, 18)).astype("f4")
    near(
        *both(
            lambda a, b: (a @ b, g.matrix_transpose(b) @ g.matrix_transpose(a), a @ b[0, :, 0], b[:, 0, :] @ b[0].T),
            a,
            b,
        )
    )


def test_a_number_of_a_row_that_is_spread_before_it_is_handed_out():
    x = np.random.default_rng(0).normal(size=(4, 6)).astype("f4")

    def f(x):
        spread = g.broadcast_to(g.sum(x * x, axis=1, keepdims=True), (4, 6))
        return spread * 2, g.sum(x), spread + x, g.exp(g.broadcast_to(g.mean(x), (4, 6)))

    for _ in range(3):
        near(*both(f, x))
    row = np.ones((1, 5), "f4")
    near(*both(lambda row: (g.sum(row[0] * 2 + row, axis=1), g.sum(row[0] + 1)), row))


# Layouts ------------------------------------------------------------------------------------------------------------


def test_arguments_in_any_layout():
    params, x = problem(8, 6)
    exe = static.compile(STEP, params, x, backend="native")
    expected = g.tree.leaves(exe(params, x))
    wide = np.zeros((8, 6), "f4")
    wide[:, ::2] = x
    turned = np.asfortranarray(x)
    apart = x[::-1].copy()[::-1]
    for other in (wide[:, ::2], turned, apart, np.require(x, requirements="O")):
        near(g.tree.leaves(exe(params, other)), expected, 0)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    unaligned = raw[1:].view("f4").reshape(x.shape)
    unaligned[...] = x
    assert not unaligned.flags.aligned
    near(g.tree.leaves(exe(params, unaligned)), expected, 0)
    x.setflags(write=False)
    near(g.tree.leaves(exe(params, x)), expected, 0)


class Labelled(np.ndarray):
    """An array of another class."""


X, Y = np.arange(12, dtype="f4").reshape(3, 4) / 8, np.array(0.5, "f4")
UNALIGNED = np.frombuffer(b"." + X.tobytes(), np.uint8)[1:].view("f4").reshape(3, 4)
READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False
FITTING = {"another": X + 1, "read-only": READ_ONLY, "a part of a larger one": np.tile(X, (2, 1))[3:]}
ODD = {
    "float64": X.astype("f8"), "int32": X.astype("i4"), "other bytes": X.astype(">f4"), "larger": np.ones((3, 5), "f4"),
    "fewer axes": np.ones(12, "f4"), "more axes": np.ones((1, 3, 4), "f4"), "empty": np.ones((0, 4), "f4"),
    "by columns": np.asfortranarray(X), "apart": np.repeat(X, 2, axis=1)[:, ::2], "backwards": X[::-1],
    "unaligned": UNALIGNED, "a subclass": X.view(Labelled), "another dtype object":
    X.astype(np.dtype("f4", metadata={"unit": "m"})), "a scalar": np.float32(1), "a list": X.tolist(), "a number": 2.0,
    "nothing": None, "text": "12", "a class": np.ndarray, "an object": object(), "a buffer": memoryview(X),
}  # fmt: skip


def outcome(call, *args):
    """What a call gives, to the bit, or what it raises."""
    try:
        return [(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in g.tree.leaves(call(*args))]
    except (GraphError, TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", [*FITTING, *ODD])
def test_machine_code_that_looks_at_arguments_takes_what_python_would_take(name):
    def step(x, y):
        return {"product": x * y, "sum": g.sum(x)}

    array = {**FITTING, **ODD}[name]
    looks, asks = (static.compile(step, X, Y, backend="native") for _ in range(2))
    (room,), (other,) = looks._free, asks._free
    other.direct = None
    for args in ((array, Y), (X, array)):
        assert bool(room.direct(*args)) is (name in FITTING and args[1] is Y)
        assert outcome(looks, *args) == outcome(asks, *args)


def test_only_a_program_that_is_one_segment_has_machine_code_that_looks_at_arguments():
    for f in (lambda x: g.sort(x) * 2, lambda x: (x, x + 1), lambda x: x.T, lambda x: (x + 1, x + 1)):
        exe = static.compile(f, X, backend="native")
        assert exe.binding.direct is None
        np.testing.assert_array_equal(g.tree.leaves(exe(X))[-1], g.tree.leaves(f(X))[-1])
    assert static.compile(lambda x: x + 1, X, backend="native").binding.direct is not None
    assert static.compile(lambda x: x + 1, X).binding.direct is None


def test_one_array_given_twice():
    x = np.random.default_rng(0).normal(size=(6, 6)).astype("f4")
    exe = static.compile(lambda a, b: (a @ b, a - b, a.T * b), x, x.copy(), backend="native")
    near(g.tree.leaves(exe(x, x)), [x @ x, x - x, x.T * x])


def test_views_of_arguments_and_of_results():
    x = np.random.default_rng(0).normal(size=(6, 4, 5)).astype("f4")

    def f(x):
        h = g.exp(x)
        part = h[1:5:2, ::-1]
        turned = g.permute_dims(part, (2, 0, 1))
        return (
            turned * 2,
            g.reshape(turned, (-1, 4)) + 1,
            g.sum(part[:, 0] * x[0:2, 1], axis=0),
            turned,
            g.concat([part, part * 2]),
        )

    near(*both(f, x))


KEYS = [
    np.s_[1:4], np.s_[2], np.s_[:, -1], np.s_[4:0:-2, :, 3], np.s_[:], np.s_[0, 0, 0], np.s_[3:3], np.s_[..., 1],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_gradient_of_a_part(key, dtype):
    x = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(dtype)
    near(*both(static.value_and_grad(lambda x: g.sum(x[key] * x[key]) + g.sum(x)), x))


# Sizes and control flow ---------------------------------------------------------------------------------------------


def test_symbolic_sizes():
    params, _ = problem()
    spec = {name: TensorSpec(a.shape, a.dtype) for name, a in params.items()}
    exe = static.compile(STEP, spec, TensorSpec(("B", 3), np.float32), backend="native")
    for batch in (7, 1, 33, 7):
        x = problem(batch)[1]
        near(g.tree.leaves(exe(params, x)), g.tree.leaves(static.compile(STEP, params, x)(params, x)))
    with pytest.raises(GraphError, match="no value"):
        exe(params, np.zeros((0, 3), "f4"))  # the largest of no rows


def test_jit():
    step = static.jit(STEP, shapes="symbolic", dims=(None, ("B", None)), backend="native")
    for batch in (4, 9, 4):
        params, x = problem(batch)
        near(g.tree.leaves(step(params, x)), g.tree.leaves(static.compile(STEP, params, x)(params, x)))
    assert step.stats.compiles == 1
    assert all(exe.backend == "native" for exe in step.executables.values())


def loop_problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 4)).astype("f4"), rng.normal(size=(5, 2, 3)).astype("f4")


def looping(w, xs):
    def body(h, x):
        h = g.tanh(x @ w + h * 0.5)
        return h, g.sum(h, axis=-1)

    h, ys = g.scan(body, g.zeros((2, 4), dtype="f4"), xs)
    h = g.cond(g.sum(h) > 0, lambda h: h * 2, lambda h: h - 1, h)
    return g.sum(h * h) + g.sum(ys)


def test_loops_and_branches_with_gradients():
    w, xs = loop_problem()
    near(*both(static.value_and_grad(looping, (0, 1)), w, xs))
    near(*both(lambda x: g.while_loop(lambda x: g.sum(x) < 100, lambda x: x * 1.5 + 1, x), w))


@pytest.mark.parametrize("rows", [63, 64])
def test_large_products_are_left_to_blas(rows):
    rng = np.random.default_rng(0)
    x, y = rng.random((rows, 4096), np.float32), rng.random((4096, 4096), np.float32)
    exe = static.compile(lambda x, y: g.matmul(x, y) + 1, x, y, backend="native")
    assert any("kernel product" in repr(kernel) for kernel in exe.kernels) == (rows < 64)
    np.testing.assert_allclose(exe(x, y), x.astype("f8") @ y.astype("f8") + 1, rtol=2e-5)


def test_ops_without_native_code_call_numpys_kernels():
    x = np.random.default_rng(0).normal(size=(4, 4)).astype("f4") + 3 * np.eye(4, dtype="f4")
    exe = static.compile(lambda x: g.sort(g.linalg.inv(x) * 2, axis=0) + 1, x, backend="native")
    assert "k" in exe.source.split("(", 1)[1]
    near(
        *both(
            lambda x: (
                g.sort(x * 2, axis=0) + 1,
                g.take(x + 1, np.array([2, 0]), axis=1) * 2,
                g.cumulative_sum(x * x, axis=0),
            ),
            x,
        )
    )


def test_an_error_of_a_kernel_names_the_op_and_the_line():
    x = np.ones((2, 2), "f4")
    exe = static.compile(lambda x: g.linalg.inv(x * 1.0 + 1) * 2, x, backend="native")
    with pytest.raises(GraphError, match=r"inv.*test_native_backend.py"):
        exe(x)


def test_effects_keep_their_order(capsys):
    def f(x):
        g.print(x, "first")
        y = x * 2
        g.print(y, "second")
        return y + 1

    x = np.ones(2, "f4")
    static.compile(f, x, backend="native")(x)
    said = capsys.readouterr().err
    assert -1 < said.find("first") < said.find("second")


# Threads ------------------------------------------------------------------------------------------------------------


def test_executables_in_threads():
    def work(seed, wrong):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(200 + seed, 300)).astype("f4")
        exe = static.compile(lambda x: g.tanh(x @ x.T) * seed + g.mean(x), x, backend="native")
        expected = np.tanh(x @ x.T) * seed + np.mean(x)
        for _ in range(5):
            if not np.allclose(exe(x), expected, rtol=1e-3, atol=1e-3):
                wrong.append(seed)

    wrong = []
    threads = [threading.Thread(target=work, args=(seed, wrong)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_long_segment_lets_other_threads_run():
    x = np.random.default_rng(0).normal(size=(600, 600)).astype("f4")
    exe = static.compile(lambda x: g.sum(x @ x @ x), x, backend="native")
    recipes = exe.binding.kernels
    assert sum(recipe.operations for recipe in recipes) > binding.UNLOCKED
    np.testing.assert_allclose(exe(x), np.sum((x @ x @ x).astype("f8")), rtol=1e-2)


def test_results_keep_their_memory_after_the_executable_is_gone():
    x = np.arange(40, dtype="f4")
    call = static.compile(lambda x: (x + 1, g.sum(x)), x, backend="native").__call__
    actual = call(x)
    del call
    np.testing.assert_array_equal(actual[0], x + 1)


def test_calls_leak_nothing():
    x = np.ones((8, 8), "f4")
    exe = static.compile(lambda x: (x * 2, g.sum(x)), x, backend="native")
    exe(x)
    before = sys.getrefcount(np.dtype("f4")), sys.getrefcount(x)
    for _ in range(1000):
        exe(x)
        exe(x.T)
    after = sys.getrefcount(np.dtype("f4")), sys.getrefcount(x)
    assert max(b - a for a, b in zip(before, after, strict=True)) < 10


# Kernels ------------------------------------------------------------------------------------------------------------


def test_kernels_can_be_read():
    x = np.ones((5, 20), "f4")
    exe = static.compile(g.softmax, x, backend="native")
    (kernel,) = exe.kernels
    assert "loop" in kernel.ir
    assert "fold max" in kernel.ir
    assert "fma" in kernel.llvm
    assert "fast" not in kernel.llvm.split("define")[1]
    assert "vfmadd" in kernel.assembly
    assert repr(kernel) == "<kernel group, called 1 times>"
    assert static.compile(g.softmax, x).kernels == ()


def test_steps_that_do_the_same_share_a_kernel():
    row = ROWS["RNN"]()
    exe = static.compile(static.value_and_grad(row.loss), row.params, *row.inputs, backend="native")
    assert len(exe.kernels) < 20 < sum(kernel.count for kernel in exe.kernels)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_reference_in_python_gives_what_machine_code_gives(seed):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(3, 21)).astype("f4"), rng.normal(size=(21, 5)).astype("f4")

    def f(x, w):
        h = g.softmax(g.tanh(x @ w) * g.exp(x[:, :5]), axis=-1)
        kept = g.where(h > 0.2, h, g.log1p(h))
        return kept, g.sum(kept, axis=0), g.max(h), w.T @ x.T, g.any(h > 0.5, axis=1), g.astype(h * 9, "f8") / 7

    actual = g.tree.leaves(static.compile(f, x, w, backend="native")(x, w))
    with in_python():
        exe = static.compile(f, x, w, backend="native")
        near(g.tree.leaves(exe(x, w)), actual, 3e-7)


# What may be missing --------------------------------------------------------------------------------------------------


def test_an_unknown_backend_is_refused():
    x = np.ones(2, "f4")
    with pytest.raises(GraphError, match="no backend 'fast'"):
        static.compile(lambda x: x, x, backend="fast")
    with pytest.raises(GraphError, match="no backend 'fast'"):
        static.jit(lambda x: x, backend="fast")


@pytest.fixture
def without_code(monkeypatch):
    """A machine on which no code may run."""

    def refuse():
        raise target.NativeError("backend='native' cannot run code here: no; use backend='numpy'")

    monkeypatch.setattr(target, "host", refuse)
    monkeypatch.setattr(backend, "_told", set())


@pytest.mark.usefixtures("without_code")
def test_without_native_code_native_is_an_error_and_auto_says_so_once():
    x = np.ones(2, "f4")
    with pytest.raises(GraphError, match=r"cannot run code here.*use backend='numpy'"):
        static.compile(lambda x: x + 1, x, backend="native")
    with pytest.warns(backend.FallbackWarning, match="NumPy's kernels run instead"):
        exe = static.compile(lambda x: x + 1, x, backend="auto")
    assert exe.backend == "numpy"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(static.compile(lambda x: x + 1, x, backend="auto")(x), [2, 2])


def test_auto_is_native_where_that_can_be():
    assert static.compile(lambda x: x + 1, np.ones(2, "f4"), backend="auto").backend == "native"


def test_code_that_crashes_in_the_child_process_is_not_run_here(monkeypatch):
    monkeypatch.setenv("GRAPHDUEL_NATIVE_CACHE", "off")  # where it is noted that code runs here
    monkeypatch.setattr(target, "PROBE", "import os; os.kill(os.getpid(), 4)")
    with pytest.raises(target.NativeError, match=r"cannot run code here: code for .* fails"):
        target.host.__wrapped__()


def test_a_machine_without_fma_is_refused(monkeypatch):
    import llvmlite.binding as llvm

    class Features(dict):
        def flatten(self):
            return "+sse2"

    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: Features(sse2=True))
    with pytest.raises(target.NativeError, match="AVX2 and FMA"):
        target.host.__wrapped__()


def test_static_does_not_load_llvmlite():
    code = (
        "import sys, static, numpy as np; static.compile(lambda x: x + 1, np.ones(2)); print('llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_missing_llvmlite_is_told():
    code = (
        "import sys; sys.modules['llvmlite'] = None\nimport static, numpy as np\n"
        "try: static.compile(lambda x: x + 1, np.ones(2), backend='native')\nexcept Exception as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'graphduel[native]'" in done.stdout


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), subprocess.TimeoutExpired("python", 60)])
def test_where_no_process_can_try_the_code_there_is_none(monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(target, "load_code", lambda _: None)
    monkeypatch.setattr(target.subprocess, "run", refuse)
    with pytest.raises(target.NativeError, match="cannot be tried"):
        target.host.__wrapped__()
