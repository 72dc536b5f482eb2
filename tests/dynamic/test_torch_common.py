"""Functions of PyTorch's that programs use now and then: values by NumPy and SciPy, gradients by finite differences."""

from __future__ import annotations

import re
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import dynamic as torch
import static
from graphs.errors import GraphError, LinAlgError, OptionError, ShapeError
from graphs.frontends.torch import functions, linalg
from graphs.frontends.torch.methods import ABSENT
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, run
from tests.helpers.together import together

R = np.random.default_rng(5)
A, B = R.normal(size=(2, 4, 4)) + 3 * np.eye(4), R.normal(size=(2, 4, 3))
TALL, WIDE = R.normal(size=(5, 3)), R.normal(size=(3, 5))
DEFINITE = A @ A.swapaxes(-1, -2)
NAN = np.where(R.random((4, 7)) < 0.3, np.nan, R.normal(size=(4, 7)))


def same(found: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)


# The function, its inputs, what it gives, and whether gradients are checked in all inputs.
CASES: dict[str, tuple[Any, tuple[Any, ...], Any, bool]] = {
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=False), (A[0], B[0]),
        scipy.linalg.solve_triangular(A[0], B[0], lower=True), True,
    ),
    "solve_triangular-right": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True, left=False, unitriangular=True), (A[0], B[0].T),
        scipy.linalg.solve_triangular(A[0].T, B[0], lower=True, unit_diagonal=True).T, True,
    ),
    "cholesky_solve": (
        functions.cholesky_solve, (B, np.linalg.cholesky(DEFINITE)),
        np.linalg.solve(DEFINITE, B), False,
    ),
    "cholesky_inverse": (
        functions.cholesky_inverse, (np.linalg.cholesky(DEFINITE[0]),), np.linalg.inv(DEFINITE[0]), False,
    ),
    "cholesky_ex": (lambda a: linalg.cholesky_ex(a).L, (DEFINITE,), np.linalg.cholesky(DEFINITE), True),
    "lu-L": (lambda a: linalg.lu(a).L, (TALL,), scipy.linalg.lu(TALL)[1], True),
    "lu-U": (lambda a: linalg.lu(a).U, (WIDE,), scipy.linalg.lu(WIDE)[2], True),
    "lu-product": (lambda a: linalg.lu(a).P @ linalg.lu(a).L @ linalg.lu(a).U, (A,), A, True),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), (A, B), np.linalg.solve(A, B), True),
    "lu_solve-turned": (
        lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, left=False, adjoint=True), (A, B.swapaxes(-1, -2)),
        (np.linalg.solve(A, B)).swapaxes(-1, -2), True,
    ),
    "lstsq": (lambda a, b: linalg.lstsq(a, b).solution, (TALL, B[0, [0, 1, 2, 3, 0]]), None, True),
    "matrix_exp": (functions.matrix_exp, (A,), scipy.linalg.expm(A), True),
    "pinv-atol": (lambda a: linalg.pinv(a, atol=1e-3), (TALL,), np.linalg.pinv(TALL), True),
    "erfinv": (functions.erfinv, (np.linspace(-0.9, 0.9, 7),), scipy.special.erfinv(np.linspace(-0.9, 0.9, 7)), True),
    "quantiles": (
        lambda x: functions.quantile(x, np.array([0.1, 0.6]), 0), (A[0],), np.quantile(A[0], [0.1, 0.6], axis=0), True,
    ),
    "softmax-empty": (lambda x: functions.softmax(x, 1), (np.zeros((2, 0)),), np.zeros((2, 0)), True),
}  # fmt: skip


@together("name", CASES)
def test_values_and_gradients_in_both_engines(name: str) -> None:
    f, inputs, wanted, has_gradient = CASES[name]
    if name == "lstsq":
        wanted = np.linalg.lstsq(*inputs)[0]
    same(f(*inputs), wanted, 1e-9)
    for engine in ENGINES:
        same(run(engine, f, *inputs), wanted, 1e-9)
        if has_gradient:
            check_grads(f, inputs, 1, engine=ENGINES[engine], rtol=1e-4, atol=1e-5)


