"""`python -m tests.peers.opdb [--op NAME]... [--errors] [--reference] [--shift N] [--jobs N]`: a table, then sums."""

from __future__ import annotations

import argparse
import sys

from tests.peers.opdb.comparing import VERDICTS
from tests.peers.opdb.running import ADJUDICATED, Asked, Row, rows, totals


def main() -> int:
    """Print a row for each op and what differs; the exit code says whether something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers.opdb", description=__doc__)
    parser.add_argument("--op", action="append", help="only this op of PyTorch's; may be given many times")
    parser.add_argument("--errors", action="store_true", help="the calls that PyTorch refuses")
    parser.add_argument("--reference", action="store_true", help="the many more inputs of numeric ops")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one sample in N")
    parser.add_argument("--shift", type=int, default=0, help="the layout of the first sample, of 4")
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("WHICH", "OF"), help="some of the ops")
    parser.add_argument("--dtypes", nargs="+", default=Asked().dtypes, help="such as float16 uint8")
    parser.add_argument("--only", nargs="+", metavar="VERDICT", help=f"show only these of: {', '.join(VERDICTS)}")
    parser.add_argument("--lines", type=int, default=3, help="how many calls of an op and verdict are shown")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    found = []
    asked = Asked(options.errors, options.reference, options.every, tuple(options.dtypes), options.shift)
    for row in rows(options.op, asked, options.jobs, tuple(options.part)):
        found.append(row)
        _show(row, options.only, options.lines)
    total = totals(found)
    sys.stdout.write("\n" + "".join(f"{total[name]:8,}  {name}\n" for name in (*VERDICTS, ADJUDICATED)))
    return int(any(count for name, count in total.items() if name.startswith(("wrong", "raw", "answered"))))


def _show(row: Row, only: list[str] | None, most: int) -> None:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(row.counts.items()))
    lines = [line for line in row.lines if not only or line[0] in only]
    if lines or not only:
        sys.stdout.write(f"{row.name}: {counts or 'no calls'}\n")
    shown: dict[str, int] = {}
    for name, line in lines:
        shown[name] = shown.get(name, 0) + 1
        if shown[name] <= most:
            sys.stdout.write(f"    {line[:600]}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
