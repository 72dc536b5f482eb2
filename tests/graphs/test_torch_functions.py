"""Functions with PyTorch's names give PyTorch's values and gradients, in both engines, to second order, in float32."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.oracles import weights
from tests.helpers.together import together
from tests.helpers.torch_functions import CASES, golden

GOLDEN = golden()
each_case = together("case", CASES, ids=lambda case: case.name.replace(" ", "-"), quick=50)
each_engine = pytest.mark.parametrize("engine", ENGINES)


def test_every_case_has_what_pytorch_gave():
    assert list(GOLDEN) == [case.name for case in CASES]
    assert len(GOLDEN) == len(CASES)


@each_engine
@each_case
def test_values_and_gradients_are_pytorchs(engine, case):
    expected = GOLDEN[case.name]
    value = run(engine, case.ours, *case.inputs)
    np.testing.assert_allclose(value, expected["value"], rtol=1e-12, atol=1e-12)

    def loss(*arrays):
        return g.sum(case.ours(*arrays) * weights(value.shape, 0))

    found = gradients(engine, loss, *case.inputs)
    for ours, theirs in zip(found, expected["gradients"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@each_case
def test_engines_agree_to_the_bit_and_keep_float32(case):
    inputs = [x.astype(np.float32) for x in case.inputs]
    eager, compiled = (run(engine, case.ours, *inputs) for engine in ENGINES)
    assert eager.dtype == compiled.dtype == np.float32
    np.testing.assert_array_equal(compiled, eager)
    np.testing.assert_allclose(eager, GOLDEN[case.name]["value"], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("engine", ENGINES)
@together("case", [case for case in CASES if case.twice], ids=lambda case: case.name.replace(" ", "-"), quick=10)
def test_second_derivatives_are_those_of_finite_differences(engine, case):
    check_grads(case.ours, case.inputs, order=2, engine=ENGINES[engine])
