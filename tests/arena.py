"""An independent check of a memory plan: run the program step by step and look whether anything is overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from graphs.ir import Node
from static import Executable


def check_arena(exe: Executable, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Run an executable's steps in its own buffers; returns the outputs.

    It knows nothing of owners, views or lifetimes: it holds that no kernel may change a value that somebody still
    reads. Raises AssertionError naming the step and the value, for a buffer given out twice at the same time, and for
    a plan whose peak is less than what is live.
    """
    return _Replay(exe, arrays).run()


class _Replay:
    def __init__(self, exe: Executable, arrays: Sequence[np.ndarray]) -> None:
        self.graph, self.plan, self.order = exe.graph, exe.plan, exe.nodes()
        (binding,) = exe._bindings.values()
        program, defaults = exe._program, binding.run.__defaults__
        held = {name: default for (name, _, _), default in zip(program.slots, defaults, strict=True)}
        number = {node: i for i, node in enumerate(self.order)}
        self.attrs = {n: {key: held.get(f"c{number[n]}_{key}", v) for key, v in n.attrs.items()} for n in self.order}
        self.planned = {n: held[f"b{number[n]}"] for n in program.planned if f"b{number[n]}" in held}
        self.values: dict[Node, Any] = dict(zip(self.graph.inputs, arrays, strict=True))
        self.fixed = {n: held[f"b{number[n]}"] for n in program.fixed if f"b{number[n]}" in held}
        self.last = dict(number)
        for i, node in enumerate(self.order):
            self.last |= dict.fromkeys(node.inputs, i)
        self.last |= dict.fromkeys(self.graph.outputs, len(self.order))

    def run(self) -> list[Any]:
        before: dict[Node, bytes] = {}
        for step, node in enumerate(self.order):
            self._live_buffers_are_apart(step, node)
            self.values[node] = self._value(node)
            before = {n: data for n, data in before.items() if self.last[n] > step}
            for held, data in before.items():
                assert self.values[held].tobytes() == data, f"step {step}, {node}, overwrites {held}"
            if isinstance(self.values[node], np.ndarray):
                before[node] = self.values[node].tobytes()
        return [np.array(self.values[node]) for node in self.graph.outputs]

    def _value(self, node: Node) -> Any:
        if node in self.values:
            return self.values[node]
        inputs = [self.values[source] for source in node.inputs]
        if node in self.planned:
            return node.op.kernel(*inputs, out=self.planned[node], **self.attrs[node])
        return self.fixed[node] if node in self.fixed else node.op.kernel(*inputs, **self.attrs[node])

    def _live_buffers_are_apart(self, step: int, node: Node) -> None:
        """What is planned, made by now and read at this step or later; the node's own buffer is written at it."""
        made = [n for n in self.planned if n is node or (n in self.values and self.last[n] >= step)]
        spans = sorted(_span(self.planned[n]) for n in made if self.planned[n].size)
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start, f"step {step}, {node}: two live buffers overlap"
        live = sum(end - start for start, end in spans)
        assert live <= self.plan.lower_bound <= self.plan.peak, f"step {step}: {live} bytes live, {self.plan}"


def _span(buffer: np.ndarray) -> tuple[int, int]:
    start = buffer.__array_interface__["data"][0]
    return start, start + buffer.nbytes
