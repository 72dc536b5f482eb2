"""docs/extending.md, done literally in a copy of the checkout: its files, its lines, its programs and its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import EXTENDING, FENCE, ROOT

SECTIONS = ("An op", "A pass", "A framework", "A workload", "A claim")
COPIED = ("graphs", "static", "dynamic", "compare", "tests", "docs", "pyproject.toml")


def copy_of_checkout(folder: Path) -> Path:
    """A copy of what the page changes and what its commands run."""
    for name in COPIED:
        here, there = ROOT / name, folder / name
        if here.is_dir():
            shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy(here, there)
    return folder


def section(name: str) -> str:
    """What the page says under one heading."""
    return EXTENDING.read_text("utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def python(folder: Path, *arguments: str) -> str:
    """What Python prints, run in the copy with the copy's packages."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_lines(text: str, change: str) -> str:
    """The text with each `+` line below the line that stands above it in the change."""
    above = ""
    for line in change.splitlines():
        sign, told = line[:1], line[1:]
        if sign == "+":
            assert text.count(f"{above}\n") == 1, f"{above!r} does not stand there once"
            text = text.replace(f"{above}\n", f"{above}\n{told}\n")
        else:
            assert sign == " "
            assert f"{told}\n" in text, f"{told!r} does not stand there"
        above = told
    return text


def done(name: str, folder: Path, *, commands: bool) -> list[str]:
    """Do what a section says, in order; what its commands printed, where they are run as well."""
    printed = []
    fences = list(FENCE.finditer(section(name)))
    for i, fence in enumerate(fences):
        file = re.search(r"file=(\S+)", fence[2])
        path = folder / file[1] if file else folder
        if fence[1] == "python" and file:
            path.parent.mkdir(exist_ok=True)
            path.write_text(fence[3], "utf-8")
        elif fence[1] == "diff":
            path.write_text(with_lines(path.read_text("utf-8"), fence[3]), "utf-8")
        elif fence[1] == "python":
            told = fences[i + 1]
            assert told[1] == "text"
            assert python(folder, "-W", "error", "-c", fence[3]) == told[3]
        elif fence[1] == "console" and commands:
            printed += [python(folder, "-m", "compare", *line.split()[1:]) for line in fence[3].splitlines()]
    return printed


def added(name: str) -> tuple[set[Path], int]:
    """The files or the folder that a section makes in the packages, and how many lines it adds to others."""
    fences = FENCE.findall(section(name))
    made = {Path(info.split("file=")[1]) for kind, info, _ in fences if kind == "python" and "file=" in info}
    made = {path for path in made if len(path.parts) > 1}
    lines = [line for kind, _, text in fences if kind == "diff" for line in text.splitlines() if line.startswith("+")]
    return made, len(lines)


@pytest.mark.parametrize("name", SECTIONS)
def test_each_is_one_file_or_folder_and_one_line(name: str) -> None:
    made, lines = added(name)
    assert len(made) == 1 or len({path.parent for path in made}) == 1
    assert lines == (2 if name == "A pass" else 1)  # a pass is imported where it is listed


REGISTERED = """
from compare import claims, engines, workloads
from compare.claims import regimes
from compare.claims.evidence import Evidence
from compare.records.record import Cell
from compare.suite import jobs
from compare.suite.settings import Settings

assert list(regimes.by_kind([Evidence("gated", "small", ())])) == ["networks over batches"]
assert Cell("gated", "small") in jobs.cells(Settings())
assert engines.named("differences").arms == ("differences",)
(check,) = jobs.check_jobs(Settings(claim="C9"))
assert (check.claim, check.kind) == ("C9", "repetition")
"""


def test_all_five_are_known_once_they_are_listed(tmp_path: Path) -> None:
    folder = copy_of_checkout(tmp_path)
    for name in SECTIONS:
        done(name, folder, commands=False)
    python(folder, "-c", REGISTERED)


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    folder = copy_of_checkout(tmp_path)
    printed = {name: done(name, folder, commands=True) for name in SECTIONS}
    (answer,), (cell,), (claim,) = (printed[name] for name in SECTIONS[2:])
    assert "in NumPy with differences" in answer
    assert "gated" in (folder / "reports/gated/report.md").read_text("utf-8")
    assert "gated" in cell
    assert re.search(r"C9 +Static graphs do not repeat work +supported", claim)
    assert "C8" not in claim
    tests = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    python(
        folder, *tests, "-k", "C9 or repetition", "tests/compare/test_registration.py", "tests/compare/test_claims.py"
    )
    python(folder, *tests, "-m", "not slow", "tests/graphs/test_ops.py")
