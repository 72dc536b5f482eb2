"""The table of outcomes: `python -m tests.situations [--only WORDS] [--show N] [--missing] [--waiting]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.situations import axes
from tests.situations.rows import ROWS
from tests.situations.running import faults, run


def main() -> None:
    """Run the rows that are asked for; a line for each, and exit code 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows with all of these words, with commas between them")
    parser.add_argument(
        "--show", default="", help="print the files of the rows with these words in their names, and what is said"
    )
    parser.add_argument("--missing", action="store_true", help="print rows for the pairs that none has")
    parser.add_argument("--waiting", action="store_true", help="run those that wait for a mend as well")
    parser.add_argument("--python", default=sys.executable, help="run the graphduel of this interpreter")
    asked = parser.parse_args()
    if asked.missing:
        for values in axes.covering([row.values for row in ROWS if row.values]):
            print(f"    row({', '.join(f'{chr(34)}{values[axis]}{chr(34)}' for axis in axes.AXES)}),")
        return
    wrong = 0
    words = (asked.show or asked.only).split(",")
    for row in ROWS:
        if not all(word in row.name for word in words) or (row.waits and not (asked.waiting or asked.show)):
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(row, Path(folder), asked.python)
        found = list(faults(outcome, row.right))
        wrong += bool(found)
        print(f"{row.name}  {time.perf_counter() - began:.0f} s  {'; '.join(found) or 'right'}", flush=True)
        if asked.show:
            print(
                *(f"--- {path}\n{text}" for path, text in row.files.items()), "---", row.place, outcome.shown, sep="\n"
            )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
