"""How compilation grows with the graph: `python -m benchmarks.compile_time`.

Graphs of eight shapes, each with its gradient, in more and more nodes: seconds of CPU in each phase of a compilation,
saving and loading included, and the exponent of its growth from each size to the next. 1 is linear.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import click

import static
from benchmarks import deep, summary
from benchmarks.table import chosen
from compare.instruments.rounds import without_collection
from compare.run.environment import environment, pin
from compare.text import show_table
from static import clock

NODES = (1_000, 4_000, 16_000, 100_000)
START, END = "<!-- tables, made by benchmarks.compile_time --page -->", "<!-- end of tables of compile_time -->"


class Compiled(NamedTuple):
    """A compilation: the nodes that were traced, and the seconds of CPU of each phase."""

    traced: int
    seconds: Mapping[str, float]

    @property
    def total(self) -> float:
        """The seconds of `static.compile`: without saving and loading."""
        return sum(seconds for name, seconds in self.seconds.items() if name not in ("save", "load"))


def measured(name: str, nodes: int) -> Compiled:
    """Compile a shape in about so many nodes, save and load it."""
    f, args = deep.program(name, deep.steps(name, nodes))
    stored: clock.Seconds = {}
    with without_collection(), tempfile.TemporaryDirectory() as folder:
        executable = static.compile(f, *args)
        file = Path(folder) / "graph"
        with clock.adding_to(stored):
            executable.save(file)
        stored["load"] = sum(static.load(file).seconds.values())
    return Compiled(len(executable.traced.graph), {**executable.seconds, **stored})


def exponents(seconds: Sequence[float], nodes: Sequence[int]) -> list[float]:
    """By which power of the nodes the seconds grow, from each size to the next; nan where there are none to compare."""
    steps = zip(pairwise(seconds), pairwise(nodes), strict=True)
    return [math.log(t / s) / math.log(n / m) if s > 0 and t > 0 else math.nan for (s, t), (m, n) in steps]


def by_phase(compiled: Sequence[Compiled]) -> summary.Table:
    """A row for each phase, the slowest first: its seconds at each size, the exponents between, and ms of a node."""
    nodes = [size.traced for size in compiled]
    slowest = sorted(compiled[-1].seconds, key=lambda name: -compiled[-1].seconds[name])
    phases = {"all of static.compile": [size.total for size in compiled]}
    phases |= {name: [size.seconds.get(name, 0.0) for size in compiled] for name in slowest}
    columns = ["s of CPU", *(f"{n:,}" for n in nodes), *(f"to {n:,}" for n in nodes[1:])]
    rows = [[name, *map(_seconds, times), *map(_power, exponents(times, nodes))] for name, times in phases.items()]
    of_a_node = [f"{1e3 * size.total / size.traced:.3f}" for size in compiled]
    rows.append(["ms of CPU a node", *of_a_node, *[""] * (len(nodes) - 1)])
    return summary.Table(columns, rows)


def by_shape(compiled: Mapping[str, Sequence[Compiled]], nodes: Sequence[int]) -> summary.Table:
    """A row for each shape: seconds of the whole at each size, and the exponents between."""
    columns = ["s of CPU, nodes about", *(f"{n:,}" for n in nodes), *(f"to {n:,}" for n in nodes[1:])]
    rows = [
        [name, *(_seconds(size.total) for size in row), *map(_power, exponents([o.total for o in row], _nodes(row)))]
        for name, row in compiled.items()
    ]
    return summary.Table(columns, rows)


def at_most(compiled: Mapping[str, Sequence[Compiled]]) -> summary.Table:
    """A row for each phase, a column for each shape: seconds at the largest size, and the exponent of the last step."""
    phases = {name: sum(row[-1].seconds.get(name, 0.0) for row in compiled.values()) for name in _phases(compiled)}
    rows = [
        [name, *(_cell(name, row) for row in compiled.values())] for name in sorted(phases, key=lambda n: -phases[n])
    ]
    return summary.Table(["s of CPU (exponent)", *compiled], rows)


def _phases(compiled: Mapping[str, Sequence[Compiled]]) -> list[str]:
    return list(dict.fromkeys(name for row in compiled.values() for name in row[-1].seconds))


def _cell(name: str, row: Sequence[Compiled]) -> str:
    times = [size.seconds.get(name, 0.0) for size in row[-2:]]
    power = exponents(times, _nodes(row[-2:]))
    return f"{_seconds(times[-1])} ({_power(power[-1])})" if power else _seconds(times[-1])


def _nodes(row: Sequence[Compiled]) -> list[int]:
    return [size.traced for size in row]


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds >= 1e-3 else "0"


def _power(power: float) -> str:
    return "" if math.isnan(power) else f"{power:.2f}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", default=",".join(map(str, NODES)), show_default=True, help="Nodes, comma-separated.")
@click.option("--shapes", default="*", show_default=True, metavar="GLOBS", help="Shapes, comma-separated.")
@click.option("--page", type=click.Path(path_type=Path, exists=True), help="Put the tables into this Markdown page.")
def main(nodes: str, shapes: str, page: Path | None) -> None:
    """Measure compilation and print a table for each shape."""
    pin()
    sizes = [int(float(size)) for size in nodes.split(",")]
    compiled: dict[str, list[Compiled]] = {}
    for name in chosen(shapes, list(deep.SHAPES)):
        compiled[name] = [measured(name, size) for size in sizes]
        click.echo(f"\n{name}: {(deep.SHAPES[name].make.__doc__ or '').strip()}")
        table = by_phase(compiled[name])
        show_table(table.columns, table.rows, whole=table.columns)
    if page:
        whole = [_told(), *map(summary.markdown, (by_shape(compiled, sizes), at_most(compiled)))]
        page.write_text(summary.placed(page.read_text("utf-8"), START, END, "\n".join(whole)), "utf-8")


def _told() -> str:
    env = environment()
    cores = f"{env.cpu} with {env.logical_cores} logical cores"
    return f"Measured on {cores} under a load of {env.load}; {env.python}.\n"


if __name__ == "__main__":
    main()
