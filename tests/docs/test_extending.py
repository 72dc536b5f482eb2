"""docs/extending.md, done literally in a copy of the checkout: its files, its lines, its programs and its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.test_docs import EXTENDING, FENCE, ROOT

SECTIONS = ("An op", "A pass", "A framework", "A workload", "A claim", "A column of a table")
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


def added(name: str) -> tuple[set[Path], dict[str, int]]:
    """The files that a section makes in the packages, and how many lines it adds to each of the others."""
    fences = FENCE.findall(section(name))
    made = {Path(info.split("file=")[1]) for kind, info, _ in fences if kind == "python" and "file=" in info}
    lines = {info.split("file=")[1]: text.count("\n+") for kind, info, text in fences if kind == "diff"}
    return {path for path in made if len(path.parts) > 1}, lines


@pytest.mark.parametrize("name", SECTIONS[1:])
def test_each_is_one_file_or_folder_and_one_line(name: str) -> None:
    made, lines = added(name)
    assert len({path.parent for path in made}) == (name != "A column of a table")
    assert [*lines.values()] == [2 if name == "A pass" else 1]  # a pass is imported where it is listed


def test_an_op_with_its_names_is_a_few_lines_of_one_file() -> None:
    made, lines = added("An op")
    assert (made, len(lines)) == (set(), 1)
    assert max(lines.values()) <= 8


REGISTERED = """
from compare import claims, engines, workloads
from compare.claims import regimes
from compare.claims.evidence import Evidence
from compare.records.record import Cell
from compare.plans import jobs
from compare.plans.settings import Settings

assert list(regimes.by_kind([Evidence("gated", "small", ())])) == ["networks over batches"]
assert Cell("gated", "small") in jobs.cells(Settings())
assert engines.find_engine("differences").mode_names == ("differences",)
(check,) = jobs.check_jobs(Settings(claim="C9"))
assert (check.claim, check.kind) == ("C9", "repetition")
"""


@pytest.mark.slow
def test_all_six_are_known_once_they_are_listed(tmp_path: Path) -> None:
    folder = copy_of_checkout(tmp_path)
    for name in SECTIONS:
        done(name, folder, commands=False)
    python(folder, "-c", REGISTERED)


OUTSIDE = """
from compare import claims, engines, workloads
from compare.plans import jobs
from compare.plans.settings import Settings

assert engines.frameworks()[-1] == "differences"
assert engines.of_mode("differences") is engines.find_engine("differences")
assert workloads.names()[-1] == "gated"
assert workloads.get("gated").case("small").params["gate"].shape == (16, 16)
(check,) = jobs.check_jobs(Settings(claim="C9"))
assert (check.claim, check.source) == ("C9", "c9_repetition:measure")
print(*engines.names(), *claims.CLAIMS)
"""


def distribution(folder: Path) -> Path:
    """An installed distribution with the files of the page and its entry points, and three that cannot be used."""
    for name in ("A framework", "A workload", "A claim"):
        for _, info, text in FENCE.findall(section(name)):
            if path := re.search(r"file=compare/\w+/(\S+py)", info):
                file = folder / path[1].replace("gated.", "gated_layer.")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text.replace("compare.claims.c9_repetition", "c9_repetition"), "utf-8")
    (toml,) = (text for kind, _, text in FENCE.findall(section("From another distribution")) if kind == "toml")
    groups = tomllib.loads(toml)["project"]["entry-points"]
    groups["graphduel.engines"] |= {"absent": "no_such_module:Engine", "torch": "differences:Differences"}
    groups["graphduel.workloads"] |= {"wrong": "differences:SMALL"}
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {of}\n" for name, of in names.items()) for group, names in groups.items()
    ]
    (folder / "mine-1.0.dist-info").mkdir()
    (folder / "mine-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", "utf-8")
    (folder / "mine-1.0.dist-info/entry_points.txt").write_text("".join(lines), "utf-8")
    return folder


def test_another_distribution_adds_them_and_a_broken_entry_point_costs_itself_alone(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(distribution(tmp_path))])}
    done = subprocess.run([sys.executable, "-c", OUTSIDE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        *("graphduel", "torch", "tensorflow", "jax", "autograd", "differences"),
        *map("C{}".format, range(1, 10)),
    ]
    assert [line.partition(" of mine 1.0: ")[::2] for line in done.stderr.splitlines()] == [
        (
            "left out: graphduel.engines absent = no_such_module:Engine",
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("left out: graphduel.engines torch = differences:Differences", "the name 'torch' is taken"),
        ("left out: graphduel.workloads wrong = differences:SMALL", "it is of type float, and no Workload"),
    ]


@pytest.mark.slow
def test_a_function_is_compared_in_an_engine_of_another_distribution(tmp_path: Path) -> None:
    step = next(text for _, info, text in FENCE.findall(section("A framework")) if info.endswith("file=step.py"))
    (tmp_path / "step.py").write_text(step, "utf-8")
    path = os.pathsep.join([str(ROOT), str(distribution(tmp_path / "site"))])
    command = ["-m", "compare", "compare", "step.py:loss", "--framework", "differences", "--processes", "1"]
    done = subprocess.run(
        [sys.executable, *command, "--seconds", "0.05"], env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in NumPy with differences" in done.stdout


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    folder = copy_of_checkout(tmp_path)
    printed = {name: done(name, folder, commands=True) for name in SECTIONS}
    (answer,), (cell,), (claim,) = (printed[name] for name in SECTIONS[2:5])
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
