"""What memory costs a step beside its kernels: bytes that have left the caches, and arrays that are new.

A kernel is calibrated on arrays that it has just touched. In a step an operand was touched some time ago, and what was
touched since may have driven it out of the caches: its reuse distance (Mattson et al., IBM Systems Journal 9, 1970).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphs.ir import Graph, Node
from graphs.spec import TensorSpec
from static import memory
from static.passes.iteration_space import result


@dataclass(frozen=True)
class Touched:
    """For each op the bytes of each array it reads or makes, with the bytes touched since that memory was last.

    `largest` are the bytes of the largest array that the step makes, `held` of all that it holds when it holds most.
    """

    by_op: Mapping[Node, list[tuple[float, float]]]
    largest: float
    held: float


def touched(graph: Graph) -> Touched:
    """The memory that a step touches, its ops in order.

    An array is held until the last op that reads it, or a view of it; a result to the end. Memory that was freed
    last is taken first. No distance is longer than what the step holds, with its inputs.
    """
    ops = [node for node in graph.calls if not node.op.view]
    lifetimes = _lifetimes(ops, graph)
    held = memory.max_live([(first, last + 1, int(size_of(node))) for node, (first, last) in lifetimes.items()])
    sources = {owner(source) for node in ops for source in node.inputs} - lifetimes.keys()
    walk = _Walk(lifetimes, held + sum(map(size_of, sources)))
    for step, node in enumerate(ops):
        walk.on(step, node)
    return Touched(walk.found, max(map(size_of, lifetimes), default=0.0), float(held))


@dataclass
class _Walk:
    """A walk through a step: when each array was touched last, in bytes touched so far, and memory that is free."""

    lifetimes: Mapping[Node, tuple[int, int]]
    longest: float
    clock: float = 0.0
    seen: dict[Node, float] = field(default_factory=dict)
    free: list[float] = field(default_factory=list)
    found: dict[Node, list[tuple[float, float]]] = field(default_factory=dict)

    def on(self, step: int, node: Node) -> None:
        """Go on by one op."""
        group = node.inputs[0] if node.op is result else node  # what a group makes, it makes in its own blocks
        pairs = self.found.setdefault(group, [])
        arrays = [source for source in dict.fromkeys(node.inputs) if type(source.spec) is TensorSpec]
        pairs += [(size_of(source), self._since(self.seen.get(owner(source)))) for source in arrays]
        if node in self.lifetimes:
            pairs.append((size_of(node), self._since(self.free.pop() if self.free else None)))
        self.clock += sum(map(size_of, {*arrays, node}))
        for one in {owner(source) for source in arrays} | {node}:
            self.seen[one] = self.clock
            if self.lifetimes.get(one, (0, -1))[1] == step:
                self.free.append(self.clock)

    def _since(self, before: float | None) -> float:
        return self.longest if before is None else min(self.clock - before, self.longest)


def _lifetimes(ops: list[Node], graph: Graph) -> dict[Node, tuple[int, int]]:
    """The steps from which and to which each array is held that the ops make."""
    first = {node: step for step, node in enumerate(ops) if type(node.spec) is TensorSpec}
    last = dict(first)
    for step, node in enumerate(ops):
        last.update({one: step for one in map(owner, node.inputs) if one in first})
    last.update({one: len(ops) for one in map(owner, graph.outputs) if one in first})
    return {node: (first[node], last[node]) for node in first}


def owner(node: Node) -> Node:
    """What has the memory of a node: of a view what it is a view of."""
    while node.op.view and node.inputs:
        node = node.inputs[0]
    return node


def size_of(node: Node) -> float:
    """The bytes of a node's array; 0 where it is none."""
    if type(node.spec) is not TensorSpec:
        return 0.0
    shape: Any = node.spec.shape
    return float(math.prod(shape) * node.spec.dtype.itemsize)
