"""Settings of the whole suite: one BLAS thread, and property tests that find the same examples every time."""

import gc
import os
from collections import defaultdict
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tests.helpers.slow import off_the_diagonals

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


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a table with the mark `diagonal`, what is off the diagonals is slow."""
    tables = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("diagonal"):
            tables[item.parent, item.originalname, mark.args].append(item)
    for (_, _, axes), cells in tables.items():
        indices = [[cell.callspec.indices[axis] for axis in axes] for cell in cells]
        for cell, is_off in zip(cells, off_the_diagonals(indices), strict=True):
            if is_off:
                cell.add_marker(pytest.mark.slow)


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
