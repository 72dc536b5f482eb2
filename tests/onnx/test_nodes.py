"""Every node test that the package onnx makes: right in NumPy and compiled, or refused by name when it is loaded."""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from typing import Any

import pytest

import static
from graphs.errors import ControlFlowError
from graphs.frontends.onnx.reading import UntranslatedError
from tests.helpers.together import check_each
from tests.onnx import node_cases

REFUSAL = re.compile(r"\w+ \(node .+, domain ai.onnx\)|the (input|tensor) \w+: tensors here hold")
VALUES_DECIDE = re.compile("test_unique_sorted_with_|test_nonzero|test_loop11")
"""Whose results have shapes that values decide, or that change from turn to turn: refused in a graph, by their node."""


@pytest.mark.slow
def test_node_tests_pass_or_are_refused_by_name() -> None:
    counts: collections.Counter[str] = collections.Counter()

    def check(case) -> None:
        model = node_cases.read(case)
        if isinstance(model, UntranslatedError):
            assert REFUSAL.match(str(model)), model
            counts["refused"] += 1
            return
        node_cases.check(case, model)
        counts["passed"] += 1
        counts["passed of 13 to 22"] += 13 <= node_cases.opset(case) <= 22

    check_each(node_cases.cases(), check, lambda case: case.name)
    assert counts["passed"] >= 1500, counts  # 1554 of 1843 with onnx 1.23
    assert counts["passed of 13 to 22"] >= 950, counts  # 993 of 1033


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "part", "least"), [("numpy", 1, 1500), ("native", 4, 375)])
def test_node_tests_pass_compiled_or_are_refused_by_name(backend: str, part: int, least: int) -> None:
    """All of them with NumPy's kernels, and one in `part` in native code.

    Where values decide about shapes, those of the data are known in the graph; what is refused then is by its node.
    """
    if backend == "native":
        pytest.importorskip("llvmlite")
    counts: collections.Counter[str] = collections.Counter()

    def check(case) -> None:
        model = node_cases.read(case)
        if isinstance(model, UntranslatedError):
            return
        for kinds in ("", "biu", "biuf"):
            try:
                node_cases.check(case, lambda *args: compiled(model, node_cases.known(args, kinds), backend))  # noqa: B023
            except ControlFlowError as refusal:
                assert "of the model" in "".join(refusal.__notes__), refusal  # noqa: PT017  (with its node)
            else:
                counts["passed"] += 1
                return
        assert VALUES_DECIDE.match(case.name), case.name
        counts["values decide"] += 1

    check_each(node_cases.cases()[::part], check, lambda case: case.name)
    assert counts["passed"] >= least, counts  # all but 5 of 1554 in either with onnx 1.23


def compiled(model: Any, args: Sequence[Any], backend: str) -> Any:
    return static.compile(model, *args, backend=backend)(*args)
