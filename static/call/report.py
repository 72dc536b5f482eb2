"""What a compiled graph consists of, in numbers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import NamedTuple

from graphs.ir import Node
from graphs.plain import escaped
from static import memory
from static.passes.pipeline import Ran

SMALL_SHARE = 0.01  # of the time: what takes less is not named
WIDTH = 80


class Report(NamedTuple):
    """Nodes, bytes of structure, constants and arenas, what the passes did, the plan, and how long each phase took.

    Nodes and bytes are those of the graph and of the subgraphs in it; the plan is that of the graph's own arena.
    The plan is None until symbolic sizes have numbers. `seconds` are of CPU, by the names of passes and of the
    phases in `static/clock.py`; the plans of all sizes count.
    """

    name: str
    nodes: int
    structure_bytes: int
    constant_bytes: int
    arena_bytes: int
    result_bytes: int
    plan: memory.Plan | None
    steps: tuple[Ran, ...]
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.nodes} nodes, {self.structure_bytes:,} bytes of structure"]
        lines.append(f"  constants: {self.constant_bytes:,} bytes")
        lines += [f"  {_of_pass(runs)}" for runs in _by_pass(self.steps)]
        busy = {step.name for step in self.steps if step.changed}
        idle = dict.fromkeys(step.name for step in self.steps if step.name not in busy)
        if idle:
            lines.append(f"  nothing to do for {', '.join(idle)}")
        if self.plan is not None:
            above = f"{self.plan.gap:.1%} above the {self.plan.lower_bound:,} that are live at once"
            lines.append(f"  arena: {self.plan.peak:,} bytes, {above}")
        if self.result_bytes:
            lines.append(f"  results: {self.result_bytes:,} bytes kept, to be written again")
        whole = sum(self.seconds.values())
        slowest = sorted(self.seconds.items(), key=lambda item: -item[1])
        each = [f"{name} {seconds * 1e3:,.1f}" for name, seconds in slowest if seconds >= SMALL_SHARE * whole]
        rest = f"; each of the other {len(slowest) - len(each)} less than 1%" if len(each) < len(slowest) else ""
        lines.append(f"  compiled in {whole * 1e3:,.1f} ms of CPU: {', '.join(each)}{rest}")
        return "\n".join(fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False) for line in lines)

    def _repr_html_(self) -> str:
        head = "<tr><th>pass</th><th>nodes</th><th>bytes of intermediate results</th></tr>"
        rows = "".join(_row(runs) for runs in _by_pass(self.steps))
        return f"<table>{head}{rows}</table><pre>{escaped(str(self))}</pre>"


def _by_pass(steps: Sequence[Ran]) -> list[list[Ran]]:
    """The runs of each pass that did something: a pass runs again after others."""
    runs: dict[str, list[Ran]] = {}
    for step in steps:
        if step.changed:
            runs.setdefault(step.name, []).append(step)
    return list(runs.values())


def _of_pass(runs: Sequence[Ran]) -> str:
    """What the runs of one pass did."""
    first, *again = runs
    later = [f"again {str(step).removeprefix(f'{step.name}: ')}" for step in again]
    return "; ".join([str(first), *later])


def _row(runs: Sequence[Ran]) -> str:
    """The runs of a pass, as a row of a table."""
    nodes = ", then ".join(f"{step.before} → {step.after}" for step in runs)
    held = ", then ".join(f"{step.bytes_before} → {step.bytes_after}" for step in runs)
    cells = [runs[0].name, nodes, held]
    return f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in cells)}</tr>"


def node_bytes(node: Node) -> int:
    """A node, and the tuple and dict in it; not the data of constants."""
    return sys.getsizeof(node) + sys.getsizeof(node.inputs) + sys.getsizeof(node.attrs)
