"""What NumPy asks of the allocator of a pool."""

import contextvars
import gc
import itertools
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import dynamic
from dynamic.pool import _allocator
from tests.helpers.pools import HEAD, filled, pool_of_all, size_class
from tests.helpers.together import together

pytestmark = pytest.mark.skipif(_allocator is None, reason="needs the compiled part")

# What NumPy asks of an allocator --------------------------------------------------------------------------------------


def test_zeros_are_zeros_in_memory_that_was_used():
    with pool_of_all() as pool:
        filled(7)
        zeros = np.zeros((32, 32), np.float32)
        assert pool.stats().fresh == 1
        assert (zeros == 0).all()


@together(
    ("before", "after", "dtype"), itertools.product([0, 1, 10, 1000], [0, 1, 10, 1000], ["f4", "S2000", "V64", "O"])
)
def test_arrays_can_be_resized(before, after, dtype):
    with pool_of_all() as pool:
        array = np.ones(before, dtype)
        array.resize(after, refcheck=False)
        assert array.shape == (after,)
        kept = min(before, after)
        assert (array[:kept] == np.ones(kept, dtype)).all()
        del array
        assert pool.stats().in_use == 0


def test_arrays_that_grow_while_they_are_read():
    with pool_of_all() as pool:
        assert np.fromiter((i * i for i in range(10_000)), int)[-1] == 9_999**2
        assert pool.stats().in_use == 0


def test_data_begin_at_a_cache_line():
    with pool_of_all(), dynamic.pool(threshold=0):
        held = [np.empty(n, np.uint8) for n in (0, 1, 63, 64, 1000, 10**6)]
    assert all(array.ctypes.data % 64 == 0 for array in held)


def test_too_much_memory_is_a_memory_error_and_the_pool_goes_on():
    with pool_of_all() as pool:
        filled(1)
        with pytest.raises(MemoryError):
            np.empty(2**62, np.uint8)
        assert (filled(2) == 2).all()
        assert pool.stats().in_use == 0


def test_the_temporaries_of_kernels_are_pooled():
    x = np.random.default_rng(0).normal(size=(40, 50))
    with pool_of_all() as pool:
        np.sqrt(x * x + 1)
        fresh = pool.stats().fresh
        np.sqrt(x * x + 1)
        assert pool.stats().fresh == fresh


def test_what_is_kept_is_seen_by_tracemalloc():
    tracemalloc.start()
    try:
        with dynamic.pool() as pool:
            before = tracemalloc.get_traced_memory()[0]
            np.empty(10**6, np.uint8)
            kept = tracemalloc.get_traced_memory()[0] - before
            assert pool.stats().kept <= kept <= pool.stats().kept + 10_000
            array = np.empty(10**6, np.uint8)
            assert array.nbytes <= tracemalloc.get_traced_memory()[0] - before <= array.nbytes + 10_000
    finally:
        tracemalloc.stop()


def test_arrays_outlive_their_pool():
    with pool_of_all() as pool:
        array = filled(5)
    del pool
    gc.collect()
    assert (array == 5).all()
    del array


def test_a_context_taken_inside_goes_on_with_the_pool_and_keeps_nothing_once_it_is_off():
    with pool_of_all() as pool:
        context = contextvars.copy_context()
    array = context.run(filled, 3)
    assert (array == 3).all()
    del array
    assert pool.stats()[:2] == (0, 0)


def test_a_process_may_end_with_pools_on():
    code = (
        "import dynamic, numpy as np; pool = dynamic.pool(); pool.__enter__(); held = np.ones(10**6); np.ones(10**6)\n"
        "class Holder: pass\nholder = Holder(); holder.holder, holder.array = holder, np.ones(5000)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("nbytes", [64, 100, 1000, 4096, 80_064, 10**6 + 1, 16_000_064])
def test_a_size_class_wastes_at_most_a_sixteenth(nbytes):
    with pool_of_all() as pool:
        np.empty(nbytes, np.uint8)
        assert nbytes <= pool.stats().peak == size_class(nbytes) <= (nbytes + HEAD) * 17 / 16
