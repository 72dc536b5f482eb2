"""The compiled tape is built wherever it can be, and where it cannot the remedy is said."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from dynamic import tapes

pytest.importorskip("setuptools")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build():
    """The backend that pyproject.toml names, with one compiler that answers."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]
    (folder,) = asked["backend-path"]
    spec = importlib.util.spec_from_file_location("backend", ROOT / folder / f"{asked['build-backend']}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("answers", "has_headers", "system", "asks"),
    [
        (True, True, "linux", False),
        (False, True, "linux", True),
        (False, True, "darwin", True),
        (False, False, "linux", False),  # a compiler alone is of no use
        (False, True, "win32", False),
    ],
)
def test_a_compiler_is_asked_for_where_none_answers_and_it_is_of_use(
    build, monkeypatch, tmp_path, answers, has_headers, system, asks
):
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(build, "HEADER", tmp_path / ("Python.h" if has_headers else "none.h"))
    monkeypatch.setattr(build, "answers", lambda _: answers)
    monkeypatch.setattr(build.sys, "platform", system)
    monkeypatch.setattr(build, "_own", lambda: None)
    monkeypatch.setattr(build, "_for_wheel", lambda _: ["numpy"])
    monkeypatch.setattr(build, "_for_editable", lambda _: ["numpy"])
    for hook in (build.get_requires_for_build_wheel, build.get_requires_for_build_editable):
        wanted = hook(None)
        assert wanted[0] == "numpy"
        assert [name.partition(";")[0] for name in wanted[1:]] == ["ziglang"] * asks


def test_a_compiler_that_is_not_there_does_not_answer(build, monkeypatch, tmp_path):
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    assert not build.answers(build._own())


def test_the_compiler_of_the_wheel_makes_code_for_each_processor(build):
    assert "-mcpu=baseline" in build.ZIG
    assert not any("native" in option for option in (*build.ZIG, *build.OPTIONS))


@pytest.mark.parametrize(("has_headers", "needed"), [(True, "a C compiler"), (False, "Python's headers (python3-dev")])
def test_what_is_missing_is_said_with_the_remedy(monkeypatch, tmp_path, has_headers, needed):
    if has_headers:
        (tmp_path / "Python.h").touch()
    monkeypatch.setattr(tapes, "_fast", None)
    monkeypatch.setattr(tapes.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.delenv("GRAPHDUEL_TAPE", raising=False)
    assert tapes.remedy().startswith(f"the compiled tape is missing: install {needed}")
    monkeypatch.setenv("GRAPHDUEL_TAPE", "python")
    assert not tapes.remedy()
