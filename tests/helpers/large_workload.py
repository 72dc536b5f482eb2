"""A workload of more than 64 MiB, few kernels and little arithmetic."""

import numpy as np

import graphs as g
from compare.workloads import Case
from tests.helpers.fake_workloads import workload

FLOATS = 5 << 19


def loss(params, x):
    y = x
    for _ in range(4):
        y = g.square(y) * params["s"]
    return g.sum(y)


def make():
    return Case(loss, {"s": np.array(0.5, np.float32)}, ((np.ones(FLOATS, np.float32),),), (FLOATS,))


LARGE = workload("large", make)
