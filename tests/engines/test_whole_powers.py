"""Powers of ints by tensors of ints: a negative exponent gives the whole part, as in PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dynamic as torch
import static
from graphs.errors import GraphError
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

BASE = [0, 1, 2, 3, 0, 1, 2, -1, -1, -2, -1, -3]
EXPONENT = [0, 1, 3, 2, -1, -3, -1, -1, -2, -1, 3, 2]
POWER = [1, 1, 8, 9, 0, 1, 0, -1, 1, 0, -1, 9]  # PyTorch's
DTYPES = ("int8", "int16", "int32", "int64")
ENGINES = ("dynamic", *BACKENDS)


def power(x, y):
    return x**y


@together("base,exponent,backend", itertools.product(DTYPES, DTYPES, ENGINES))
def test_a_power_of_ints(base, exponent, backend):
    x, y = torch.tensor(np.array(BASE, base)), torch.tensor(np.array(EXPONENT, exponent))
    result = np.asarray(power(x, y) if backend == "dynamic" else static.jit(power, backend=backend)(x, y))
    assert result.tolist() == POWER
    assert result.dtype == np.result_type(base, exponent)


def test_a_power_of_a_number_of_bools_and_in_place():
    exponent = torch.tensor([1, -2, 0, -3])
    assert [(base**exponent).tolist() for base in (2, 1, -1, 0)] == [
        [2, 0, 1, 0],
        [1] * 4,
        [-1, 1, 1, -1],
        [0, 0, 1, 0],
    ]
    assert (torch.tensor([True, False, True, True]) ** exponent).tolist() == [1, 0, 1, 1]
    assert torch.tensor([1, 2, -1, -1]).pow_(exponent).tolist() == [1, 0, 1, -1]
    assert (torch.tensor([1, 2, -1]) ** torch.tensor(-1)).tolist() == [1, 0, -1]


def test_a_later_exponent_of_a_graph_may_be_negative():
    exponent = torch.tensor([2, 3])
    squared = static.jit(lambda x: x**exponent)
    assert squared(torch.tensor([3, 2])).tolist() == [9, 8]
    exponent[0] = -1
    assert squared(torch.tensor([3, 2])).tolist() == [0, 8]


def test_a_negative_number_is_refused_as_in_pytorch():
    with pytest.raises(GraphError, match="negative integer powers"):
        torch.tensor([1, 2]) ** -1
