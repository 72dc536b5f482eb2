"""`graphduel graph`: the graph of a user's function, printed, drawn, and refused where that cannot be."""

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from tests.helpers.asked_here import asked_here

SOURCE = """
import numpy as np
import graphs as g

def loss(w, x):
    h = x @ w
    if g.sum(h) > 0:
        h = g.tanh(h)
    return g.mean(h * h)

inputs = [(np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    asked_here(monkeypatch)
    return lambda *words: CliRunner().invoke(graphduel, ["graph", *words])


def test_the_graph_of_each_engine_is_printed(run):
    static, dynamic = run("mine.py:loss"), run("mine.py:loss", "--engine", "dynamic")
    assert static.exit_code == dynamic.exit_code == 0, static.output + dynamic.output
    assert "switch(" in static.output  # the branch, converted
    assert "switch(" not in dynamic.output
    assert "tanh(" in dynamic.output  # the side that was taken


def test_a_value_alone_and_an_optimised_graph(run):
    assert "-> f32[], f32[3,2]" in run("mine.py:loss").output
    alone = run("mine.py:loss", "--no-gradient").output
    assert "-> f32[]\n" in alone
    assert run("mine.py:loss", "--optimised").exit_code == 0


def test_a_file_is_written_by_its_suffix(run, tmp_path):
    found = run("mine.py:loss", "--out", "g.svg")
    assert found.exit_code == 0
    assert "g.svg" in found.output
    assert (tmp_path / "g.svg").read_text().startswith("<svg")


def test_what_cannot_be_done_is_a_usage_error(run):
    assert "use .svg" in (wrong := run("mine.py:loss", "--out", "g.xyz")).output
    assert wrong.exit_code == 2
    assert "defines no 'nothing'" in run("mine.py:nothing").output
    view = run("mine.py:loss", "--view")
    assert view.exit_code == 2
    assert "pip install 'graphduel[viewer]'" in view.output
