"""What a compiled graph consists of, in numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphs.ir import Node
from static import memory
from static.passes.pipeline import Step

if TYPE_CHECKING:
    from static.executable import Executable


class Report(NamedTuple):
    """Nodes, bytes of structure, constants and arenas, what the passes did, and the plan.

    Nodes and bytes are those of the graph and of the subgraphs in it; the plan is that of the graph's own arena.
    The plan is None while symbolic sizes have not met numbers.
    """

    name: str
    nodes: int
    structure_bytes: int
    constant_bytes: int
    arena_bytes: int
    result_bytes: int
    plan: memory.Plan | None
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.nodes} nodes, {self.structure_bytes:,} bytes of structure"]
        lines.append(f"  constants: {self.constant_bytes:,} bytes")
        lines += [f"  {step}" for step in self.steps if step.changed]
        busy = {step.name for step in self.steps if step.changed}
        idle = dict.fromkeys(step.name for step in self.steps if step.name not in busy)
        if idle:
            lines.append(f"  nothing to do for {', '.join(idle)}")
        if self.plan is not None:
            above = f"{self.plan.gap:.1%} above the {self.plan.lower_bound:,} that are live at once"
            lines.append(f"  arena: {self.plan.peak:,} bytes, {above}")
        if self.result_bytes:
            lines.append(f"  results: {self.result_bytes:,} bytes kept, to be written again")
        return "\n".join(lines)


def make_report(executable: Executable) -> Report:
    """Count what an executable holds."""
    nodes = [node for graph in executable.graph.nested() for node in graph.nodes]
    constants = [node.attrs["value"] for node in nodes if "value" in node.attrs]
    return Report(
        executable.graph.name,
        len(nodes),
        sum(map(_node_bytes, nodes)) + executable.code_bytes,
        sum(value.nbytes for value in constants if isinstance(value, np.ndarray)),
        executable.arena_bytes,
        executable.result_bytes,
        executable.plan if executable.has_plan else None,
        executable.steps,
    )


def _node_bytes(node: Node) -> int:
    """A node, and the tuple and dict in it; not the data of constants."""
    return sys.getsizeof(node) + sys.getsizeof(node.inputs) + sys.getsizeof(node.attrs)
