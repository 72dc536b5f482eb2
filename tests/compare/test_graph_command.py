"""`graphduel graph`: the graph of a user's function, printed, drawn, and refused where that cannot be."""

import json
import re

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

def deep(w, x):
    for _ in range(60):
        x = g.tanh(x @ w)
        x = x * 1.5
    return g.mean(x)

square = [(np.eye(3, dtype=np.float32), np.ones((4, 3), np.float32))]
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
    done = run("mine.py:loss", "--out", "g.svg")
    assert done.exit_code == 0
    assert "g.svg" in done.output
    assert (tmp_path / "g.svg").read_text().startswith("<svg")


def test_what_cannot_be_done_is_a_usage_error(run):
    assert "use .svg" in (wrong := run("mine.py:loss", "--out", "g.xyz")).output
    assert wrong.exit_code == 2
    assert "defines no 'nothing'" in run("mine.py:nothing").output
    view = run("mine.py:loss", "--view")
    assert view.exit_code == 2
    assert "pip install 'graphduel[viewer]'" in view.output


def test_a_large_graph_is_printed_with_a_repeated_block_once(run):
    folded = run("mine.py:deep", "--inputs", "square", "--no-gradient").output
    assert len(folded.splitlines()) < 15
    assert "59 more like these 3 nodes, " in folded
    whole = run("mine.py:deep", "--inputs", "square", "--no-gradient", "--unfold").output
    assert whole.count("= tanh(") == 60
    assert "more like these" not in whole


def test_each_pass_says_what_it_changes(run, tmp_path):
    done = run("mine.py:loss", "--passes")
    assert done.exit_code == 0, done.output
    assert "nodes as it was traced" in done.output
    assert "remove_dead_code: " in done.output
    assert any(row.startswith("  − %") for row in done.output.splitlines())
    products = re.findall(r"= multiply\((.*?)\)", done.output)
    assert (
        max(len(operands.split(", ")) for operands in products) == 2
    )  # what it reads now, without what it read before
    nodes = re.findall(r"^  [+−~] (%\d+): (\S+) = (\w+)", done.output, re.MULTILINE)
    assert len({number for number, *_ in nodes}) == len(set(nodes))  # a number is one node's through all passes
    assert "nothing to do for " in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert run("mine.py:loss", "--passes", "--out", "p.html").exit_code == 0
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', (tmp_path / "p.html").read_text())
    stages = json.loads(data[1])["stages"]
    assert stages[0]["title"] == "traced"
    assert len(stages) > 3
    assert all(any(item["change"] for item in stage["items"]) for stage in stages[1:])


def test_the_tape_stands_beside_the_optimised_graph_with_what_differs(run, tmp_path):
    done = run("mine.py:loss", "--engine", "both", "--out", "both.json")
    assert done.exit_code == 0, done.output
    held = json.loads((tmp_path / "both.json").read_text())
    titles = [box["title"] for box in held["boxes"] if not box["around"]]
    assert titles == ["dynamic: the tape of one run", "static: the optimised graph"]
    changes = {(item["key"][0], item["change"]) for item in held["items"]}
    assert ("0", "removed") in changes
    assert ("1", "added") in changes
    assert "removed, " in run("mine.py:loss", "--engine", "both").output


@pytest.mark.parametrize("words", [["--engine", "dynamic"], ["--optimised"], ["--out", "p.svg"], ["--view"]])
def test_passes_are_those_of_static_and_need_a_page(run, words):
    refused = run("mine.py:loss", "--passes", *words)
    assert refused.exit_code == 2
    assert "--passes" in refused.output
