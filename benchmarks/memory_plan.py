"""How much memory a training step is planned to take: `python -m benchmarks.memory_plan [SIZE...]`.

Of `FILE.csv` with the columns id, lower, upper and size it places the buffers: one lives from step lower to the step
before upper, and its offset is written behind its row.

Each row is one compiled step. `naive` is what its intermediate results would take with memory of their own each,
`bound` the most of them that are alive at once, `peak` the arena. Deterministic: nothing is timed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

import static
from benchmarks.programs import ROWS
from compare import engines, workloads
from graphs import dims
from static import memory
from static.memory import ALIGNMENT
from static.memory import schedule as scheduling

SIZES = ("small", "medium")


class Row(NamedTuple):
    """The plan of one executable, in bytes."""

    name: str
    naive: int
    bound: int
    peak: int

    def __str__(self) -> str:
        above = f"{self.peak / self.bound:7.3f}" if self.bound else f"{'-':>7}"
        share = f"{self.peak / self.naive:7.3f}" if self.naive else f"{'-':>7}"
        return f"{self.name:<44} {self.naive:>13,} {self.bound:>13,} {self.peak:>13,} {above} {share}"


def programs() -> Iterator[Row]:
    """The training steps that the engines are measured on."""
    for name, make in ROWS.items():
        row = make()
        yield measured(name, static.compile(static.value_and_grad(row.loss), row.params, *row.inputs))


def cells(sizes: Sequence[str] = SIZES, examples: int | None = None) -> Iterator[Row]:
    """Every workload under every shape policy: of the executables of its stream the one with the largest plan.

    With `examples` the stream is no longer than that.
    """
    for name in workloads.names():
        workload = workloads.get(name)
        for size in sizes:
            case = workload.case(size)
            for mode in workload.modes[1:]:
                step = engines.step(mode, case)
                for example in step.examples[:examples]:
                    step(*example)
                rows = [measured(f"{name} {size} {mode}", exe) for exe in step.executables()]
                yield max(rows, key=lambda row: row.peak)
                step.close()


def measured(name: str, executable: static.Executable) -> Row:
    """The plan for the sizes that were run last."""
    plan = executable.plan
    return Row(name, naive_bytes(executable), plan.lower_bound, plan.peak)


def naive_bytes(executable: static.Executable) -> int:
    """What the results of the traced graph take, each with memory of its own: without views, and what is returned.

    Of a branch or the body of a loop it counts one run. Sizes are rounded up as in the plan.
    """
    total = 0
    for graph in executable.traced.graph.nested():
        owner = scheduling.views(graph.nodes).owner
        for node in scheduling.in_arena(graph.nodes, graph.outputs, owner):
            total += -(-dims.evaluate(node.spec.nbytes, executable.sizes) // ALIGNMENT) * ALIGNMENT
    return total


def place_buffers(path: Path, seconds: float = 0.0) -> str:
    """The rows of a CSV file with an offset each, and a line on the peak, after a search of so many seconds."""
    rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines(), skipinitialspace=True))
    planned = memory.plan([tuple(int(row[name]) for name in ("lower", "upper", "size")) for row in rows], 1, seconds)
    lines = [",".join((*row.values(), str(offset))) for row, offset in zip(rows, planned.offsets, strict=True)]
    head = ",".join((*rows[0], "offset")) if rows else ""
    peak = f"peak {planned.peak}, lower bound {planned.lower_bound}, gap {planned.gap:.2%}"
    return "\n".join((head, *lines, peak))


@click.command()
@click.argument("what", nargs=-1)
@click.option("--time-limit", type=float, default=0.0, help="Search so many seconds for a better plan of FILE.csv.")
def main(what: tuple[str, ...], time_limit: float) -> None:
    """Print the table of the workloads at these sizes, or place the buffers of FILE.csv."""
    if what and what[0].endswith(".csv"):
        click.echo(place_buffers(Path(what[0]), time_limit))
        return
    click.echo(f"{'workload':<44} {'naive':>13} {'bound':>13} {'peak':>13} {'/bound':>7} {'/naive':>7}")
    for row in (*programs(), *cells(what or SIZES)):
        click.echo(row)


if __name__ == "__main__":
    main()
