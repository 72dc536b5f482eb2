"""The table of training files: `python -m tests.peers.training_table [FILE...]` (needs PyTorch).

Each file runs as a user would run it: `graphduel compare FILE:FUNCTION --engines torch,graphduel`, for as short as it
takes. The function is the last of the file. A row says which modes were shown right and timed, and why others were not.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compare.subjects.subject import OURS

FOLDER = Path(__file__).parent / "training_files"
MODES = ("torch-eager", "torch-compile", "dynamic", "static-exact", *OURS[2:])
SEVERAL_CORES = "threads"
"""The rung that a machine of one core has not."""
BRIEF = ("--processes", "0", "--seconds", "0.01")


class Row(NamedTuple):
    """What one file gave: the modes that were timed, the reasons of the others, and whether there is a ladder."""

    name: str
    function: str
    timed: tuple[str, ...]
    refused: dict[str, str]
    ladder: bool
    exit_code: int
    shown: str

    @property
    def whole(self) -> bool:
        """Whether every mode was timed, and every rung of the ladder."""
        return self.timed == MODES and self.ladder


def function_of(path: Path) -> str:
    """The last function of a file."""
    body = ast.parse(path.read_text("utf-8")).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef)][-1]


def row_of(path: Path, modes: Sequence[str] = ()) -> Row:
    """Run the command on a file."""
    function = function_of(path)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answer.json")
        command = [sys.executable, "-m", "compare", "compare", f"{path}:{function}", "--engines", "torch,graphduel"]
        command += [*BRIEF, "--json", str(out), *(["--modes", ",".join(modes)] if modes else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        answer = json.loads(out.read_text("utf-8")) if out.exists() else {"verdict": {}, "records": []}
    verdict = answer["verdict"]
    steady = verdict["steady"]["values"] if verdict else {}
    refused = verdict.get("refused", {"all": done.stderr.strip().rpartition("\n")[2]})
    ladders = [record for record in answer["records"] if record["kind"] == "ladder"]
    rungs = [rung for record in ladders for name, rung in record["rungs"].items() if name != SEVERAL_CORES]
    ladder = bool(rungs) and all(rung["status"] == "ok" for rung in rungs)
    timed = tuple(mode for mode in MODES if mode in steady)
    return Row(path.stem, function, timed, refused, ladder, done.returncode, done.stdout + done.stderr)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """A table in Markdown: a line for each file."""
    yield "| file | function | whole table | missing | why |"
    yield "|---|---|---|---|---|"
    for row in rows:
        missing = [mode for mode in MODES if mode not in row.timed] + ([] if row.ladder else ["ladder"])
        reasons = "; ".join(dict.fromkeys(row.refused.values())).replace("|", "\\|").replace("\n", " ")
        answer = "yes" if row.whole else "no"
        yield f"| `{row.name}` | `{row.function}` | {answer} | {', '.join(missing)} | {reasons} |"


def main() -> None:
    """Print the table; progress goes to stderr, and what each command showed into the folder of --keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--modes", type=lambda names: names.split(","), default=())
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    rows = []
    for path in asked.files or sorted(FOLDER.glob("*.py")):
        row = row_of(path, asked.modes)
        if asked.keep:
            (asked.keep / f"{row.name}.txt").write_text(f"{row.shown}\nexit code {row.exit_code}\n", "utf-8")
        sys.stderr.write(f"{row.name}: {len(row.timed)} modes, ladder {row.ladder}, exit code {row.exit_code}\n")
        rows.append(row)
    sys.stdout.write("\n".join([*lines(rows), ""]))
    sys.stdout.write(f"\n{sum(row.whole for row in rows)} of {len(rows)} files give the whole table.\n")


if __name__ == "__main__":
    main()
