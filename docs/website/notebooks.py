"""The notebooks of examples/, executed: `python -m docs.website.notebooks` writes their outputs into them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = ("what_a_graph_is", "should_i_compile_this")
TIMEOUT = 300
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def executed(name: str) -> Any:
    """A notebook whose cells ran in a fresh kernel. Raises CellExecutionError for a cell that fails."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=TIMEOUT, kernel_name="python3", record_timing=False, resources={"metadata": {"path": "/"}}
    )
    client.execute()
    for output in (one for cell in notebook.cells for one in cell.get("outputs", ())):
        if "text" in output:
            output.text = _ESCAPE.sub("", output.text)
    notebook.metadata["language_info"] = {"name": "python"}  # not the version of Python that happened to run it
    return notebook


def main() -> None:
    """Execute all, then write all."""
    found = {name: executed(name) for name in NOTEBOOKS}
    for name, notebook in found.items():
        nbformat.write(notebook, EXAMPLES / f"{name}.ipynb")


if __name__ == "__main__":
    main()
