"""`graphduel compare` as a gate: exit codes, what it prints, and the files it writes."""

import sys
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from compare.subjects import origin
from tests.helpers.asked_here import asked_here

QUICK = ["--processes", "0", "--seconds", "0.01"]
MINE = """
import math
import numpy as np
import graphs as g

def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)

def asks(w, x):
    return g.sum(x @ w) * math.gamma(g.sum(w).item())

inputs = [(np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))]
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    (tmp_path / "gated.py").write_text(MINE, "utf-8")
    asked_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield lambda *arguments: CliRunner().invoke(graphduel, ["compare", *map(str, arguments)])
    for name in set(sys.modules) - before:
        if name.startswith(origin.PREFIX):
            del sys.modules[name]


def suite(path):
    return ET.fromstring(path.read_text("utf-8"))


@pytest.mark.slow
def test_a_rule_that_does_not_hold_ends_with_0(call, tmp_path):
    done = call("gated.py:loss", *QUICK, "--fail-if", "static > 1000", "--junit", "ci/junit.xml", "--summary", "s.md")
    assert done.exit_code == 0, done.output
    assert "--fail-if 'static > 1000': does not hold: static-exact ÷ dynamic is " in done.stdout
    found = suite(tmp_path / "ci" / "junit.xml")
    assert found.attrib == {
        "name": "graphduel compare", "tests": "3", "failures": "0", "errors": "0", "skipped": "0"
    }  # fmt: skip
    names = [test.get("name") for test in found]
    assert names == ["parity of dynamic", "parity of static-exact", "--fail-if static > 1000"]
    assert found[1][0].tag == "system-out"
    assert found[1][0].text.startswith("output error ")
    page = (tmp_path / "s.md").read_text("utf-8")
    assert page.startswith("## loss\n\n")
    assert "| mode | a call | ÷ dynamic |" in page
    assert "\n| `static > 1000` | does not hold | static-exact ÷ dynamic is " in page
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix not in ("", ".pyc")) == ["gated.py", "s.md"]


@pytest.mark.slow
def test_a_rule_that_holds_ends_with_6_and_the_files_are_written(call, tmp_path):
    done = call("gated.py:loss", *QUICK, "--fail-if", "static > 0.0001", "--fail-if", "static < 0.0001",
                "--junit", "junit.xml", "--summary", "s.md")  # fmt: skip
    assert done.exit_code == 6, done.output
    found = suite(tmp_path / "junit.xml")
    assert (found.get("failures"), found.get("errors")) == ("1", "0")
    assert found[2][0].tag == "failure"
    assert found[2][0].get("message").startswith("holds: static-exact ÷ dynamic is ")
    assert found[3][0].text.startswith("does not hold: ")
    assert "| `static > 0.0001` | holds |" in (tmp_path / "s.md").read_text("utf-8")


@pytest.mark.slow
def test_a_rule_about_a_refused_mode_ends_with_5(call, tmp_path):
    done = call("gated.py:asks", *QUICK, "--fail-if", "static > 1.05", "--junit", "junit.xml", "--summary", "s.md")
    assert done.exit_code == 5, done.output
    found = suite(tmp_path / "junit.xml")
    assert [(test.get("name"), test[0].tag) for test in found][1:] == [
        ("parity of static-exact", "skipped"),
        ("--fail-if static > 1.05", "error"),
    ]
    assert "static-exact: unsupported: ControlFlowError" in (tmp_path / "s.md").read_text("utf-8")


@pytest.mark.slow
def test_files_without_a_rule_leave_the_exit_code(call, tmp_path):
    done = call("gated.py:loss", *QUICK, "--summary", "s.md")
    assert done.exit_code in (0, 3), done.output
    assert "fails if" not in (tmp_path / "s.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-if", "static > import os"], "cannot be read; write MODE > NUMBER"),
        (["--fail-if", "static-pad > 1"], "static-pad is not measured; the modes that are: dynamic, static-exact"),
        (["--fail-if", "static > 1", "--processes", "2"], "--processes 0 or at least 3, not 2"),
        (["--fail-if", "static > 1", "--framework", "autograd"], "static is not measured; the modes that are: eager"),
        (["--junit", "."], "is a directory"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_runs(call, tmp_path, arguments, message):
    (tmp_path / "gated.py").write_text("raise SystemExit('this must not run')", "utf-8")
    done = call("gated.py:loss", *arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_a_comparison_without_a_result_writes_the_files_too(call, tmp_path):
    (tmp_path / "gated.py").write_text("1 / 0", "utf-8")
    done = call("gated.py:loss", "--fail-if", "static > 1", "--junit", "junit.xml", "--summary", "s.md")
    assert done.exit_code == 1, done.output
    told = "gated.py:loss: gated.py:1: ZeroDivisionError: division by zero"
    assert told in done.stderr
    (test,) = suite(tmp_path / "junit.xml")
    assert (test.get("classname"), test.get("name"), test[0].tag) == ("gated.py:loss", "comparison", "error")
    assert test[0].get("message") == told
    assert (tmp_path / "s.md").read_text("utf-8").startswith("## gated.py:loss\n\nNo result: ")


@pytest.mark.slow
def test_a_file_is_replaced_in_one_step_or_not_at_all(call, tmp_path, monkeypatch):
    (tmp_path / "s.md").write_text("old", "utf-8")
    monkeypatch.setattr("compare.gate.rules.markdown", lambda *_: 1 / 0)
    assert call("gated.py:loss", *QUICK, "--summary", "s.md").exit_code == 1
    assert (tmp_path / "s.md").read_text("utf-8") == "old"
