"""A workload of more than 64 MiB, of arrays so small that one more in the heap is no tenth of it."""

import numpy as np

import graphs as g
from compare.workloads import Case
from tests.helpers.fake_workloads import workload

FLOATS = 5 << 18


def loss(params, x):
    y = x
    for _ in range(9):
        y = g.square(y) * params["s"]
    return g.sum(y)


def make():
    return Case(loss, {"s": np.array(0.5, np.float32)}, ((np.ones(FLOATS, np.float32),),), (FLOATS,))


LARGE = workload("large", make)
