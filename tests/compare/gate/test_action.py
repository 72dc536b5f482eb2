"""The composite action of the repository, run as the script that it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ACTION = Path(__file__).parents[3] / ".github" / "actions" / "gate"
QUICK = "--processes 0 --seconds 0.01"
STEP = """
import numpy as np
import graphs as g

def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)

inputs = [(np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))]
"""
TESTS = """
from step import inputs, loss

def test_compiles(assert_compiles_at_most, assert_no_breaks):
    assert_compiles_at_most(loss, inputs, {allowed})
    assert_no_breaks(loss, inputs)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "step.py").write_text(STEP, "utf-8")

    def run(rules, tests="", options=QUICK):
        variables = {
            "FUNCTION": "step.py:loss", "FAIL_IF": rules, "OPTIONS": options, "TESTS": tests, "PYTHON": sys.executable,
            "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        }  # fmt: skip
        command = ["bash", str(ACTION / "gate.sh")]
        return subprocess.run(
            command, env={**os.environ, **variables}, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.slow
def test_a_gate_that_passes_leaves_a_report_and_a_summary(run, tmp_path):
    (tmp_path / "test_step.py").write_text(TESTS.format(allowed=1), "utf-8")
    done = run("static.compiles > 1\n\n  static > 1000\n", "test_step.py -p no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--fail-if 'static.compiles > 1': does not hold: static-exact.compiles is 1" in done.stdout
    assert "--fail-if 'static > 1000': does not hold" in done.stdout
    out = tmp_path / "temp" / "graphduel"
    assert {path.name for path in out.iterdir()} == {"tests.xml", "junit.xml", "summary.md", "report"}
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("## loss\n\n")


@pytest.mark.slow
def test_a_rule_that_holds_fails_the_job_and_the_summary_says_so(run, tmp_path):
    done = run("static.compiles > 0")
    assert done.returncode == 6, done.stdout + done.stderr
    assert "| `static.compiles > 0` | holds | static-exact.compiles is 1 |" in (tmp_path / "summary.md").read_text(
        "utf-8"
    )


@pytest.mark.slow
def test_a_test_that_fails_ends_the_job_before_anything_is_measured(run, tmp_path):
    (tmp_path / "test_step.py").write_text(TESTS.format(allowed=0), "utf-8")
    done = run("", "test_step.py -p no:cacheprovider")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "expected at most 0 times" in done.stdout
    assert not (tmp_path / "summary.md").exists()


def test_a_rule_that_cannot_be_read_fails_the_job(run):
    done = run("__import__('os') > 1")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot be read" in done.stderr


def test_the_action_gives_the_script_each_input():
    action = (ACTION / "action.yml").read_text("utf-8")
    names = re.findall(r"^  ([\w-]+):\n    description:", action, re.MULTILINE)
    given = dict(re.findall(r"^        ([A-Z_]+): \$\{\{ inputs\.([\w-]+) \}\}$", action, re.MULTILINE))
    assert sorted(given.values()) == sorted(names) == ["fail-if", "function", "options", "python", "tests"]
    script = (ACTION / "gate.sh").read_text("utf-8")
    assert all(re.search(rf"\$\{{?{name}\b", script) for name in given)
