"""pad: every mode against NumPy's, however wide, in both engines, with sizes that vary, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs import ShapeError
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run

MODES = {"edge": "edge", "replicate": "edge", "reflect": "reflect", "symmetric": "symmetric", "wrap": "wrap"}
MODES["circular"] = "wrap"
each_engine = pytest.mark.parametrize("engine", ENGINES)
each_mode = pytest.mark.parametrize("mode", MODES)
X = np.arange(12.0).reshape(3, 4)


@given(
    st.sampled_from(sorted(MODES)), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2)
)
def test_any_width_is_numpys(mode, widths):
    for x in (X, X[:1, :2], X[:2, :1].astype(int)):
        np.testing.assert_array_equal(g.pad(x, widths, mode=mode), np.pad(x, widths, MODES[mode]))


@each_engine
@each_mode
def test_values_and_gradients_of_both_engines(engine, mode):
    widths = ((1, 2), (5, 0))

    def f(x):
        return g.pad(x, widths, mode=mode)

    np.testing.assert_array_equal(run(engine, f, X), np.pad(X, widths, MODES[mode]))
    check_grads(lambda x: f(x) ** 2, (X / 4,), order=2, engine=ENGINES[engine])
    (counts,) = gradients(engine, lambda x: g.sum(f(x)), X)
    numbers = np.pad(np.arange(12).reshape(3, 4), widths, MODES[mode])
    np.testing.assert_array_equal(counts.ravel(), np.bincount(numbers.ravel(), minlength=12))


@each_mode
def test_one_graph_serves_every_size(mode):
    def f(x):
        return g.sum(g.pad(x, ((2, 1), (0, 3)), mode=mode) ** 2)

    exe = static.compile(static.value_and_grad(f), g.TensorSpec(("H", "W"), "float64"))
    for shape in ((3, 4), (1, 1), (2, 7)):
        x = np.random.default_rng(shape).normal(size=shape)
        value, slope = exe(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic.grad(f)(x), rtol=1e-12)


@each_engine
@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap", "constant"])
def test_numpys_name_takes_the_mode(engine, mode):
    np.testing.assert_array_equal(run(engine, lambda x: np.pad(x, (1, 2), mode), X), np.pad(X, (1, 2), mode))


def test_padding_by_padding_is_refused_where_it_is_used():
    padded = static.jit(
        lambda x: g.pad(x, ((0, 0), (1, 1)), mode="wrap")[:, 0], shapes="bucket", dims=((None, "T"),), buckets=(8,)
    )
    with pytest.raises(ShapeError, match="padding"):
        padded(X)
    rows = static.jit(
        lambda x: g.pad(x, ((0, 0), (1, 1)), mode="wrap"), shapes="bucket", dims=(("N", None),), buckets=(8,)
    )
    np.testing.assert_array_equal(rows(X), np.pad(X, ((0, 0), (1, 1)), "wrap"))


REFUSED = [
    (lambda: g.pad(X, 1, mode="mean"), "pad: mode is one of 'constant', 'edge', .*, not 'mean'"),
    (lambda: g.pad(X, 1, 0.5, mode="edge"), "mode 'edge' takes no value"),
    (lambda: g.pad(X[:0], 1, mode="wrap"), "size 0 has nothing to pad with"),
    (lambda: g.pad(X, [(1, 1)], mode="edge"), "a pair for each axis"),
    (lambda: g.pad(X, -1, mode="edge"), "0 or more"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_has_no_meaning_is_refused(call, message):
    with pytest.raises(ShapeError, match=message):
        call()


def test_numpys_other_modes_are_refused():
    with pytest.raises(TypeError, match="there is no mode 'median'"):
        np.pad(dynamic.tensor(X), 1, "median")
