"""Stubs import each name from where it is defined, and checkers of types refuse a name that does not exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphs.testing import stubs

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = """import dynamic
import dynamic as torch
import graphs as g

g.tanhh(1.0)
dynamic.tanhh(1.0)
torch.tensor([1.0]).tanhh()
torch.tensor([1.0]).tanhh_()
torch.nn.functional.tanhh(1.0)
torch.optim.SDG([])
"""
LINES = [5, 6, 7, 8, 9, 10]
KNOWN = """import compare
import dynamic as torch
import graphs as g
from dynamic.func import vmap
from compare.own import Result


def loss(x: torch.Tensor) -> object:
    return g.mean(g.tanh(x))


result: Result = compare.compare(loss, [(torch.ones(3),)])
names = (vmap, torch.conv2d, torch.exp_, torch.cuda.is_available(), torch.special.erf, g.savetxt, g.stats)
torch.ones(3).clamp(0.5).add_(1).uniform_().new_zeros(2).float()
"""


@pytest.fixture(scope="module", autouse=True)
def written():
    """The stubs of the packages as they are now, beside their modules."""
    subprocess.run([sys.executable, "-m", "graphs.testing.stubs"], cwd=ROOT, check=True)


@pytest.mark.parametrize("package", stubs.PAGES)
def test_the_tape_in_python_has_the_same_names(package):
    kept = stubs.place(package).read_text("utf-8")
    program = f"from graphs.testing import stubs; print(stubs.PAGES[{package!r}](), end='')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"GRAPHDUEL_TAPE": "python"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == kept


def test_a_name_is_imported_from_where_it_is_defined():
    page = stubs.PAGES["dynamic"]()
    assert " tan as tan," in page.partition("from graphs.frontends.torch.functions import")[2]
    assert stubs.public_names("graphs.ops")["tanh"] == "graphs.ops.elementwise"
    page = stubs.PAGES["graphs.frontends.torch.functions"]()
    assert " clamp as clamp," in page.partition("from graphs.frontends.torch.arithmetic import")[2].partition(")")[0]
    assert "\n    def clamp_(self, min: Any = None, max: Any = None) -> Self: ...\n" in page


def checked(*command: str, folder: Path) -> list[str]:
    """The lines of a checker of types that are errors."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if re.search(r":\d+(:\d+ -|:) error: ", line)]


def mypy(folder: Path, file: str) -> list[str]:
    pytest.importorskip("mypy")
    (folder / "mypy.ini").write_text(f"[mypy]\nmypy_path = {ROOT}\nfollow_imports = silent\n", "utf-8")
    return checked(sys.executable, "-m", "mypy", file, folder=folder)


def pyright(folder: Path, file: str) -> list[str]:
    command = shutil.which("pyright") or pytest.skip("pyright is not installed")
    (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{ROOT.as_posix()}"]}}', "utf-8")
    return checked(command, "--pythonpath", sys.executable, file, folder=folder)


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_refuses_what_is_not_there(checker, tmp_path):
    (tmp_path / "unknown.py").write_text(UNKNOWN, "utf-8")
    (tmp_path / "known.py").write_text(KNOWN, "utf-8")
    refused = checker(tmp_path, "unknown.py")
    assert [int(re.search(r"\.py:(\d+)", line)[1]) for line in refused] == LINES
    assert checker(tmp_path, "known.py") == []


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_takes_the_programs_of_the_readme(checker, tmp_path):
    page = (ROOT / "README.md").read_text("utf-8")
    alone = re.findall(r"^```python file=\S+\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    others = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert alone
    assert others
    for program in (*alone, "\n".join(others)):  # a later one goes on from those before it
        (tmp_path / "program.py").write_text(program, "utf-8")
        assert checker(tmp_path, "program.py") == []


@pytest.mark.slow
def test_a_stub_agrees_with_what_is_loaded(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "graphs", "dynamic", "--concise"]
    command += ["--mypy-config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "not checking stubs" not in done.stdout + done.stderr
    of_stubs = re.compile(r"(graphs|dynamic)(\.\w+)? ")  # not of the files, which hold their own types
    assert [line for line in done.stdout.splitlines() if of_stubs.match(line)] == []
