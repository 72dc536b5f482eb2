"""graphs.linalg: values of NumPy and SciPy, and gradients of finite differences and HIPS autograd."""

from __future__ import annotations

import functools

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import dynamic
import graphs as g
import static
from graphs import linalg
from graphs.errors import NotDifferentiableError
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.matrices import (
    FUNCTIONS,
    HIGH,
    RANDOM,
    SPD,
    STACK,
    WIDE,
    A,
    B,
    S,
    definite,
    parts,
)
from tests.helpers.slow import examples, mostly_slow

each_engine = pytest.mark.parametrize("engine", ENGINES)


def same(found, expected, tolerance=1e-12):
    assert len(parts(found)) == len(parts(expected))
    for one, other in zip(parts(found), parts(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("case", FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_are_numpys_in_both_engines_and_by_numpys_names(case):
    ours, theirs, inputs = case
    expected = theirs(*inputs)
    same(ours(*inputs), expected)
    for f in (ours, theirs):
        eager = [np.asarray(part) for part in parts(f(*map(dynamic.tensor, inputs)))]
        same(tuple(eager), tuple(parts(expected)))
        compiled = static.compile(f, *inputs)(*inputs)
        for one, other in zip(parts(compiled), eager, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case", FUNCTIONS.values(), ids=FUNCTIONS)
def test_float32_stays(case):
    ours, theirs, inputs = case
    given_ = [x.astype(np.float32) for x in inputs]
    same(ours(*given_), theirs(*given_), 2e-5)


def test_names_are_those_of_the_standard():
    assert linalg.eigh(S)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.svd(A)._fields == ("U", "S", "Vh")
    assert linalg.qr(A)._fields == ("Q", "R")
    assert linalg.slogdet(A)._fields == ("sign", "logabsdet")
    assert dynamic.tensor(A).__array_namespace__().linalg is linalg


def test_scipy_finds_the_same():
    np.testing.assert_allclose(linalg.solve(A, B), scipy.linalg.solve(A, B), rtol=1e-12)
    np.testing.assert_allclose(linalg.cholesky(S, upper=True), scipy.linalg.cholesky(S), rtol=1e-12)
    np.testing.assert_allclose(linalg.pinv(HIGH[0]), scipy.linalg.pinv(HIGH[0]), rtol=1e-11)
    np.testing.assert_allclose(linalg.eigvalsh(S), scipy.linalg.eigvalsh(S), rtol=1e-12)
    np.testing.assert_allclose(linalg.svdvals(WIDE[0]), scipy.linalg.svdvals(WIDE[0]), rtol=1e-12)


@examples(1.2)
@given(st.lists(st.integers(0, 3), max_size=3), st.integers(0, 4), st.integers(0, 4), st.sampled_from("fd"))
def test_factors_of_any_batch_multiply_to_what_was_factored(batch, rows, columns, kind):
    x = np.random.default_rng(rows).normal(size=(*batch, rows, columns)).astype(kind)
    close = functools.partial(np.testing.assert_allclose, atol=1e-5 if kind == "f" else 1e-13)
    for full in (True, False):
        u, s, vh = linalg.svd(x, full_matrices=full)
        count = min(rows, columns)
        close(u[..., :count] * s[..., None, :] @ vh[..., :count, :], x)
        close(np.swapaxes(u, -1, -2) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*batch, *u.shape[-1:] * 2)))
        close(vh @ np.swapaxes(vh, -1, -2), np.broadcast_to(np.eye(vh.shape[-2]), (*batch, *vh.shape[-2:-1] * 2)))
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(x, mode=mode)
        close(q @ r, x)
        close(np.tril(r, -1), 0)
        assert q.shape[-1] == (rows if mode == "complete" else min(rows, columns))
    square = x @ np.swapaxes(x, -1, -2)
    w, v = linalg.eigh(square)
    close(v * w[..., None, :] @ np.swapaxes(v, -1, -2), square, rtol=1e-4 if kind == "f" else 1e-12)


@examples(1.2)
@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3), st.integers(1, 3), st.integers(0, 2))
def test_batches_of_systems_broadcast(shapes, size, columns):
    left, right = shapes.input_shapes
    x, y = definite(*left, size, size), RANDOM.normal(size=(*right, size, columns))
    expected = np.linalg.solve(x, y)
    np.testing.assert_allclose(linalg.solve(x, y), expected, rtol=1e-12)
    tensors = [dynamic.tensor(x, requires_grad=True), dynamic.tensor(y, requires_grad=True)]
    g.sum(linalg.solve(*tensors)).backward()
    slope = np.linalg.solve(np.swapaxes(x, -1, -2), np.ones(expected.shape))
    added = tuple(range(len(expected.shape) - y.ndim))
    slope = slope.sum(added)
    stretched = tuple(i for i, s in enumerate(y.shape) if s == 1 and slope.shape[i] != 1)
    np.testing.assert_allclose(tensors[1].grad.numpy(), slope.sum(stretched, keepdims=True), rtol=1e-10, atol=1e-12)
    assert tensors[0].grad.shape == x.shape


