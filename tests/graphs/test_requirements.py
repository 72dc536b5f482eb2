"""The declared versions: the oldest ones are those that `.ci/versions` installs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def release(version):
    """A version as numbers, without the zeros that it may end in."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def test_the_oldest_libraries_tested_are_the_oldest_declared():
    declared = dict(re.fullmatch(r"([\w\[\]]+)>=([\d.]+)", each).groups() for each in PROJECT["dependencies"])
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if "==" in line)
    assert tested.keys() == declared.keys()
    for name, version in tested.items():
        assert release(version) == release(declared[name]), name


def test_the_oldest_python_tested_is_the_oldest_declared():
    script = (ROOT / ".ci" / "versions").read_text()
    versions = re.search(r"for version in ([\d. ]+);", script).group(1).split()
    assert f">={versions[0]}" == PROJECT["requires-python"]
    classified = [c.rpartition(" :: ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert set(classified) <= set(versions)


SUB_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
run = getattr(interpreters, "exec", None) or interpreters.run_string
made = interpreters.create()
try:
    failed = run(made, "import {module}")
    assert failed is not None
    raise ImportError(failed.msg)
except Exception as error:
    print(error)
"""
UNLOCKED = """
import sys
sys._is_gil_enabled = lambda: False
try:
    import {module}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("module", ["graphs", "dynamic", "static"])
def test_no_other_interpreter_than_the_main_one_with_its_lock_is_run_in(module):
    for program, said in ((SUB_INTERPRETER, "is not for sub-interpreters"), (UNLOCKED, "PYTHON_GIL=1 or -X gil=1")):
        command = [sys.executable, "-c", program.replace("{module}", module)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert said in done.stdout
