"""Settings of the whole suite: one BLAS thread, and property tests that find the same examples every time."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# NumPy reads these once, when it loads; test modules and the processes that tests start import it after this.
for _library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# ci, and thorough for the slow tests: repeatable, and without a deadline, since a busy machine is no bug. explore: new
# examples on each run.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=20, print_blob=True)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=50)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from walking the test items, which live to the end: many tests collect often."""
    _keep()


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    """Neither does it walk what the tests of a module leave in caches, nor all of it again after `gc.unfreeze`."""
    yield
    _keep()


def _keep() -> None:
    gc.collect()
    gc.freeze()