# Gradients --------------------------------------------------------------------------------------------------------

_SMOOTH = {name: case for name, case in FUNCTIONS.items() if "rank" not in name and "cut off" not in name}


@each_engine
@pytest.mark.parametrize("name", mostly_slow([name for name in _SMOOTH if name not in ("svd wide", "qr complete")], 8))
def test_gradients_are_finite_differences_to_order_2(engine, name):
    ours, _, inputs = FUNCTIONS[name]
    check_grads(ours, inputs, order=2, engine=ENGINES[engine])


def weights(shape):
    return np.random.default_rng(3).normal(size=shape)


def weighted(xp, f):
    """A scalar in which each element of each result counts otherwise."""
    return lambda *args: sum(xp.sum(part * weights(np.shape(part))) for part in parts(f(*args)))


# What autograd has a rule for, on functions that do not depend on signs.
AUTOGRAD = {
    "solve": (linalg.solve, anp.linalg.solve, (A, B)),
    "inv": (linalg.inv, anp.linalg.inv, (STACK,)),
    "det": (linalg.det, anp.linalg.det, (A,)),
    "slogdet": (lambda x: linalg.slogdet(x).logabsdet, lambda x: anp.linalg.slogdet(x)[1], (STACK,)),
    "cholesky": (linalg.cholesky, anp.linalg.cholesky, (SPD,)),
    "eigenvalues": (lambda x: linalg.eigh(x).eigenvalues, lambda x: anp.linalg.eigh((x + x.T) / 2)[0], (S,)),
    "singular values": (linalg.svdvals, lambda x: anp.linalg.svd(x, full_matrices=False)[1], (WIDE,)),
    "squares of U": (
        lambda x: linalg.svd(x, full_matrices=False).U ** 2,
        lambda x: anp.linalg.svd(x, full_matrices=False)[0] ** 2,
        (HIGH,),
    ),
    "norm nuc": (
        lambda x: linalg.matrix_norm(x, ord="nuc"),
        lambda x: anp.linalg.norm(x, "nuc", axis=(0, 1)),
        (HIGH[0],),
    ),
    "pinv": (linalg.pinv, anp.linalg.pinv, (WIDE[0],)),
}


