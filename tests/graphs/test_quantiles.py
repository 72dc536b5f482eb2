"""Medians, percentiles and quantiles of ints and bools: those of the same values in float64, in every engine."""

from __future__ import annotations

import itertools

import numpy as np

import dynamic
import static
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64")
FUNCTIONS = {
    "median": np.median,
    "percentile": lambda x, **over: np.percentile(x, [10, 25, 50, 99.5], **over),
    "quantile": lambda x, **over: np.quantile(x, 0.3, **over),
}
AXES = ({"axis": None}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 1)})


def values(dtype: str, count: int) -> np.ndarray:
    """Values of a matrix of some rows, which reach both ends of the dtype where that has 8 bits."""
    numbers = np.random.default_rng(count).integers(0, 256, (count, 3))
    return (numbers % 2 if dtype == "bool" else numbers).astype(dtype)


@together("dtype,name", itertools.product(DTYPES, FUNCTIONS))
def test_those_of_ints_lie_between_them(dtype, name):
    f = FUNCTIONS[name]
    for count, over in itertools.product((1, 2, 5, 6), AXES):
        x = values(dtype, count)
        np.testing.assert_allclose(f(dynamic.tensor(x), **over).numpy(), f(x.astype(np.float64), **over), rtol=1e-12)


@together("dtype,name,backend", itertools.product(DTYPES, FUNCTIONS, BACKENDS))
def test_those_of_ints_in_a_graph(dtype, name, backend):
    f = FUNCTIONS[name]
    for count in (3, 4):
        x, over = values(dtype, count), AXES[count % 2 + 1]
        found = static.jit(lambda x, over=over: f(x, **over), backend=backend)(x)
        np.testing.assert_allclose(found, f(x.astype(np.float64), **over), rtol=1e-12)
        assert np.asarray(found).dtype == np.float64
