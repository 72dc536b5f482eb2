"""`graphduel compare` on files that end, hang, fork or tamper: never 0 without an answer, never without an end."""

import os
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from tests.helpers.hostile import FILES, NAMED, source

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the files use signals and forks")
OURS = "import graphs as g", "g.mean(g.tanh(x @ w) ** 2)", "inputs = [(np.ones((3, 2)), np.ones((4, 3)))]"
QUICK = ("--processes", "0", "--seconds", "0.01", "--limit", "6")


def compared(folder, hostile, *options):
    """How the command ends, what it says, and the file of JUnit, which it must leave."""
    (folder / "mine.py").write_text(source(hostile, *OURS), "utf-8")
    arguments = ["compare", "mine.py:loss", *options, "--junit", "junit.xml"]
    done = CliRunner().invoke(graphduel, arguments)
    return done, ET.fromstring((folder / "junit.xml").read_text("utf-8"))


def check(folder, hostile, *options):
    done, suite = compared(folder, hostile, *options)
    answered = done.stdout.count("loss: value and gradients over 1 input")
    if hostile.told is None:
        assert done.exit_code in (0, 3), done.output
        assert (answered, suite.get("errors")) == (1, "0")
    else:
        assert done.exit_code == hostile.code, done.output
        assert hostile.told in done.output
        assert answered == (hostile.code == 5)
        assert int(suite.get("errors")) > 0
        assert hostile.code == 5 or hostile.told in suite[0][0].get("message")
    return done


LEFT = {
    "a thread that goes on": "the worker had answered, and still waited for the thread T: it was ended",
    "a slow exit handler": "the worker had answered, and still ran its exit handlers (atexit): it was ended",
}


def test_a_function_that_ends_the_process_is_never_green(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(tmp_path, NAMED["_exit by another name"], *QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("hostile", FILES, ids=lambda hostile: hostile.name)
def test_there_is_an_answer_or_an_error(tmp_path, monkeypatch, hostile):
    monkeypatch.chdir(tmp_path)
    done = check(tmp_path, hostile, *QUICK)
    assert LEFT.get(hostile.name, "") in done.stderr
    assert ("had answered" in done.stderr) is (hostile.name in LEFT)