@each_engine
@pytest.mark.parametrize("case", AUTOGRAD.values(), ids=AUTOGRAD)
def test_autograd_finds_the_same_gradients(engine, case):
    ours, theirs, inputs = case
    found = gradients(engine, weighted(g, ours), *inputs)
    expected = autograd.grad(weighted(anp, theirs), tuple(range(len(inputs))))(*inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@each_engine
@pytest.mark.parametrize("x", [np.diag([2.0, 0.0]), np.diag([3.0, 2.0, 0.0]), np.zeros((1, 1)), np.zeros((3, 3))])
def test_det_has_its_gradient_where_it_is_0(engine, x):
    check_grads(linalg.det, [x], engine=ENGINES[engine])
    check_grads(linalg.det, [np.stack([x, np.eye(len(x)) * 2])], engine=ENGINES[engine])


def test_cofactors_are_right_for_nearly_singular_matrices_and_tiny_determinants():
    x = np.array([[1.0, 2.0], [2.0, 4.0 + 1e-15]])
    np.testing.assert_allclose(dynamic.grad(linalg.det)(x), [[x[1, 1], -2.0], [-2.0, 1.0]], rtol=1e-14)
    low = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0 + 1e-13], [1.0, 1.0, 1.0]])
    exact = [
        [np.linalg.det(np.delete(np.delete(low, i, 0), j, 1)) * (-1) ** (i + j) for j in range(3)] for i in range(3)
    ]
    np.testing.assert_allclose(dynamic.grad(linalg.det)(low), exact, atol=1e-14)
    tiny = dynamic.grad(linalg.det)(np.diag([1e-200, 1e-150, 1.0]))  # of which the determinant is too small a number
    np.testing.assert_allclose(np.diag(tiny), [1e-150, 1e-200, 0], rtol=1e-12)


@each_engine
def test_equal_eigenvalues_and_singular_values_still_have_gradients(engine):
    identity = np.eye(3)
    for f, slope in (
        (lambda x: g.sum(linalg.eigvalsh(x) ** 2), 2 * identity),
        (lambda x: linalg.matrix_norm(x, ord="nuc"), identity),
        (lambda x: g.sum(linalg.svd(x, full_matrices=False).S ** 2), 2 * identity),
    ):
        np.testing.assert_allclose(gradients(engine, f, identity)[0], slope, atol=1e-14)


@each_engine
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_vectors_of_equal_values_have_no_gradient_and_none_is_made_up(engine):
    def root(x):  # has a gradient, but not by this way
        w, v = linalg.eigh(x)
        return g.sum((v * g.sqrt(w)) @ v.mT * weights((3, 3)))

    def polar(x):
        u, s, vh = linalg.svd(x)
        return g.sum((u * s) @ vh * weights((3, 3)))

    for f in (root, polar):
        assert not np.all(np.isfinite(gradients(engine, f, np.eye(3))[0]))
        check_grads(f, [S], order=2, engine=ENGINES[engine])


@each_engine
def test_what_completes_a_basis_has_no_gradient(engine):
    for f, mode in ((linalg.qr, {"mode": "complete"}), (linalg.svd, {"full_matrices": True})):
        with pytest.raises(NotDifferentiableError, match="full basis"):
            gradients(engine, lambda x, f=f, mode=mode: g.sum(f(x, **mode)[0] ** 2), HIGH)
    # The rest of the same results has.
    check_grads(lambda x: linalg.svd(x).S, [HIGH], order=2, engine=ENGINES[engine])
    check_grads(lambda x: linalg.qr(x, mode="complete").R, [HIGH], order=2, engine=ENGINES[engine])


@each_engine
def test_gradients_of_symmetric_matrices_are_symmetric(engine):
    for f in (linalg.cholesky, lambda x: linalg.eigh(x).eigenvalues, lambda x: linalg.eigh(x).eigenvectors ** 2):
        (slope,) = gradients(engine, weighted(g, f), SPD)
        np.testing.assert_allclose(slope, np.swapaxes(slope, -1, -2), atol=1e-13)


@pytest.mark.parametrize("order", [0.5, 2, 3, -2])
@each_engine
def test_a_norm_of_one_number_is_its_size_though_its_square_is_none(engine, order):
    x = np.array([[1e30], [-2e-30], [3.0]], np.float32)
    found = run(engine, lambda x: g.linalg.vector_norm(x, axis=1, ord=order), x)
    np.testing.assert_array_equal(found, np.abs(x[:, 0]))
    slopes = gradients(engine, lambda x: g.sum(g.linalg.vector_norm(x, axis=1, ord=order)), x)[0]
    np.testing.assert_array_equal(slopes, np.sign(x))
