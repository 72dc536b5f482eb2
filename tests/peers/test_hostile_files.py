"""`graphduel compare --framework torch` on files that end, hang, fork or tamper: always an answer or an error."""

import os

import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from tests.helpers.hostile import NAMED, source

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the files use signals and forks"),
]
TORCH = (
    "import torch",
    "torch.tanh(x @ w).square().mean()",
    "batches = [(torch.ones(3, 2, requires_grad=True), torch.ones(4, 3))]",
)
ALONE = ("--processes", "0", "--modes", "eager", "--limit", "10")
WORKERS = ("--processes", "1", "--modes", "eager", "--limit", "10")
NAMES = (
    "sys.exit in the function",
    "sys.exit at import",
    "_exit by another name",
    "KeyboardInterrupt",
    "a crash in C",
    "a loop without end at import",
    "a thread that goes on",
    "an exit handler that ends",
    "a fork at import",
    "a fork in the function",
    "another folder",
    "closed descriptors",
    "bytes that are no text",
    "another stdout",
    "a file that removes itself",
    "modules gone",
    "another program by another name",
)
"""Those in which PyTorch's way differs from that of graphduel's engines, and one of each kind."""


def compared(folder, hostile, options):
    (folder / "mine.py").write_text(source(hostile, *TORCH), "utf-8")
    arguments = ["compare", "mine.py:loss", "--framework", "torch", "--seconds", "0.01", *options]
    return CliRunner().invoke(graphduel, arguments)


def check(done, hostile):
    answered = done.stdout.count("Only eager was measured.")
    if hostile.told is None:
        assert (done.exit_code, answered) in {(0, 1), (3, 1)}, done.output
        return
    assert (done.exit_code in (1, 2), answered) == (True, 0), done.output
    told = hostile.told.replace("called loss", "made call 1 in eager").replace("6 s", "10 s")
    assert hostile.code == 5 or told in done.output


@pytest.mark.parametrize("name", NAMES)
def test_there_is_an_answer_or_an_error(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    check(compared(tmp_path, NAMED[name], ALONE), NAMED[name])


@pytest.mark.parametrize("name", ["os._exit at import", "a crash in C", "a loop without end", "another folder"])
def test_in_fresh_processes_too(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    check(compared(tmp_path, NAMED[name], WORKERS), NAMED[name])
