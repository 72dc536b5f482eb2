"""How many bytes each workload holds, and reaches in a step: `python -m benchmarks.peaks [WORKLOAD...]`.

A row is a workload, small, in one mode, beside the figures of `benchmarks/peaks.json`. What differs by 5% or more is
told, and the command ends with 1, so that a change that takes more memory is seen. `--save` writes the figures anew.

Only NumPy's bytes are counted (`compare.instruments.memory`), so that nothing depends on the clock. A processor with
vectors of another width may compute a product the other way round, in more memory: the file says whose figures it has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from compare import workloads
from compare.instruments.memory import measure_mode
from compare.run.environment import pin
from compare.text import show_table
from graphs.files import write_file

FILE = Path(__file__).with_suffix(".json")
SIZE = "small"
TOLERANCE = 0.05
"""The share by which bytes may differ untold."""
LEAST = 1024
"""The bytes that are too few to be told of."""


class Bytes(NamedTuple):
    """What a mode holds between steps, and what a step reaches above that."""

    held: int
    peak: int

    def change_from(self, before: Bytes) -> float:
        """The larger of the two changes, as a share: 0.1 for a tenth more; 0 where fewer bytes than `LEAST` changed."""
        pairs = [(new, old) for new, old in zip(self, before, strict=True) if abs(new - old) >= LEAST]
        return max(((new - old) / max(old, 1) for new, old in pairs), key=abs, default=0.0)


Figures = Mapping[str, Bytes]


def measured(names: Sequence[str]) -> Iterator[tuple[str, Bytes]]:
    """The bytes of each mode of these workloads, by `workload mode`."""
    for name in names:
        workload = workloads.get(name)
        case = workload.case(SIZE)
        for mode in workload.modes:
            row = measure_mode(mode, case)
            yield f"{name} {mode}", Bytes(row.held, row.peak)


def changes(now: Figures, before: Figures) -> dict[str, float]:
    """The changes that are told, by `workload mode`: those of the tolerance or more. A row that is new has none."""
    shares = {name: now[name].change_from(before[name]) for name in now.keys() & before.keys()}
    return {name: share for name, share in shares.items() if abs(share) >= TOLERANCE}


def load() -> dict[str, Bytes]:
    """The figures of the file."""
    return {name: Bytes(*figures) for name, figures in json.loads(FILE.read_text()).items()}


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--save", is_flag=True, help="Write the figures of these workloads into the file.")
def main(names: tuple[str, ...], save: bool) -> None:
    """Measure, show and compare."""
    pin()
    now, before = dict(measured(names or workloads.names())), load() if FILE.exists() else {}
    told = {} if save else changes(now, before)
    rows = [
        (name, f"{figures.held:,}", f"{figures.peak:,}", f"{told[name]:+.0%}" if name in told else "")
        for name, figures in now.items()
    ]
    show_table(("workload and mode", "bytes held", "a step reaches above", "change"), rows)
    if save:
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(figures)}" for name, figures in {**before, **now}.items()
        )
        write_file(FILE, f"{{\n{lines}\n}}\n".encode())
    sys.exit(1 if told else 0)


if __name__ == "__main__":
    main()
