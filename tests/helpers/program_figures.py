"""What PyTorch leaves behind of each program: `python -m tests.helpers.program_figures` writes it (needs PyTorch)."""

from __future__ import annotations

import json
from pathlib import Path

from tests import programs

PAGE = Path(__file__).parents[1] / "data" / "torch_programs.json"


def stored() -> dict[str, list[float]]:
    """The figures by the name of the program."""
    found: dict[str, list[float]] = json.loads(PAGE.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    figures = {name: programs.losses(name, "torch").tolist() for name in programs.NAMES}
    PAGE.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
