"""graphs.special, graphs.stats and the odeint of graphs.integrate: values, gradients and what is refused."""

from __future__ import annotations

import functools
import itertools
import math
import sys

import autograd
import autograd.numpy as anp
import autograd.scipy.special as autograd_special
import autograd.scipy.stats as autograd_stats
import numpy as np
import pytest
import scipy.special
import scipy.stats
from autograd.builtins import tuple as autograd_tuple
from autograd.scipy.integrate import odeint as autograd_odeint

import dynamic
import graphs as g
from graphs import special, stats
from graphs.errors import DTypeError, LinAlgError, NotDifferentiableError, ShapeError
from graphs.integrate import odeint
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, each_engine, gradients, run
from tests.helpers.slow import mostly_slow

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(4, 3)) * 2
P, Q = RANDOM.uniform(0.3, 4, size=(2, 4, 3))
U = RANDOM.uniform(0.05, 0.95, size=(4, 3))
SHARES = RANDOM.dirichlet(np.ones(3), size=5).T
COUNTS = np.array([0.0, 1, 4, 9])
COV = np.cov(RANDOM.normal(size=(3, 9)))

# The function, its inputs, and those that have a gradient.
SPECIAL = {
    "gammaln": ((X,), (0,)),
    "digamma": ((X,), (0,)),
    "psi": ((X,), (0,)),
    "gamma": ((X,), (0,)),
    "rgamma": ((X,), (0,)),
    "beta": ((P, Q), (0, 1)),
    "betaln": ((P, Q), (0, 1)),
    "gammasgn": ((X,), ()),
    "erf": ((X,), (0,)),
    "erfc": ((X,), (0,)),
    "erfcx": ((X,), (0,)),
    "erfinv": ((U * 2 - 1,), (0,)),
    "erfcinv": ((U * 2,), (0,)),
    "entr": ((P,), (0,)),
    "i0": ((X,), (0,)),
    "i0e": ((X,), (0,)),
    "i1": ((X,), (0,)),
    "i1e": ((X,), (0,)),
    "ndtri": ((U,), (0,)),
    "zeta": ((P + 1.1, Q), (1,)),
    "expit": ((X,), (0,)),
    "logit": ((U,), (0,)),
    "logsumexp": ((X,), (0,)),
    "ndtr": ((X,), (0,)),
    "log_ndtr": ((X * 8,), (0,)),
    "xlogy": ((P, Q), (0, 1)),
    "xlog1py": ((P, Q), (0, 1)),
    "gammainc": ((P, Q), (1,)),
    "gammaincc": ((P, Q), (1,)),
    "betainc": ((P, Q, U), (2,)),
    "stdtr": ((P, X), (1,)),
    "softmax": ((X,), (0,)),
}
STATS = {
    "norm.logpdf": ((X, P, Q), (0, 1, 2)),
    "norm.pdf": ((X, P, Q), (0, 1, 2)),
    "norm.cdf": ((X, P, Q), (0, 1, 2)),
    "norm.logcdf": ((X * 9, P, Q), (0, 1, 2)),
    "norm.sf": ((X, P, Q), (0, 1, 2)),
    "norm.logsf": ((X * 9, P, Q), (0, 1, 2)),
    "multivariate_normal.logpdf": ((X, X[0], COV), (0, 1, 2)),
    "multivariate_normal.pdf": ((X, X[0], COV), (0, 1, 2)),
    "multivariate_normal.entropy": ((X[0], COV), (1,)),
    "t.logpdf": ((X, P, Q, U), (0, 1, 2, 3)),
    "t.pdf": ((X, P, Q, U), (0, 1, 2, 3)),
    "t.cdf": ((X, P, Q, U), (0, 2, 3)),
    "t.logcdf": ((X, P, Q, U), (0, 2, 3)),
    "beta.logpdf": ((U, P, Q), (0, 1, 2)),
    "beta.pdf": ((U, P, Q), (0, 1, 2)),
    "beta.cdf": ((U, P, Q), (0,)),
    "gamma.logpdf": ((Q, P), (0, 1)),
    "gamma.pdf": ((Q, P), (0, 1)),
    "gamma.cdf": ((Q, P), (0,)),
    "chi2.logpdf": ((Q, P), (0, 1)),
    "chi2.pdf": ((Q, P), (0, 1)),
    "chi2.cdf": ((Q, P), (0,)),
    "poisson.logpmf": ((COUNTS, P[:, 0]), (1,)),
    "poisson.pmf": ((COUNTS, P[:, 0]), (1,)),
    "poisson.cdf": ((COUNTS, P[:, 0]), (1,)),
    "dirichlet.logpdf": ((SHARES, P[0]), (1,)),
    "dirichlet.pdf": ((SHARES, P[0]), (1,)),
}


