"""One executable, called from several threads at once, from inside itself, and after an error."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphs as g
import static
from tests.helpers.backends import BACKENDS

SIZE, THREADS, CALLS = 120_000, 4, 6  # kernels that run long enough to let other threads in


def looped(x):
    total = g.scan(lambda c, row: (g.tanh(c * 0.5 + row), g.sum(c)), x[0] * 0, x)
    return g.sin(total[0]) * 2 + 1, total[1]


def in_threads(call, arguments):
    """What calls give that all begin together, again and again."""
    ready = threading.Barrier(len(arguments))

    def several(argument):
        ready.wait()
        return [call(argument) for _ in range(CALLS)]

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(several, arguments))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(3, SIZE), ("T", SIZE)], ids=["fixed", "symbolic"])
def test_calls_in_threads_give_what_they_give_alone(shape, backend):
    exe = static.compile(looped, g.TensorSpec(shape, "float32"), backend=backend)
    rows = [3] * THREADS if shape[0] == 3 else [2 + i % 3 for i in range(THREADS)]
    arguments = [np.full((n, SIZE), i / 7, np.float32) for i, n in enumerate(rows)]
    alone = [exe(x) for x in arguments]
    for expected, results in zip(alone, in_threads(exe, arguments), strict=True):
        for found in results:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    assert len(exe._free) <= THREADS


def test_jitted_functions_in_threads():
    step = static.jit(looped)
    arguments = [np.full((3, SIZE), i / 7, np.float32) for i in range(THREADS)]
    alone = [step(x) for x in arguments]
    for expected, results in zip(alone, in_threads(step, arguments), strict=True):
        for found in results:
            np.testing.assert_array_equal(found[0], expected[0])


def test_a_call_inside_a_call_has_memory_of_its_own():
    """A kernel of a user's own that calls the executable that it runs in."""
    depth = []

    def kernel(x, out=None):
        if len(depth) < 2:
            depth.append(0)
            exe(np.full(4, 9.0))
        return np.add(x, 1, out=out)

    again = g.custom_op("again_in_itself", kernel, lambda x: x)
    exe = static.compile(lambda x: again(x * 2) + x * 3, np.ones(4))
    np.testing.assert_array_equal(exe(np.ones(4)), np.full(4, 6.0))
    assert len(depth) == 2


def test_an_error_gives_the_room_back():
    exe = static.compile(lambda x, i: x[i] * 2, np.ones(3), np.array([0]))
    for _ in range(3):
        with pytest.raises(g.GraphError):
            exe(np.ones(3), np.array([7]))
    assert len(exe._free) == 1
    np.testing.assert_array_equal(exe(np.ones(3), np.array([1])), [2.0])
