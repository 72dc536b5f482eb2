"""The table of remedies: `python -m tests.peers.remedies_table [STEP...]` (needs PyTorch and JAX).

Each step of `remedy_steps` has a known fault and known best remedies. The command that a user would give tries what the
step asks for; a row says which change came first, whether it is a known one, and the seconds that all took.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compare.claims import remedies
from compare.records.results import find_results, read

FOLDER = Path(__file__).parent
BEST: dict[str, tuple[str, ...]] = {
    "batch_size": ("marked",),
    "sequence_length": ("marked",),
    "masked_loop": ("padded",),
    "dict_sizes": ("dynamic",),
    "varying_number": ("tensor-numbers",),
    "module_counter": ("dynamic-numbers",),
    "scheduled_rate": ("tensor-lr",),
    "scalar_result": ("scalars",),
    "printed_loss": ("no-print",),
    "value_branch": ("",),
    "optimizer_inside": ("model-optimizer", "model"),
    "backward_inside": ("traced-backward", "model"),
    "dear_first_call": ("Block",),
    "dear_guards": ("no-guards",),
    "dear_memory": ("checkpoint", "memory-budget"),
}
"""The known best remedies of each step, by the names of modes; "" where lines are shown and nothing is claimed."""


class Row(NamedTuple):
    """What one step gave: the changes that were tried, the best first, those that help, the seconds, and the answer.

    `processor` are the seconds of all its processes, which other work on the machine leaves out.
    """

    step: str
    tried: tuple[str, ...]
    gains: tuple[str, ...]
    refused: tuple[str, ...]
    seconds: float
    processor: float
    shown: str

    @property
    def first(self) -> str:
        """The change that is told first: it gains most, or gains at a price, or spares memory; "" for none."""
        return next(iter(self.gains), "")

    @property
    def rank(self) -> int:
        """The place of the first known best remedy among those that gain, from 1; 0 where it is not among them."""
        best = BEST[self.step]
        if best == ("",):
            return int("Not tried:" in self.shown)
        return next((place for place, name in enumerate(self.gains, 1) if name in best), 0)


def _processor_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def row_of(step: str, more: Sequence[str] = ()) -> Row:
    """Run the command on a step; `more` are further words of it."""
    file = FOLDER / "remedy_steps.py"
    with tempfile.TemporaryDirectory() as folder:
        out, start, spent = Path(folder, "out"), time.monotonic(), _processor_seconds()
        command = [sys.executable, "-m", "compare", "compare", f"{file}:{step}", "--inputs", f"{file}:{step}_inputs"]
        command += ["--threads", "1", "--remedies", "--out", str(out), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds, processor = time.monotonic() - start, _processor_seconds() - spent
        records = read(path) if out.exists() and (path := find_results(out)) else []
    tried = remedies.tried_changes(records)
    told = [each for each in tried if each.helps or each.trades]
    claimed = [*told, *(each for each in tried if each.spares and each not in told)]
    return Row(
        step,
        tuple(each.mode for each in tried),
        tuple(each.mode for each in claimed),
        tuple(each.mode for each in tried if each.refused),
        seconds,
        processor,
        done.stdout + done.stderr,
    )


def line(row: Row) -> str:
    """A line of the table in Markdown."""
    known = " or ".join(BEST[row.step]) if any(BEST[row.step]) else "shown alone"
    cells = (row.step, known, row.first or "none", str(row.rank), ", ".join(row.tried), ", ".join(row.refused))
    return f"| {' | '.join(cells)} | {row.seconds:.0f} | {row.processor:.0f} |"


def main() -> None:
    """Print the table, a line as soon as its step is done, and what each command showed into the folder of --keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", default=list(BEST))
    parser.add_argument("--processes", default="3")
    parser.add_argument("--modes", default="eager,compile", help="eager,aot-eager makes graphs alone, in little time")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    titles = ("step", "known", "claimed", "rank", "tried", "refused", "seconds", "of the processor")
    sys.stdout.write(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|\n")
    rows = []
    for step in asked.steps:
        rows.append(row := row_of(step, ("--processes", asked.processes, "--modes", asked.modes)))
        if asked.keep:
            asked.keep.mkdir(parents=True, exist_ok=True)
            (asked.keep / f"{row.step}.txt").write_text(row.shown, "utf-8")
        sys.stdout.write(f"{line(row)}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{sum(row.rank == 1 for row in rows)} of {len(rows)} found, and ranked first.\n")


if __name__ == "__main__":
    main()
