"""The same bits on every machine: what wide registers compute, narrow ones compute as well."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
import static
from benchmarks.programs import ROWS

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import binding, groups
from static.native import target as machines
from static.native.target import AVX2
from tests.helpers.slow import mostly_slow


@pytest.fixture
def narrow(monkeypatch):
    """Code for AVX2 alone, and 16 registers."""
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    monkeypatch.setattr(binding, "host", lambda: AVX2)


def bits(f, *args):
    exe = static.compile(f, *args, backend="native")
    return [np.asarray(leaf).tobytes() for leaf in g.tree.leaves(exe(*args))], exe


def functions(x):
    small = g.abs(x) * 0.9 / (1 + g.abs(x))
    curved = [g.exp(x), g.tanh(x), g.log1p(small), g.sigmoid(x), g.asin(small), g.expm1(x), g.abs(x) ** 1.7]
    return [*curved, g.sum(x), g.mean(x, axis=0), g.softmax(x), g.max(x, axis=1), g.cumulative_sum(x, axis=0)]


@pytest.fixture(scope="module")
def wide():
    x = np.random.default_rng(0).normal(size=(37, 291)).astype("f4")
    rows = {name: ROWS[name]() for name in ("tiny MLP", "chain 1e3", "RNN", "transformer T=32")}
    actual = {name: bits(static.value_and_grad(row.loss), row.params, *row.inputs)[0] for name, row in rows.items()}
    return x, rows, actual, bits(functions, x)[0]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("name", mostly_slow(["tiny MLP", "chain 1e3", "RNN", "transformer T=32"], 1))
def test_a_training_step_has_the_same_bits_with_narrow_registers(name, wide):
    row = wide[1][name]
    actual, exe = bits(static.value_and_grad(row.loss), row.params, *row.inputs)
    assert actual == wide[2][name]
    assert "zmm" not in exe.kernels[0].assembly


@pytest.mark.usefixtures("narrow")
def test_functions_have_the_same_bits_with_narrow_registers(wide):
    assert bits(functions, wide[0])[0] == wide[3]


def rows_that_reduce(x):
    """Softmax, a normalisation, and sums over rows that need what a row reduces."""
    spread = x - g.mean(x, axis=-1, keepdims=True)
    normed = spread / g.sqrt(g.mean(spread * spread, axis=-1, keepdims=True) + 1e-5)
    weights = g.softmax(x, axis=-1)
    return weights, normed, g.sum(weights * normed, axis=0), g.max(x, axis=-1), g.mean(normed, axis=(0, 1))


@pytest.mark.parametrize("shape", [(2, 1, 5), (3, 7, 33), (2, 2, 64), (1, 9, 150), (5, 2, 1024)])
def test_rows_side_by_side_give_the_bits_of_one_after_the_other(shape, monkeypatch):
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    actual, exe = bits(rows_that_reduce, x)
    assert any(kernel.recipe.together > 1 for kernel in exe.kernels)
    del exe
    monkeypatch.setattr(groups, "SHORT", 0)
    expected, exe = bits(rows_that_reduce, x)
    assert all(kernel.recipe.together == 1 for kernel in exe.kernels)
    assert actual == expected
