"""docs/ops.md is what the op library says of itself now."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynamic
import graphs
import static
from graphs.testing import table
from tests.helpers.together import together

ROOT = Path(__file__).resolve().parents[2]
ENGINES = table.Engines(static, dynamic)


@pytest.mark.slow
def test_the_page_is_up_to_date():
    page = (ROOT / "docs" / "ops.md").read_text("utf-8")
    fresh = table.table(ENGINES)
    stale = sorted(set(page.splitlines()) ^ set(fresh.splitlines()))
    assert page == fresh, f"run: python -m graphs.testing.table > docs/ops.md\n{stale}"
    assert len(page.splitlines()) < 400


@together("name", table.functions())
def test_every_public_function_has_a_docstring_and_a_sample(name):
    assert table.find_function(name).__doc__
    call = table.calls(name)[0]
    call(*call.arrays)


def test_every_name_of_the_standard_is_here_or_has_a_reason():
    absent = {name for name in table.STANDARD if name not in (*graphs.__all__, *graphs.linalg.__all__)}
    assert absent == {name for name in table.REASONS if name in absent}
    assert absent & table.CORE == {"conj", "imag", "real"}


def test_the_forms_are_told_apart():
    found = {name: _form(name) for name in ("abs", "relu", "sort", "tanh", "reciprocal", "hypot", "floor", "sign")}
    assert found == {
        **dict.fromkeys(("abs", "relu", "sort"), "piecewise"),
        **dict.fromkeys(("tanh", "reciprocal", "hypot"), "smooth"),
        **dict.fromkeys(("floor", "sign"), "constant"),
    }


def _form(name):
    call = table.calls(name)[0]
    return table.form(call, table.differentiable(call, ENGINES), ENGINES)


def test_dtypes_are_grouped():
    assert table.group_dtypes(table.DTYPES) == "bool, int, float"
    assert table.group_dtypes(["bool", "int8", "float16", "float32", "float64"]) == "bool, int8, float"
