"""Writing by index."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, each_engine, run

# Writing by index -----------------------------------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow and 0 / 0 are part of what is tested

Z = np.random.default_rng(4).normal(size=(3, 4, 2))
WRITES = {
    "slice": (np.s_[1:, ::-2], np.ones((2, 2, 2))),
    "array": (np.array([2, 0]), np.ones((4, 2))),
    "list": ([2, -3], 5.0),
    "pair": ((np.array([0, 1]), np.array([3, 0])), np.ones((2, 2))),
    "apart": ((np.array([0, 1]), slice(1, 3), np.array([1, 0])), np.array([[1.0, 2], [3, 4]])),
    "mask": (Z > 0, 0.0),
    "mask of rows": (np.array([True, False, True]), np.ones((4, 2))),
    "mask and values": (np.arange(12).reshape(3, 4) % 5 == 0, np.arange(6.0).reshape(3, 2)),
    "mask beside a slice": ((slice(1), np.array([True, False, True, False])), 2.0),
    "nothing": ([], 1.0),
}


@each_engine
@pytest.mark.parametrize(("key", "value"), WRITES.values(), ids=WRITES)
def test_writing_by_index_is_numpys_and_differentiates(engine, key, value):
    expected = Z.copy()
    expected[key] = value
    for found in (g.setitem(Z, value, key), run(engine, lambda x: g.setitem(x, value, key), Z)):
        np.testing.assert_array_equal(found, expected)
    value = np.asarray(value, float)
    check_grads(lambda x, v: g.setitem(x, v, key), [Z, value], order=2, engine=ENGINES[engine])


def test_a_traced_mask_can_be_written_through():
    def f(x):
        return g.setitem(x, 0, x < 0)

    np.testing.assert_array_equal(static.compile(f, Z)(Z), np.maximum(Z, 0))
    with pytest.raises(g.ControlFlowError, match="which are unknown while a graph is traced"):
        static.trace(lambda x: g.setitem(x, np.ones(3), x < 0), Z)


def test_a_tensor_is_written_in_place_by_array_and_mask():
    x = dynamic.tensor(np.arange(6.0))
    x[[0, 5]] = -1
    x[x > 2.5] = dynamic.tensor(np.array([7.0, 8.0]))
    assert x.tolist() == [-1.0, 1.0, 2.0, 7.0, 8.0, -1.0]


def test_a_mask_of_another_size_is_refused():
    with pytest.raises(g.ShapeError, match="setitem: a mask of 2 for an axis of size 3"):
        g.setitem(Z, 0, np.array([True, False]))


def test_a_symbol_is_not_written_in_place():
    def f(x):
        x[0] = 1
        return x

    with pytest.raises(g.ControlFlowError, match=r"test_writing.py:\d+\); write x = graphs.setitem"):
        static.trace(f, Z)
