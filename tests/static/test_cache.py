"""The cache of a jitted function: what runs for one layout of a call never runs for another."""

import numpy as np
import pytest

import static
from graphs.errors import ShapeLimitWarning
from static.call import jit

X = np.arange(3.0)


def describe(args):
    """Numbers that tell the containers apart, beside what the arrays say."""
    kind = {tuple: 1.0, list: 2.0, dict: 3.0}[type(args)]
    parts = [args[key] for key in sorted(args)] if isinstance(args, dict) else args
    return sum((10.0**place * part for place, part in enumerate(parts)), kind)


CALLS = [(X, X + 1), [X, X + 1], {"a": X, "b": X + 1}, {"b": X + 1, "a": X}, (X, 2.0), (X, 3.0), (X[:2], X[1:]), (X,)]


@pytest.mark.parametrize(("layouts", "kinds"), [(8, 1024), (2, 1024), (8, 2), (1, 1)])
def test_each_layout_has_its_own_entry_however_few_are_kept(monkeypatch, layouts, kinds):
    monkeypatch.setattr(jit, "LAYOUTS", layouts)
    monkeypatch.setattr(jit, "KINDS", kinds)
    f = static.jit(describe)
    for _ in range(3):
        for args in CALLS:
            np.testing.assert_array_equal(f(args), describe(args))
    assert f.stats.hits + f.stats.misses == 3 * len(CALLS)
    assert f.stats.compiles == f.stats.misses == len(CALLS)


def test_a_dropped_executable_takes_its_entries_along():
    f = static.jit(lambda x: x * 2.0, shapes="exact", limit=1)
    np.testing.assert_array_equal(f(X), X * 2)
    with pytest.warns(ShapeLimitWarning, match="are kept"):
        np.testing.assert_array_equal(f(X[:2]), X[:2] * 2)
    np.testing.assert_array_equal(f(X), X * 2)
    assert (f.stats.compiles, f.stats.evictions, len(f.executables)) == (3, 2, 1)


def test_a_warm_call_goes_past_the_policy(monkeypatch):
    f = static.jit(lambda x, s: x * s)
    f(X, 2.0)
    monkeypatch.setattr(f, "_closely", None)
    np.testing.assert_array_equal(f(X + 1, 2.0), (X + 1) * 2)
    with pytest.raises(TypeError, match="not callable"):
        f(X, 3.0)
