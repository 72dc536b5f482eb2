"""The notebooks of examples/: they run, and their outputs are what the code gives."""

import json
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = ("what_a_graph_is", "should_i_compile_this")


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def texts(output):
    """What is shown as text, and as a page, if it is."""
    data = output.get("data", {})
    return "".join(output.get("text", "")), "".join(data.get("text/plain", "")), "".join(data.get("text/html", ""))


def words(output):
    """What is shown but for where the nodes of a drawing lie, which depends on whether Graphviz is installed."""
    *plain, html = texts(output)
    return *plain, sorted(re.findall(r"<(?:title|text|t[dh]|p)\b[^>]*>([^<]*)", html))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_executed_small_and_without_what_names_a_machine(name):
    kept = (EXAMPLES / f"{name}.ipynb").read_text("utf-8")
    notebook = json.loads(kept)
    assert len(kept) < 300_000
    assert [cell["execution_count"] for cell in code(notebook)] == [*range(1, len(code(notebook)) + 1)]
    shown = [text for cell in code(notebook) for output in cell["outputs"] for text in texts(output)]
    assert any("<svg" in text or "<table" in text for text in shown)
    for word in (" object at 0x", "/tmp", "/home", "/root", "Traceback"):
        assert not any(word in text for text in shown), word


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_its_first_cell_to_its_last_and_asserts_what_it_says(name):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from docs.website import notebooks

    ran = notebooks.executed(name)
    kept = json.loads((EXAMPLES / f"{name}.ipynb").read_text("utf-8"))
    assert [len(cell["outputs"]) for cell in code(ran)] == [len(cell["outputs"]) for cell in code(kept)]
    if name == "what_a_graph_is":  # nothing is timed there, so that every output comes again
        for new, old in zip(code(ran), code(kept), strict=True):
            assert list(map(words, new["outputs"])) == list(map(words, old["outputs"]))
