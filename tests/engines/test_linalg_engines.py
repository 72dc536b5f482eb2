"""graphs.linalg in the engines: graphs of any size, batches, padding, loops, what is refused, PyTorch's parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import linalg
from graphs.errors import ControlFlowError, LinAlgError
from tests.helpers.engines import ENGINES, run
from tests.helpers.matrices import (
    FUNCTIONS,
    HIGH,
    RANDOM,
    SIDES,
    SPD,
    STACK,
    A,
    B,
    S,
    definite,
    flat,
    weighted_symbolic,
)

# Both engines -----------------------------------------------------------------------------------------------------


def test_all_factors_are_of_one_call_of_lapack():
    def loss(x):
        u, s, vh = linalg.svd(x, full_matrices=False)
        return g.sum(u[0] * s) + g.sum(vh**2)

    tape = dynamic.record(dynamic.value_and_grad(loss), HIGH[0])
    graph = static.trace(static.value_and_grad(loss), HIGH[0])
    assert tape.op_counts()["svd"] == graph.op_counts()["svd"] == 1


@pytest.mark.parametrize("name", ["solve", "inv", "slogdet", "cholesky", "eigh", "svd", "svd short", "qr", "det"])
def test_one_graph_serves_all_sizes(name):
    ours, _, inputs = FUNCTIONS[name]
    loss = weighted_symbolic(ours)
    specs = [g.TensorSpec(shape, "float64") for shape in (("B", "N", "N"), ("B", "N", 2))[: len(inputs)]]
    compiled = static.compile(static.value_and_grad(loss), *specs)
    for batch, size in ((1, 1), (3, 2), (2, 4), (0, 2)):
        given_ = [definite(batch, size, size), RANDOM.normal(size=(batch, size, 2))][: len(inputs)]
        value, slope = compiled(*given_)
        expected, wanted = dynamic.value_and_grad(loss)(*given_)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(slope, wanted, rtol=1e-8, atol=1e-9)


def test_sizes_that_turn_out_unfit_are_refused_with_the_op():
    compiled = static.compile(linalg.qr, g.TensorSpec(("M", "N"), "float64"))
    np.testing.assert_allclose(np.matmul(*compiled(B)), B, rtol=1e-12)
    with pytest.raises(g.ShapeError, match=r"qr: 2 by 3 is wider than high.*test_linalg_engines.py"):
        compiled(B.T)


@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet", "cholesky", "eigh", "svd", "qr", "pinv"])
def test_batched_gives_the_same_together(name):
    ours, _, inputs = FUNCTIONS[name]
    items = [dynamic.tensor(definite(3, 3), requires_grad=True) for _ in range(4)]
    rest = [dynamic.tensor(x) for x in (SIDES[0],)] if len(inputs) == 2 else []
    alone = [weighted_symbolic(ours)(x * 1.0, *rest) for x in items]
    slopes = dynamic.grad_of(sum(alone), items)
    with dynamic.batched() as batch:
        together = sum(weighted_symbolic(ours)(x * 1.0, *rest) for x in items)
    np.testing.assert_allclose(float(together), float(sum(alone)), rtol=1e-13)
    for one, other in zip(dynamic.grad_of(together, items), slopes, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-11, atol=1e-11)
    assert batch.stats.groups < batch.stats.ops


def test_a_singular_matrix_in_a_branch_that_is_not_taken_does_no_harm():
    def f(x):
        return g.cond(g.sum(x) > 0, lambda y: y, lambda y: y @ linalg.inv(g.zeros_like(y)), x)

    compiled = static.compile(f, A[:2, :2])
    np.testing.assert_array_equal(compiled(np.ones((2, 2))), np.ones((2, 2)))
    with pytest.raises(LinAlgError, match=r"inv: the matrix is singular.*test_linalg_engines.py"):
        compiled(-np.ones((2, 2)))


def test_nothing_that_may_fail_is_moved_before_a_loop_that_makes_no_step():
    def f(x, y):
        return g.while_loop(lambda s: g.sum(s) > 0, lambda s: s - g.sum(linalg.inv(y)) ** 2 - 1, x)

    compiled = static.compile(f, np.ones(2), A)
    np.testing.assert_array_equal(compiled(-np.ones(2), np.zeros((3, 3))), -np.ones(2))
    with pytest.raises(LinAlgError, match="inv: the matrix is singular"):
        compiled(np.ones(2), np.zeros((3, 3)))


def test_padding_does_not_reach_a_factor_in_secret():
    f = static.jit(lambda x: g.sum(linalg.svdvals(x)), shapes="bucket", dims=(("N", "N"),), buckets=(4,))
    with pytest.raises(g.ShapeError, match="padding"):
        f(A)


def test_a_graph_with_factors_is_saved_and_loaded(tmp_path):
    static.compile(lambda x: g.sum(linalg.eigh(x).eigenvalues ** 3), S).save(tmp_path / "graph.zip")
    np.testing.assert_allclose(static.load(tmp_path / "graph.zip")(S), np.trace(S @ S @ S), rtol=1e-12)


# Refusals ---------------------------------------------------------------------------------------------------------

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
REFUSED = [
    (linalg.inv, (SINGULAR,), LinAlgError, r"inv: the matrix is singular, f64\[2,2\] \(.*\); add a multiple"),
    (linalg.solve, (SINGULAR, B[:2]), LinAlgError, "solve: the matrix is singular"),
    (linalg.solve, (np.stack([np.eye(2), SINGULAR]), B[:2]), LinAlgError, "solve: the matrix is singular"),
    (linalg.cholesky, (-np.eye(2),), LinAlgError, "cholesky: the matrix is not positive definite"),
    (linalg.cholesky, (np.tril(SPD[0]),), LinAlgError, "cholesky: the matrix is not symmetric"),
    (linalg.eigh, (np.triu(SPD),), LinAlgError, "eigh: the matrix is not symmetric"),
    (linalg.svd, (np.full((2, 2), np.nan),), LinAlgError, "svd: .*look for NaN"),
    (linalg.inv, (B,), g.ShapeError, "inv: takes square matrices, not 3 by 2"),
    (linalg.det, (B[0],), g.ShapeError, "det: takes matrices, with at least 2 axes, not 1"),
    (linalg.svd, (B[0],), g.ShapeError, "svd: takes matrices"),
    (linalg.solve, (A, B[:2]), g.ShapeError, "solve: 3 equations and 2 right-hand sides"),
    (linalg.solve, (STACK, np.ones((4, 3, 1))), g.ShapeError, "solve: sizes 2 and 4 do not broadcast"),
    (lambda x: linalg.qr(x, mode="raw"), (A,), g.ShapeError, "qr: there is no mode 'raw'"),
    (lambda x: linalg.matrix_norm(x, ord=3), (A,), g.ShapeError, "matrix_norm: there is no norm 3"),
    (linalg.matrix_norm, (B[0],), g.ShapeError, "matrix_norm: takes matrices"),
    (lambda x: dynamic.linalg.norm(x, 2), (STACK,), g.ShapeError, "norm: 3 axes have no norm of order 2"),
    (lambda x: linalg.vector_norm(x, ord="nuc"), (A,), g.ShapeError, "vector_norm: there is no norm 'nuc' of vectors"),
    (linalg.cross, (B, B), g.ShapeError, "cross: vectors of sizes 2 and 2"),
    (linalg.inv, (np.eye(2, dtype=int),), g.DTypeError, "inv: takes float32 and float64"),
    (linalg.det, (np.eye(2, dtype=np.float16),), g.DTypeError, "det: takes float32 and float64"),
    (linalg.slogdet, (np.eye(2) * 1j,), g.DTypeError, "float32 and float64|not complex"),
]


@pytest.mark.parametrize(("f", "inputs", "kind", "rule"), REFUSED)
def test_what_has_no_answer_is_refused(f, inputs, kind, rule):
    with pytest.raises(kind, match=rule):
        f(*inputs)
    for engine in ENGINES if inputs[0].dtype.kind != "c" else ():
        with pytest.raises(kind, match=rule):
            run(engine, flat(f), *inputs)


def test_the_error_is_numpys_too():
    assert issubclass(LinAlgError, np.linalg.LinAlgError)
    assert g.LinAlgError is linalg.LinAlgError is LinAlgError
    x = dynamic.tensor(SINGULAR)
    with pytest.raises(np.linalg.LinAlgError, match=r"singular.*test_linalg_engines.py"):
        np.linalg.inv(x)


def test_a_singular_matrix_says_so_in_backward():
    x = dynamic.tensor(SINGULAR, requires_grad=True)
    total = linalg.slogdet(x).logabsdet
    assert float(total) == -math.inf
    with pytest.raises(LinAlgError, match="inv: the matrix is singular"):
        total.backward()


def test_a_symbol_is_refused_as_the_power_of_an_unknown_size():
    with pytest.raises(ControlFlowError):
        static.trace(lambda x: linalg.matrix_power(x, 0), g.TensorSpec(("N", "N")))


# PyTorch's parameters ---------------------------------------------------------------------------------------------


def test_pytorchs_parameters():
    torch = dynamic
    x, spd = dynamic.tensor(HIGH), dynamic.tensor(S)
    pairs = [
        (torch.linalg.matrix_norm(x, "nuc", (0, 2), True), np.linalg.norm(HIGH, "nuc", (0, 2), True)),
        (
            torch.linalg.vector_norm(x, 3, dim=1, keepdim=True),
            np.linalg.vector_norm(HIGH, ord=3, axis=1, keepdims=True),
        ),
        (torch.linalg.norm(x, 2, dim=(1, 2)), np.linalg.norm(HIGH, 2, (1, 2))),
        (torch.linalg.norm(x), np.linalg.norm(HIGH)),
        (torch.linalg.diagonal(x, offset=1, dim1=0, dim2=1), np.diagonal(HIGH, 1)),
        (torch.linalg.solve(spd, dynamic.tensor(B.T), left=False), B.T @ np.linalg.inv(S)),
        (torch.linalg.cross(spd, spd.T[:1], dim=-1), np.cross(S, S.T[:1])),
        (torch.linalg.vecdot(x, x, dim=1), np.sum(HIGH**2, 1)),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    vectors = RANDOM.normal(size=(2, 3))  # a batch of vectors, of which NumPy makes one matrix
    found = torch.linalg.solve(dynamic.tensor(STACK), dynamic.tensor(vectors))
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(STACK, vectors[..., None])[..., 0], rtol=1e-12)
