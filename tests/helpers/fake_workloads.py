"""Small workloads for tests of the harness, found by workers through the registry like any other."""

import os
import time

import numpy as np

import graphs
from compare.records.job import Job
from compare.workloads import Case, Workload

RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 3)).astype(np.float32)
X = RNG.standard_normal((2, 4)).astype(np.float32)
LENGTHS = (3, 5, 3, 8)


def tiny_loss(params, x):
    return graphs.sum(graphs.tanh(x @ params["w"]) ** 2)


def make_tiny():
    print("what a workload prints is not the record")
    return Case(tiny_loss, {"w": W}, ((X,),), (2,))


def stream_loss(params, x):
    return graphs.mean((x * params["s"]) ** 2)


def stream_masked(params, x, mask):
    squares = graphs.where(mask, (x * params["s"]) ** 2, 0)
    return graphs.sum(squares) / graphs.sum(graphs.astype(mask, squares.dtype))


def make_stream():
    examples = tuple((np.arange(1, n + 1, dtype=np.float32),) for n in LENGTHS)
    return Case(stream_loss, {"s": np.array(0.5, np.float32)}, examples, LENGTHS, stream_masked, (None, ("T",)))


def branch_loss(params, x):
    y = x * params["s"]
    return graphs.sum(y) if graphs.sum(y) > 0 else graphs.sum(-y)


def make_branch():
    return Case(branch_loss, {"s": np.ones(2, np.float32)}, ((np.ones(2, np.float32),),), (2,))


def make_error():
    raise ValueError("the data are gone")


def make_crash():
    os.abort()


def make_stuck():
    time.sleep(60)


def make_greedy():
    return Case(lambda params, x: np.ones(1 << 32, np.uint8).sum(), {"w": W}, ((X,),), (2,))


def workload(name, make, policies=("exact",)):
    return Workload(name, name, "Nothing; a test.", "open", "own", {"small": {}, "large": {}}, make, policies)


TINY = workload("tiny", make_tiny)
STREAM = workload("stream", make_stream, ("exact", "bucket", "pad"))
BRANCH = workload("branch", make_branch)
ERROR = workload("error", make_error)
CRASH = workload("crash", make_crash)
STUCK = workload("stuck", make_stuck)
GREEDY = workload("greedy", make_greedy)
NO_WORKLOAD = 42


def job(kind, fake, **fields):
    """A job on the workload of that name in this module, at its small size."""
    return Job(kind, fake.lower(), "small", source=f"{__name__}:{fake}", **fields)
