"""Run the command on a row's file, and say what is wrong with the answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.situations.rows import Right, Row

ROOT = Path(__file__).resolve().parents[2]
BRIEF = ("--processes", "0", "--seconds", "0.05")
ASKED = {"torch": ("--modes", "eager,aot-eager"), "stand-in": ("--engines", "graphduel")}
"""The cheapest modes that show the kind of a row; where none are named here, those that the command takes by itself."""
RAW = re.compile(
    r"Traceback \(most recent|not measured yet"
    r"|\bdtype=\w+\)|(?<!compare with: )(?<!\w)(?:Type|Attribute|Key|Index|Runtime|NotImplemented|UnboundLocal)Error:"
)
"""What no answer shows: an error as Python prints it, and an excuse."""

NOTEBOOK = """
import json, sys
import compare
path, out, name, framework, *modes = sys.argv[1:]
exec(open(path).read())
modes = modes[0].split(",") if modes else None
result = compare.compare(globals()[name], batches(), modes, framework=framework, seconds=0.05, processes=0)
print(result)
open(out, "w").write(json.dumps(result.to_dict()))
sys.exit(result.exit_code)
"""


@dataclass
class Outcome:
    """What the command has shown, its exit code, and its answer as JSON."""

    code: int
    shown: str
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def times(self) -> dict[str, float]:
        """Seconds of a call in each mode that was timed."""
        verdict = self.answer.get("verdict") or {}
        return (verdict.get("steady") or {}).get("values", {})

    @property
    def compiles(self) -> dict[str, int]:
        """How often each mode compiled."""
        return (self.answer.get("verdict") or {}).get("compiles", {})

    @property
    def refused(self) -> dict[str, str]:
        """Why a mode was not timed."""
        return (self.answer.get("verdict") or {}).get("refused", {})


def run(row: Row, folder: Path, python: str = sys.executable) -> Outcome:
    """What the command answers on the row's files, in a folder of their own; another Python has its own graphduel."""
    home = folder / "lib" / "site-packages" if row.is_installed else folder
    for path, text in row.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, "utf-8")
    out = folder / "answer.json"
    environment = {**os.environ, "PYTHONPATH": str(home), "COLUMNS": "200"}
    if python == sys.executable:
        environment["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    asked = row.options or ASKED.get(row.framework, ())
    if row.is_notebook:
        command = [
            python,
            "-c",
            NOTEBOOK,
            str(home / "f.py"),
            str(out),
            row.place.rpartition(":")[2],
            row.framework,
            *asked[1:],
        ]
    else:
        command = [python, "-m", "compare", "compare", row.place, *BRIEF, *asked, "--json", str(out)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    answer = json.loads(out.read_text("utf-8")) if out.exists() else {}
    return Outcome(done.returncode, done.stdout + done.stderr, answer)


def faults(outcome: Outcome, right: Right) -> Iterator[str]:
    """What is wrong with the answer; nothing where it is right."""
    if outcome.code not in right.codes:
        yield f"exit code {outcome.code}, and {' or '.join(map(str, right.codes))} is right"
    for words in RAW.findall(outcome.shown):
        yield f"shows {words!r}"
    yield from (f"does not say {words!r}" for words in right.says if words not in " ".join(outcome.shown.split()))
    yield from _of_modes(outcome, right)
    if len(outcome.times) < right.timed:
        yield f"{sorted(outcome.times)} timed, and {right.timed} are right"
    if right.faster and min(outcome.times, key=outcome.times.__getitem__, default="") != right.faster:
        yield f"{right.faster} is not the fastest of {outcome.times}"


def _of_modes(outcome: Outcome, right: Right) -> Iterator[str]:
    for mode, words in right.refused.items():
        if words not in outcome.refused.get(mode, ""):
            yield f"{mode} is refused with {outcome.refused.get(mode)!r}, and {words!r} is right"
    for mode, why in outcome.refused.items():
        if mode not in right.refused:
            yield f"{mode} is not timed: {why}"
    for mode, times in right.compiles.items():
        if outcome.compiles.get(mode) != times:
            yield f"{mode} compiles {outcome.compiles.get(mode)} times, and {times} are right"