def found_in(space, name):
    return functools.reduce(getattr, name.split("."), space)


CASES = [(special, scipy.special, *case) for case in SPECIAL.items()]
CASES += [(stats, scipy.stats, *case) for case in STATS.items()]
each_case = pytest.mark.parametrize(
    ("ours", "theirs", "name", "case"),
    mostly_slow(itertools.starmap(pytest.param, CASES), 20),
    ids=[*SPECIAL, *STATS],
)


@each_case
def test_values_are_scipys_and_gradients_finite_differences(ours, theirs, name, case):
    inputs, positions = case
    f = found_in(ours, name)
    exact = found_in(theirs, name)(*inputs)
    np.testing.assert_allclose(f(*inputs), exact, rtol=1e-11, atol=1e-13)
    for engine in ENGINES:
        np.testing.assert_allclose(run(engine, f, *inputs), exact, rtol=1e-11, atol=1e-13)
        if positions:
            second = 1 if "cdf" in name or name in ("log_ndtr", "logsf") else 2
            check_grads(f, inputs, second, engine=ENGINES[engine], argnums=positions, rtol=1e-4, atol=1e-5)


def test_inverses_and_bessel_functions_at_their_ends():
    deep = np.array([1e-300, 1e-30, 1e-9, 0.2, 0.5, 0.9, 1.0, 1.7, 2 - 1e-12])
    np.testing.assert_allclose(special.erfcinv(deep), scipy.special.erfcinv(deep), rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(special.ndtri(deep / 2), scipy.special.ndtri(deep / 2), rtol=1e-14, atol=1e-16)
    x = np.array([-1 + 1e-15, -0.9, -1e-200, 0.0, 1e-9, 0.4999, 0.5, 1 - 1e-16])
    np.testing.assert_allclose(special.erfinv(x), scipy.special.erfinv(x), rtol=1e-14)
    np.testing.assert_array_equal(special.erfinv(np.array([-1.0, 1, 1.1, np.nan])), [-np.inf, np.inf, np.nan, np.nan])
    far = np.array([-700.0, -300, -20, -19.99, -1e-8, 0, 1e-8, 3, 19.99, 20, 50, 700])
    for name in ("i0", "i0e", "i1", "i1e"):
        np.testing.assert_allclose(getattr(special, name)(far), getattr(scipy.special, name)(far), rtol=2e-14)
    ends = np.array([-27.0, -5, -0.46, 0, 0.46, 0.47, 4, 4.1, 30, 1e9, np.inf])
    np.testing.assert_allclose(special.erfcx(ends), scipy.special.erfcx(ends), rtol=2e-14)
    np.testing.assert_array_equal(special.entr(np.array([0.0, -1, np.inf])), [0, -np.inf, -np.inf])
    s, q = np.array([1.0, 0.5, 2, 2, 3, 2.5]), np.array([3.0, 3, 0, -1, -1.5, -0.5])
    np.testing.assert_allclose(special.zeta(s, q), scipy.special.zeta(s, q), rtol=1e-14)
    assert special.zeta(np.array([2.0])) == pytest.approx(math.pi**2 / 6)


OF_AUTOGRAD = {
    **{name: (autograd_special, case) for name, case in SPECIAL.items() if hasattr(autograd_special, name)},
    **{name: (autograd_stats, case) for name, case in STATS.items() if name not in ("t.logcdf", "norm.sf")},
}
# In autograd: of one vector at a time; without a gradient in x; for whole df alone.
DIFFERS = {"dirichlet.logpdf", "dirichlet.pdf", "t.cdf", "chi2.logpdf", "chi2.pdf"}


@pytest.mark.parametrize("name", mostly_slow(sorted(OF_AUTOGRAD.keys() - DIFFERS), 12))
def test_gradients_are_autograds(name):
    space, (inputs, positions) = OF_AUTOGRAD[name]
    theirs = found_in(space, name)
    f = found_in(special if space is autograd_special else stats, name)
    for at in positions:
        expected = autograd.grad(lambda *args: anp.sum(theirs(*args)), at)(*inputs)
        for engine in ENGINES.values():
            found = engine.grad(lambda *args: g.sum(f(*args)), at)(*inputs)
            if np.shape(found) == COV.shape and "multivariate" in name:
                expected = (expected + expected.T) / 2
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_polygamma_of_every_order_and_far_away():
    points = np.concatenate([RANDOM.uniform(-20, 1000, 300), [1, 2, 1e-6, 1e5, np.inf]])
    for n in (0, 1, 2, 5):
        exact = scipy.special.polygamma(n, points)
        np.testing.assert_allclose(special.polygamma(n, points), exact, rtol=1e-12, atol=1e-12)
    assert special.polygamma(0, 0.0) == -np.inf
    assert np.isnan(special.digamma(-2.0))
    assert special.polygamma(1, -1001.5) == pytest.approx(9.86860639718018, rel=1e-12)
    assert np.isnan(special.polygamma(2, -1001.5))
    assert special.polygamma(1, np.float32(2)).dtype == np.float32
    check_grads(lambda x: special.polygamma(1, x), [P], 2, engine=dynamic)


def test_poles_and_ends():
    np.testing.assert_array_equal(
        special.gammaln(np.array([0.0, -1, np.inf, 1, 2, 1e306])), [np.inf] * 3 + [0, 0, np.inf]
    )
    np.testing.assert_array_equal(special.gammainc(2.0, np.array([0.0, np.inf, -1])), [0, 1, np.nan])
    np.testing.assert_array_equal(special.gammaincc(2.0, np.array([0.0, np.inf, np.nan])), [1, 0, np.nan])
    np.testing.assert_array_equal(special.betainc(2.0, 3.0, np.array([0.0, 1, 1.5])), [0, 1, np.nan])
    np.testing.assert_array_equal(special.xlogy(np.array([0.0, 0]), np.array([0.0, np.nan])), [0, np.nan])
    np.testing.assert_array_equal(special.xlog1py(0.0, -1.0), 0)
    assert special.gammaincc(10.0, 200.0) == pytest.approx(float(scipy.special.gammaincc(10, 200)), rel=1e-11)
    assert special.gammainc(2e5, 2e5) + special.gammaincc(2e5, 2e5) == pytest.approx(1)
    assert special.gammainc(2e5, 2e5) == pytest.approx(0.5 + 1 / (3 * np.sqrt(2 * np.pi * 2e5)), rel=1e-6)
    large = {  # by mpmath
        (1e12, 1e12 - 5e6): (2.866396783250204e-07, 0.9999997133603217),
        (3e5, 3e5 + 3e3): (0.9999999761505922, 2.3849407735585528e-08),
        (1e20, 1e20): (0.500000000013298, 0.499999999986702),
        (np.inf, 3.0): (0, 1), (1e6, 0.0): (0, 1), (1e6, np.inf): (1, 0), (np.inf, np.inf): (np.nan, np.nan),
    }  # fmt: skip
    small = {  # where all but nothing lies below x, by mpmath
        (1e-30, 0.9): 2.6018393932599963e-31, (1e-16, 1e-300): 6.901983122332884e-14,
        (1e-12, 0.5): 5.597735947764542e-13, (1e-12, 1.0): 2.1938393439574474e-13,
        (0.3, 0.9): 0.097747351970330455, (1.0, 1.05): 0.3499377491111553,
    }  # fmt: skip
    for (a, x), share in small.items():
        np.testing.assert_allclose(special.gammaincc(a, x), share, rtol=1e-13)
    for (a, x), shares in large.items():
        np.testing.assert_allclose((special.gammainc(a, x), special.gammaincc(a, x)), shares, rtol=1e-12)
    np.testing.assert_array_equal(stats.poisson.pmf(np.array([-1, 1.5]), 2.0), [0, 0])
    np.testing.assert_array_equal(stats.beta.logpdf(np.array([-0.1, 1.1]), 2.0, 2.0), [-np.inf] * 2)
    np.testing.assert_array_equal(stats.gamma.pdf(-1.0, 2.0), 0)
    np.testing.assert_array_equal(stats.poisson.cdf(-1, 2.0), 0)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_tails_of_the_normal_distribution_in_every_dtype(kind):
    x = np.linspace(-25, 8, 67).astype(kind)
    found = special.log_ndtr(x)
    assert found.dtype == kind
    exact = scipy.special.log_ndtr(x.astype(np.float64))
    np.testing.assert_allclose(
        found, exact, rtol={2: 5e-3, 4: 3e-6, 8: 1e-12}[x.itemsize], atol=1e-3 if kind == np.float16 else 0
    )


@each_engine
def test_numbers_take_the_dtype_of_the_arrays(engine):
    x = X.astype(np.float32)
    for f in (stats.norm.logpdf, lambda x: stats.norm.cdf(x, 0.5, scale=2), lambda x: stats.t.logpdf(x, 3)):
        assert run(engine, f, x).dtype == np.float32
    assert stats.norm.pdf(0.0) == pytest.approx(1 / math.sqrt(2 * math.pi))


@each_engine
def test_sums_of_exponentials_with_weights(engine):
    weights = np.where(U > 0.5, 0, P)
    for options in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": 0}):
        found = run(engine, lambda x, b, o=options: special.logsumexp(x, b=b, **o), X * 500, weights + 1e-9)
        np.testing.assert_allclose(found, scipy.special.logsumexp(X * 500, b=weights + 1e-9, **options), rtol=1e-12)
    check_grads(lambda x, b: special.logsumexp(x, axis=1, b=b), [X, P], 2, engine=ENGINES[engine])
    huge = np.array([1e5, 0.0])
    assert special.logsumexp(huge, b=np.array([0.0, 2.0])) == pytest.approx(math.log(2))


@each_engine
def test_gamma_functions_of_several_dimensions(engine):
    exact = [scipy.special.multigammaln(v, 3) for v in P[0] + 3]
    np.testing.assert_allclose(run(engine, lambda a: special.multigammaln(a, 3), P[0] + 3), exact, rtol=1e-13)
    check_grads(lambda a: special.multigammaln(a, 3), [P[0] + 3], 2, engine=ENGINES[engine])


@each_engine
def test_covariances_of_every_form(engine):
    exact = scipy.stats.multivariate_normal.logpdf
    for mean, cov in ((X[0], 2.0), (X[0], P[0]), (None, COV)):
        found = run(engine, lambda x, m=mean, c=cov: stats.multivariate_normal.logpdf(x, m, c), X)
        np.testing.assert_allclose(found, exact(X, mean, np.diag(cov) if np.ndim(cov) == 1 else cov), rtol=1e-12)
    found = run(engine, lambda x: stats.multivariate_normal.logpdf(x, 0.5, 2.0), X[0])
    np.testing.assert_allclose(found, exact(X[0], 0.5, 2.0), rtol=1e-12)
    assert run(engine, lambda x: stats.multivariate_normal.logpdf(x, X[0], COV), X[1]).shape == ()


REFUSED = [
    (lambda x: special.gammainc(x, 1.0), NotDifferentiableError, "last argument"),
    (lambda x: special.betainc(x, 1.0, 0.5), NotDifferentiableError, "stop_gradient"),
    (lambda x: stats.t.cdf(0.5, x), NotDifferentiableError, "last argument"),
    (lambda x: special.multigammaln(x, 0), ShapeError, "multigammaln"),
    (lambda x: stats.multivariate_normal.logpdf(x, x, np.eye(2)), ShapeError, "covariance"),
    (lambda x: stats.multivariate_normal.logpdf(x, x, -np.eye(3)), LinAlgError, "positive definite"),
    (lambda x: stats.multivariate_normal.logpdf(x, x, np.eye(3), True), ShapeError, "singular"),
    (lambda x: odeint(lambda y, t: y[:2], x, np.arange(3.0)), ShapeError, "slope"),
    (lambda x: odeint(lambda y, t: y, x, np.arange(3)), DTypeError, "times are floats"),
    (lambda x: odeint(lambda y, t: y, x, np.ones((2, 2))), ShapeError, "one axis"),
]


@each_engine
@pytest.mark.parametrize(("f", "error", "told"), REFUSED, ids=[f"{i} {told}" for i, (*_, told) in enumerate(REFUSED)])
def test_what_is_refused_says_so(engine, f, error, told):
    with pytest.raises(error, match=told):
        gradients(engine, lambda x: g.sum(f(x) * 1.0), np.array([1.0, 2, 3]))


# Differential equations ---------------------------------------------------------------------------------------------

TIMES = np.linspace(0, 1.5, 5)
MATRIX = np.array([[-0.1, 2.0], [-2.0, -0.1]])
START = np.array([2.0, 0.3])


def spiral(np, y, t, a):
    return np.dot(y**3, a) - 0.1 * t


def squares(namespace, solver, tight):
    def total(a, y0, t):
        found = solver(functools.partial(spiral, namespace), y0, t, autograd_tuple((a,)), rtol=tight, atol=tight)
        return namespace.sum(found**2)

    return total


@pytest.mark.slow
@each_engine
def test_gradients_of_a_solution_are_autograds(engine):
    total = squares(g, odeint, 1e-10)
    expected = autograd.grad(squares(anp, autograd_odeint, 1e-10), (0, 1, 2))(MATRIX, START, TIMES)
    for one, other in zip(gradients(engine, total, MATRIX, START, TIMES), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@each_engine
def test_solutions_are_those_in_closed_form(engine):
    for times in (np.array([0.0, 0.5, 2.0]), np.array([1.0, 0.25, -1.0])):  # also back in time
        found = run(engine, lambda y, t: odeint(lambda y, t: -y, y, t), START, times)
        np.testing.assert_allclose(found, START * np.exp(times[0] - times)[:, None], rtol=1e-7)
    found = run(engine, lambda t: odeint(lambda t, y: 2 * t + 0 * y, np.zeros(1), t, tfirst=True), TIMES)
    np.testing.assert_allclose(found[:, 0], TIMES**2, rtol=1e-9, atol=1e-9)
    coarse = run(engine, lambda y, t: odeint(lambda y, t: -y, y, t, rtol=1e-3), START.astype(np.float32), TIMES)
    assert coarse.dtype == np.float32


@pytest.mark.parametrize("engine", mostly_slow(ENGINES, 1))
def test_what_no_number_of_steps_reaches_is_nan(engine):
    found = run(engine, lambda t: odeint(lambda y, t: y**2, np.ones(1), t), np.array([0.0, 0.5, 2.0, 3.0]))
    np.testing.assert_allclose(found[:2, 0], [1, 2], rtol=1e-6)  # it is infinite at 1
    assert np.isnan(found[2:]).all()


AT_ENDS = {  # f, x, its value and its gradient there: the limits
    "log_ndtr at 0": (special.log_ndtr, 0.0, math.log(0.5), math.sqrt(2 / math.pi)),
    "entr at 0": (special.entr, 0.0, 0.0, math.inf),
    "entr at infinity": (special.entr, math.inf, -math.inf, -math.inf),
    "entr below 0": (special.entr, -1.0, -math.inf, math.nan),
    "entr of NaN": (special.entr, math.nan, math.nan, math.nan),
    "xlogy of 0": (lambda x: special.xlogy(x, 2.0), 0.0, 0.0, math.log(2)),
    "xlogy of 0 and 0": (lambda x: special.xlogy(x, 0.0), 0.0, 0.0, 0.0),
    "xlogy of 0 and infinity": (lambda x: special.xlogy(x, np.inf), 0.0, 0.0, 0.0),
    "xlogy of 0 and NaN": (lambda x: special.xlogy(x, np.nan), 0.0, math.nan, math.nan),
    "xlogy in y": (lambda y: special.xlogy(0.0, y), 3.0, 0.0, 0.0),
    "xlog1py of 0": (lambda x: special.xlog1py(x, 1.0), 0.0, 0.0, math.log(2)),
    "xlog1py of 0 and -1": (lambda x: special.xlog1py(x, -1.0), 0.0, 0.0, 0.0),
    "xlog1py of 0 and NaN": (lambda x: special.xlog1py(x, np.nan), 0.0, math.nan, math.nan),
    "torch.xlogy of 0": (lambda x: dynamic.xlogy(x, 2.0), 0.0, 0.0, math.log(2)),
    "torch.logit at 0": (dynamic.logit, 0.0, -math.inf, math.inf),
    "torch.logit at 1": (dynamic.logit, 1.0, math.inf, math.inf),
    "torch.logit below 0": (dynamic.logit, -1.0, math.nan, math.nan),
    "torch.logit between": (dynamic.logit, 0.5, 0.0, 4.0),
    "torch.xlog1py of 0": (lambda x: dynamic.special.xlog1py(x, 1.0), 0.0, 0.0, math.log(2)),
    "fmod of an exact rest": (lambda x: dynamic.fmod(x, 0.2163), -3.8949, -3.8949 % -0.2163, 1.0),
    "fmod at 0": (lambda x: dynamic.fmod(x, 3.0), 0.0, 0.0, 1.0),
    "fmod of infinity": (lambda x: dynamic.fmod(x, math.inf), math.inf, math.nan, 1.0),
    "fmod by infinity": (lambda x: dynamic.fmod(x, -math.inf), -3.0, -3.0, 1.0),
    "remainder near a multiple": (lambda y: g.remainder(-0.25, y), -0.001, np.fmod(-0.25, 0.001), -249.0),
    "quotient cut to 0": (lambda y: dynamic.div(3.0, y, rounding_mode="trunc"), 0.0, math.inf, 0.0),
    "the float below infinity": (lambda x: dynamic.nextafter(x, g.zeros_like(x)), math.inf, sys.float_info.max, 1.0),
    "hardsigmoid of NaN": (dynamic.nn.functional.hardsigmoid, math.nan, math.nan, 0.0),
    "hardsigmoid at its limit": (dynamic.nn.functional.hardsigmoid, 3.0, 1.0, 0.0),
    "an infinite limit": (lambda low: g.clip(np.zeros(1), low, None), math.inf, math.inf, 1.0),
    "no limit": (lambda high: g.clip(np.zeros(1), None, high), -math.inf, -math.inf, 1.0),
    "abs of NaN": (g.abs, math.nan, math.nan, 0.0),
    "abs of 0": (g.abs, -0.0, 0.0, 0.0),
    "abs of infinity": (g.abs, -math.inf, math.inf, -1.0),
    "sign of NaN": (dynamic.sign, math.nan, 0.0, 0.0),
}


@each_engine
@pytest.mark.parametrize("name", AT_ENDS)
def test_values_and_gradients_where_a_guard_switches(engine, name):
    f, x, value, slope = AT_ENDS[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(engine, f, np.array([x])), [value])
        np.testing.assert_allclose(gradients(engine, lambda x: g.sum(f(x)), np.array([x]))[0], [slope])


@pytest.mark.parametrize("name", ["log_ndtr", "erf", "erfc", "expit", "i0", "i1", "ndtr", "erfcx"])
def test_gradients_at_0_and_1_are_those_on_both_sides(name):
    f = getattr(special, name)
    for x in (-1.0, 0.0, 1.0):
        near = [gradients("dynamic", lambda x: g.sum(f(x)), np.array([x + gap]))[0] for gap in (-1e-7, 0.0, 1e-7)]
        np.testing.assert_allclose(near[1], (near[0] + near[2]) / 2, rtol=1e-6, atol=1e-9)