def test_what_fails_is_said_by_a_number_or_an_error() -> None:
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item() == 2
    with pytest.raises(LinAlgError, match="positive definite"):
        torch.linalg.cholesky_ex(-singular, check_errors=True)
    with pytest.raises(LinAlgError, match="singular"):
        torch.linalg.solve(singular, torch.ones(2))
    for refused in ("eig", "eigvals", "ldl_factor", "inv_ex", "cond", "multi_dot", "tensorinv", "vander"):
        with pytest.raises(AttributeError, match=r"use |write "):
            getattr(torch.linalg, refused)


def test_one_triangle_of_symmetric_matrices_is_read() -> None:
    x = torch.tensor([[2.0, 9.0], [1.0, 3.0]], dtype=torch.float64)
    same(torch.linalg.eigvalsh(x).numpy(), np.linalg.eigvalsh([[2.0, 1], [1, 3]]))
    same(torch.linalg.eigh(x, UPLO="U")[0].numpy(), np.linalg.eigvalsh([[2.0, 9], [9, 3]]))
    same(torch.linalg.pinv(x, hermitian=True).numpy(), np.linalg.inv([[2.0, 1], [1, 3]]))
    assert torch.linalg.matrix_rank(torch.ones(3, 3), hermitian=True).item() == 1
    assert torch.linalg.matrix_rank(torch.diag(torch.tensor([1.0, 0.1])), atol=0.5).item() == 1
    with pytest.raises(OptionError, match="UPLO is 'L' or 'U'"):
        torch.linalg.eigh(x, "X")


def test_results_go_where_out_says() -> None:
    x, into, nothing = torch.tensor([[3.0, 1.0]]), torch.zeros(1, 2), torch.empty(0)
    view = into[0]
    assert torch.add(x, 1, out=into) is into
    assert view.tolist() == [4, 2]
    assert torch.cat([x, x], out=nothing).tolist() == nothing.tolist() == [[3, 1], [3, 1]]
    values, places = torch.zeros(1), torch.zeros(1, dtype=torch.int64)
    torch.max(x, 1, out=(values, places))
    assert (values.tolist(), places.tolist()) == ([3], [0])
    for call, words in (
        (lambda: torch.add(x, 1, out=torch.zeros(3)), "out= has the shape"),
        (lambda: torch.exp(x.clone().requires_grad_(), out=into), "no history"),
        (lambda: torch.max(x, 1, out=values), "takes 2 tensors"),
        (lambda: torch.add(x, 1, out=3), "takes a tensor"),
    ):
        with pytest.raises(OptionError, match=words):
            call()


def test_every_function_has_its_own_name() -> None:
    for space in (functions, linalg, torch.special):
        names = [name for name in space.__all__ if type(getattr(space, name)).__name__ == "function"]
        assert [name for name in names if getattr(space, name).__name__ != name] == []
    with pytest.raises(GraphError, match=r"^arccos"):
        torch.arccos(torch.ones(2), torch.ones(2), 3)


def test_rows_are_found_and_counted() -> None:
    x = torch.tensor([[1, 2, 2], [1, 2, 2], [0, 3, 3]])
    values, inverse, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([[0, 3, 3], [1, 2, 2]], [1, 1, 0], [1, 2])
    assert x.unique(dim=1).tolist() == [[1, 2], [1, 2], [0, 3]]
    assert x.unique_consecutive(dim=0).tolist() == [[1, 2, 2], [0, 3, 3]]
    rows, wanted = np.sort(R.normal(size=(3, 6))), R.normal(size=(3, 4))
    found = torch.searchsorted(torch.tensor(rows), torch.tensor(wanted), right=True)
    assert found.tolist() == [np.searchsorted(a, b, "right").tolist() for a, b in zip(rows, wanted, strict=True)]
    with pytest.raises(ShapeError, match="give a row of values for each"):
        torch.searchsorted(torch.tensor(rows), torch.ones(2, 4))
    assert torch.mode(torch.tensor([[1, 3, 3, 2, 2]])).values.tolist() == [2]
    assert torch.mode(torch.tensor([[5.0, 3, 3]]), 1) == (torch.tensor([3.0]), torch.tensor([2]))


