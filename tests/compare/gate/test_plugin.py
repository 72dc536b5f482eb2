"""The plugin as pytest loads it: its fixtures in a user's tests, and what starting pytest imports."""

import subprocess
import sys
from importlib.metadata import entry_points

pytest_plugins = ["pytester"]

STEPS = """
import numpy as np
import graphs as g

X = [(np.ones((2, 3)), np.ones((4, 3))), (np.ones((2, 3)), np.ones((5, 3)))]

def loss(w, x):
    return g.sum(g.tanh(x @ g.permute_dims(w, (1, 0))))

def test_good(assert_compiles_once, assert_parity, assert_not_slower):
    assert assert_compiles_once(loss, X[:1]).compiles == 1
    assert assert_parity(loss, X).agree
    assert assert_not_slower(loss, loss, X, by=1.05) is None

def test_bad(assert_compiles_once):
    assert_compiles_once(loss, X)
"""


def test_pytest_finds_the_plugin_by_its_entry_point():
    (found,) = entry_points(group="pytest11", name="graphduel")
    assert found.value == "compare.gate.plugin"


def test_fixtures_serve_a_users_tests(pytester):
    pytester.makepyfile(STEPS)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*loss: compiled 2 times for 2 inputs, expected once*"])


def test_fixtures_describe_themselves(pytester):
    done = pytester.runpytest_inprocess("--fixtures", "-p", "no:cacheprovider")
    for name in ("assert_compiles_once", "assert_parity", "assert_not_slower"):
        done.stdout.fnmatch_lines([f"{name} --*"])


def test_starting_pytest_imports_no_numpy():
    code = (
        "import sys, compare.gate.plugin; print({'numpy', 'graphs', 'static', 'dynamic', 'click'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
