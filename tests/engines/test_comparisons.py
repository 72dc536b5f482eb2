"""Ints are compared as they are, also where no dtype holds both: in either engine, by every backend."""

from __future__ import annotations

import itertools
import operator

import numpy as np

import dynamic
import graphs as g
import static
from tests.helpers.backends import BACKENDS
from tests.helpers.specials import numbers
from tests.helpers.together import check_each

NAMES = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
OPERATORS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
LARGE = np.array([2**53 + 1, 2**53, 2**63 - 1, -(2**53) - 1]), np.array([2**53, 2**53 + 1, 2**63], np.uint64)


def compared(x, y):
    """Every comparison, by functions and by operators, and what is chosen and repeated by one."""
    found = [getattr(g, name)(x, y) for name in NAMES] + [compare(x, y) for compare in OPERATORS]
    turns = g.while_loop(lambda n: (x[-1, 0] < y[0, -1]) & (n < 3), lambda n: n + 1, g.asarray(0))
    return [*found, g.where(x == y, 1, 2), turns]


def expected(x, y):
    found = [getattr(np, name)(x, y) for name in NAMES]
    return [*found, *found, np.where(found[0], 1, 2), 3 if x[-1, 0] < y[0, -1] else 0]


def ways(x, y):
    """The results of each engine and backend."""
    tensors = dynamic.tensor(x), dynamic.tensor(y)
    yield "dynamic", list(map(np.asarray, compared(*tensors)))
    yield "dynamic.eq", [np.asarray(dynamic.eq(*tensors))]
    for backend in BACKENDS:
        yield backend, static.compile(compared, x, y, backend=backend)(x, y)


def check(pair):
    x, y = pair[0][:, None], pair[1][None, :]
    for way, results in ways(x, y):
        for number, (found, right) in enumerate(zip(results, expected(x, y), strict=False)):
            np.testing.assert_array_equal(found, right, err_msg=f"{way} {number}")


def test_ints_of_all_dtypes():
    arrays = [numbers(dtype) for dtype in DTYPES]
    mixed = [(x, y) for x, y in itertools.product(arrays, arrays) if "u" in x.dtype.kind + y.dtype.kind]
    check_each([*mixed, LARGE, LARGE[::-1]], check, lambda pair: f"{pair[0].dtype} {pair[1].dtype}")
