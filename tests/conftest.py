"""Settings of the whole suite: one BLAS thread, and property tests that find the same examples every time."""

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

try:
    from hypothesis.internal.conjecture import providers
except ImportError:  # an older Hypothesis
    providers = None

# NumPy reads these once, when it loads; test modules and the processes that tests start import it after this.
for _library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# ci, and thorough for the slow tests: repeatable, and without a deadline, since a busy machine is no bug. explore: new
# examples on each run.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=20, print_blob=True)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=50)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(_PROFILE)

# Hypothesis tries constants that it finds in every module that is loaded. Reading them costs each process some seconds,
# and a test would have other examples alone than after other tests: only a search for new examples does it.
if _PROFILE != "explore" and hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from walking the test items, which live to the end: many tests collect often."""
    _keep()


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    """Neither does it walk what the tests of a module leave in caches, nor all of it again after `gc.unfreeze`."""
    yield
    _keep()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """After a test that has collected, the next ones need not walk what it has imported."""
    before = _collections()
    handled = yield
    if _collections() > before:
        _keep()
    return handled


def _collections() -> int:
    return gc.get_stats()[2]["collections"]


def _keep() -> None:
    gc.collect()
    gc.freeze()
