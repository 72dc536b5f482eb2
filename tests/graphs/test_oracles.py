"""Values, gradients and second derivatives are those of HIPS autograd, for every op that it has too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy
import numpy as np
import pytest

import dynamic
import graphs
import static
from tests.helpers.oracles import CASES, Case, weights
from tests.helpers.slow import mostly_slow

SEEDS = range(6)


def derivatives(grad: Callable[..., Any], sum_of: Callable[..., Any], f: Callable[..., Any], inputs: list[Any]) -> Any:
    """The gradient of a weighted sum of f, and that of a weighted sum of the gradient."""
    shape = np.shape(f(*inputs))

    def loss(values: list[Any]) -> Any:
        return sum_of(f(*values) * weights(shape, 0))

    def slope(values: list[Any]) -> Any:
        total = 0.0
        for i, gradient in enumerate(grad(loss)(values)):
            total = total + sum_of(gradient * weights(np.shape(gradient), i + 1))
        return total

    return grad(loss)(inputs), grad(slope)(inputs)


@pytest.mark.parametrize("case", mostly_slow([c for c in CASES if c.autograd], 20), ids=str)
@pytest.mark.filterwarnings("ignore:Output seems independent of input:UserWarning")  # floor and the like
def test_autograd_gives_the_same(case: Case):
    def theirs(*values: Any) -> Any:
        return case.autograd(autograd.numpy, *values)

    for seed in SEEDS:
        inputs = case.inputs(seed)
        np.testing.assert_allclose(case.ours(*inputs), theirs(*inputs), rtol=1e-12, atol=1e-12)
        expected = derivatives(autograd.grad, autograd.numpy.sum, theirs, inputs)
        compare(derivatives(dynamic.grad, graphs.sum, case.ours, inputs), expected)
        if seed == 0:
            compiled = static.compile(lambda xs: derivatives(static.grad, graphs.sum, case.ours, xs), inputs)
            compare(compiled(inputs), expected)


def compare(ours: Any, theirs: Any) -> None:
    for a, b in zip(graphs.tree.leaves(ours), graphs.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