def test_places_named_by_masks_are_written() -> None:
    x, mask = torch.zeros(2, 3), torch.tensor([[True, False, True], [False, True, False]])
    assert x.index_put((mask,), torch.tensor([1.0, 2.0, 3.0])).tolist() == [[1, 0, 2], [0, 3, 0]]
    added = x.index_put((torch.tensor([0, 0]),), torch.tensor(2.0), accumulate=True)
    assert added.tolist() == [[4, 4, 4], [0, 0, 0]]
    assert x.index_put((mask,), torch.tensor(1.0), accumulate=True).tolist() == mask.float().tolist()


def test_small_functions() -> None:
    assert torch.gcd(torch.tensor([12, -18]), 8).tolist() == [4, 2]
    assert torch.lcm(torch.tensor([4, 6]), torch.tensor([6, 4])).tolist() == [12, 12]
    assert not torch.is_complex(torch.ones(1))
    assert torch.real(x := torch.ones(2)) is x is torch.conj(x)
    np.testing.assert_allclose(torch.cov(torch.tensor(TALL.T)).numpy(), np.cov(TALL.T))
    with pytest.raises(OptionError, match="weights of columns"):
        torch.cov(torch.tensor(TALL), fweights=torch.tensor([1, 2, 3]))
    assert torch.exp_(torch.zeros(2)).tolist() == [1, 1]
    assert torch.ones(1).atan2_(torch.ones(1)).item() == pytest.approx(np.pi / 4)
    assert torch.tensor([3.0]).lgamma_().item() == pytest.approx(np.log(2))
    assert torch.tensor([[2.0, 0], [0, 4]]).det().item() == 8
    assert static.jit(lambda a: linalg.lu_factor(a).pivots)(A[0]).dtype == np.int32


@pytest.mark.parametrize("name", ABSENT)
def test_a_name_that_is_not_there_says_what_to_use(name: str) -> None:
    words = re.escape(f"{name!r}: {ABSENT[name]}")
    for space in (torch, torch.Tensor, torch.ones(1)):
        with pytest.raises(AttributeError, match=words):
            getattr(space, name)
    with pytest.raises(AttributeError, match=words):
        static.jit(lambda x: getattr(x, name))(torch.ones(1))


def test_the_mode_that_a_statement_sets_lasts() -> None:
    x = torch.ones(1, requires_grad=True)

    def records() -> bool:
        return (x * 1).requires_grad

    def noted(gen: bool) -> Any:
        @torch.set_grad_enabled(gen)
        def called() -> bool:
            return records()

        return called

    with torch.no_grad():
        torch.set_grad_enabled(True)
        assert records()
        with torch.set_grad_enabled(False):
            assert not records()
        assert records()
    assert records()
    assert not noted(False)()
    torch.set_grad_enabled(mode=False)
    try:
        assert not records()
        assert noted(True)()
        with torch.enable_grad():
            assert records()
        assert not records()
        other: list[bool] = []
        thread = threading.Thread(target=lambda: other.append(records()))
        thread.start()
        thread.join()
        assert other == [True]  # a mode is that of a thread
    finally:
        torch.set_grad_enabled(True)
    assert records()


@pytest.mark.parametrize(
    "decorator",
    [torch.no_grad, torch.inference_mode, partial(torch.set_grad_enabled, False), partial(lambda: torch.no_grad)],
)
def test_a_generator_runs_under_its_mode_step_by_step(decorator: Any) -> None:
    seen: list[Any] = []

    @decorator()
    def steps() -> Any:
        try:
            sent = yield torch.is_grad_enabled()
            seen.append((sent, torch.is_grad_enabled()))
            try:
                yield 1
            except ValueError:
                yield torch.is_grad_enabled()
        finally:
            seen.append(torch.is_grad_enabled())
        return "end"

    made = steps()
    assert next(made) is False
    assert torch.is_grad_enabled()
    assert made.send("sent") == 1
    assert made.throw(ValueError()) is False
    with pytest.raises(StopIteration, match="end"):
        next(made)
    assert seen == [("sent", False), False]
    other = steps()
    next(other)
    other.close()
    assert seen[2:] == [False]
    assert torch.is_grad_enabled()
