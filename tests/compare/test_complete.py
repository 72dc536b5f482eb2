"""The completion of a shell knows the names of workloads, claims, sizes, modes, modes and frameworks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from compare import claims, workloads
from compare.cli.command import graphduel
from compare.cli.options import OFFERS
from compare.engines import find_engine

REFERENCE = Path(__file__).resolve().parents[2] / "reports" / "reference"


def offered(typed_before, typed_now=""):
    complete = ShellComplete(graphduel, {}, "graphduel", "_GRAPHDUEL_COMPLETE")
    return [item.value for item in complete.get_completions(typed_before.split(), typed_now)]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("show", "C", ["conv_digits", *claims.CLAIMS]),
        ("show", "c8", ["C8"]),
        ("show", "rnn", ["rnn_text"]),
        ("show", "F", ["fixed_point", "F1", "F2", "F3"]),
        ("run --only", "tiny", ["tiny_mlp"]),
        ("check --only", "tiny_mlp/", ["tiny_mlp/large", "tiny_mlp/medium", "tiny_mlp/small"]),
        ("run --frameworks", "torch,", ["torch,autograd", "torch,jax", "torch,tensorflow"]),
        ("compare mine.py:f --framework", "t", ["tensorflow", "torch"]),
        ("compare mine.py:f --modes", "dynamic,static-b", ["dynamic,static-bucket"]),
        ("compare mine.py:f --framework torch --modes", "eager,compile", ["eager,compile", "eager,compile-dynamic"]),
        ("compare mine.py:f --framework nosuch --modes", "e", []),
        ("compare mine.py:f --framework torch --mode", "w=compile(d", ["w=compile(dynamic=True)"]),
        ("compare mine.py:f --framework torch --mode", "w", []),
        ("export somewhere --mode", "static-p", ["static-pad"]),
        ("compare mine.py:f --device", "c", ["cpu", "cuda"]),
        ("lab", "sel", ["selftest"]),
        ("", "d", ["diff", "doctor"]),
    ],
)
def test_what_a_shell_offers(before, now, expected):
    assert offered(before, now) == expected


def test_functions_of_a_file_are_offered_and_the_file_is_not_run(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def loss(w): ...\ndef _hidden(): ...\ndef lost(w): ...\nraise SystemExit", "utf-8")
    for command in ("compare", "graph", "plan", "advise"):
        assert offered(command, f"{file}:lo") == [f"{file}:loss", f"{file}:lost"]
        assert offered(command, f"{tmp_path}/none.py:") == []
    file.write_text("def loss(", "utf-8")
    assert offered("compare", f"{file}:") == []


def test_the_modes_are_those_of_the_framework_that_the_file_imports(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import torch\n\n\ndef loss(x): ...\n\n\nraise SystemExit", "utf-8")
    assert offered(f"compare {file}:loss --modes", "reduce") == ["reduce-overhead"]
    assert offered(f"compare {file}:loss --mode", "fast=aot") == ["fast=aot()"]


def test_backends_are_offered_and_kept_for_the_next_time(tmp_path, monkeypatch):
    torch = find_engine("torch")
    if torch.missing:
        pytest.skip(torch.missing)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert offered("compare mine.py:f --framework torch --modes", "eager,cuda") == ["eager,cudagraphs"]
    monkeypatch.setattr(type(torch.words), "offer", None)
    assert offered("compare mine.py:f --framework torch --modes", "max-autotune-no") == ["max-autotune-no-cudagraphs"]
    assert "torch" in (tmp_path / "graphduel" / OFFERS).read_text("utf-8")


def test_every_workload_is_offered_where_a_cell_is_asked_for():
    assert offered("run --only") == sorted(workloads.names())
    assert offered("show") == [*workloads.names(), *claims.CLAIMS, "F1", "F2", "F3"]


def test_the_modes_are_those_of_the_run_that_is_named():
    run_there = offered(f"export {REFERENCE} --mode")
    assert "static-converted" in run_there
    assert set(run_there) < set(offered("export nowhere --mode")) | {"static-native"}


def test_a_shell_gets_its_completions_from_the_command():
    words = {"_GRAPHDUEL_COMPLETE": "bash_complete", "COMP_WORDS": "graphduel show rnn", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", "from compare.cli import main; main()"]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["plain,rnn_text"]
    assert done.stderr == ""
