"""No name of PyTorch's means something else in `dynamic`: the table of docs/torch-names.md, made again."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynamic
from tests.peers import torch_table

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
pytestmark = pytest.mark.peers

PAGE = Path(__file__).parents[2] / "docs" / "torch-names.md"


@pytest.mark.parametrize("path", torch_table.SPACES)
def test_no_name_means_something_else(path: str) -> None:
    found = torch_table.rows(path, torch, dynamic)
    assert [line for row in found for line in row.different] == []
    assert sum(row.same for row in found) > 1000  # PyTorch took the arguments, and both were compared


def test_the_page_has_a_row_for_every_name_that_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in torch_table.SPACES:
        section = text.partition(f"## {path}\n")[2].partition("\n## ")[0]
        listed = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
        space, ours = torch_table.space_of(torch, path), torch_table.space_of(dynamic, path)
        assert listed == {n for n in torch_table.public(space) if hasattr(ours, n) and n != "dtype"}


def test_a_function_that_differs_is_found() -> None:
    class Wrong:
        Tensor = dynamic.Tensor
        tensor = staticmethod(dynamic.tensor)
        int64, float64 = dynamic.int64, dynamic.float64

        @staticmethod
        def add(input: object, other: object) -> object:
            return dynamic.sub(input, other)

    (row,) = torch_table.rows("torch", torch, Wrong, ["add"])
    assert row.verdict == "different"
    assert row.different[0].startswith("a, b")
