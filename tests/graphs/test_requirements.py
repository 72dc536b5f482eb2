"""The declared versions: the oldest ones are those that `.ci/versions` installs."""

import re
import tomllib
from pathlib import Path

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
